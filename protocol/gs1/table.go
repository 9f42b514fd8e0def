package gs1

import (
	"strconv"
	"strings"
)

// identifiers are the application identifiers, one a line: identifier, parts of its value, and
// its short title. nnnn-nnnn is a row of identifiers. A part is a kind of characters (n digits,
// x the 82 of GS1's first set, y the 39 of its second), a length or a range of lengths, and
// what it is besides:
//
//	key     ends with a check digit over the part
//	date    YYMMDD, the day may be 00; day is one that may not; hour YYMMDDhh; minute YYMMDDhhmm
//	clock   mm or mmss
//	yes     0 or 1
//	pieces  two digits of a number and two of how many there are
//	zero    is 0
//	land    two letters of a country
//	text    percent-encoded, + is a blank
//	lat lon degrees in units of 1e-7, from -90 and -180
//	minus   is -
//
// Sources: GS1 General Specifications, section 3.
const identifiers = `
00 n18,key SSCC
01 n14,key GTIN
02 n14,key CONTENT
03 n14,key MTO GTIN
10 x1-20 BATCH/LOT
11 n6,date PROD DATE
12 n6,date DUE DATE
13 n6,date PACK DATE
15 n6,date BEST BEFORE
16 n6,date SELL BY
17 n6,date EXPIRY
20 n2 VARIANT
21 x1-20 SERIAL
22 x1-20 CPV
235 x1-28 TPX
240 x1-30 ADDITIONAL ID
241 x1-30 CUST. PART No.
242 n1-6 MTO VARIANT
243 x1-20 PCN
250 x1-30 SECONDARY SERIAL
251 x1-30 REF. TO SOURCE
253 n13,key x0-17 GDTI
254 x1-20 GLN EXTENSION
255 n13,key n0-12 GCN
30 n1-8 VAR. COUNT
3100-3105 n6 NET WEIGHT (kg)
3110-3115 n6 LENGTH (m)
3120-3125 n6 WIDTH (m)
3130-3135 n6 HEIGHT (m)
3140-3145 n6 AREA (m2)
3150-3155 n6 NET VOLUME (l)
3160-3165 n6 NET VOLUME (m3)
3200-3205 n6 NET WEIGHT (lb)
3210-3215 n6 LENGTH (in)
3220-3225 n6 LENGTH (ft)
3230-3235 n6 LENGTH (yd)
3240-3245 n6 WIDTH (in)
3250-3255 n6 WIDTH (ft)
3260-3265 n6 WIDTH (yd)
3270-3275 n6 HEIGHT (in)
3280-3285 n6 HEIGHT (ft)
3290-3295 n6 HEIGHT (yd)
3300-3305 n6 GROSS WEIGHT (kg)
3310-3315 n6 LENGTH (m), log
3320-3325 n6 WIDTH (m), log
3330-3335 n6 HEIGHT (m), log
3340-3345 n6 AREA (m2), log
3350-3355 n6 VOLUME (l), log
3360-3365 n6 VOLUME (m3), log
3370-3375 n6 KG PER m2
3400-3405 n6 GROSS WEIGHT (lb)
3410-3415 n6 LENGTH (in), log
3420-3425 n6 LENGTH (ft), log
3430-3435 n6 LENGTH (yd), log
3440-3445 n6 WIDTH (in), log
3450-3455 n6 WIDTH (ft), log
3460-3465 n6 WIDTH (yd), log
3470-3475 n6 HEIGHT (in), log
3480-3485 n6 HEIGHT (ft), log
3490-3495 n6 HEIGHT (yd), log
3500-3505 n6 AREA (in2)
3510-3515 n6 AREA (ft2)
3520-3525 n6 AREA (yd2)
3530-3535 n6 AREA (in2), log
3540-3545 n6 AREA (ft2), log
3550-3555 n6 AREA (yd2), log
3560-3565 n6 NET WEIGHT (t oz)
3570-3575 n6 NET VOLUME (oz)
3600-3605 n6 NET VOLUME (qt)
3610-3615 n6 NET VOLUME (gal.)
3620-3625 n6 VOLUME (qt), log
3630-3635 n6 VOLUME (gal.), log
3640-3645 n6 VOLUME (in3)
3650-3655 n6 VOLUME (ft3)
3660-3665 n6 VOLUME (yd3)
3670-3675 n6 VOLUME (in3), log
3680-3685 n6 VOLUME (ft3), log
3690-3695 n6 VOLUME (yd3), log
37 n1-8 COUNT
3900-3909 n1-15 AMOUNT
3910-3919 n3 n1-15 AMOUNT
3920-3929 n1-15 PRICE
3930-3939 n3 n1-15 PRICE
3940-3943 n4 PRCNT OFF
3950-3955 n6 PRICE/UoM
400 x1-30 ORDER NUMBER
401 x1-30 GINC
402 n17,key GSIN
403 x1-30 ROUTE
410 n13,key SHIP TO LOC
411 n13,key BILL TO
412 n13,key PURCHASE FROM
413 n13,key SHIP FOR LOC
414 n13,key LOC No.
415 n13,key PAY TO
416 n13,key PROD/SERV LOC
417 n13,key PARTY
420 x1-20 SHIP TO POST
421 n3 x1-9 SHIP TO POST
422 n3 ORIGIN
424 n3 COUNTRY - PROCESS.
425 n3-15 COUNTRY - DISASSEMBLY
426 n3 COUNTRY - FULL PROCESS
427 x1-3 ORIGIN SUBDIVISION
4300 x1-35,text SHIP TO COMP
4301 x1-35,text SHIP TO NAME
4302 x1-70,text SHIP TO ADD1
4303 x1-70,text SHIP TO ADD2
4304 x1-70,text SHIP TO SUB
4305 x1-70,text SHIP TO LOC
4306 x1-70,text SHIP TO REG
4307 x2,land SHIP TO COUNTRY
4308 x1-30 SHIP TO PHONE
4309 n10,lat n10,lon SHIP TO GEO
4310 x1-35,text RTN TO COMP
4311 x1-35,text RTN TO NAME
4312 x1-70,text RTN TO ADD1
4313 x1-70,text RTN TO ADD2
4314 x1-70,text RTN TO SUB
4315 x1-70,text RTN TO LOC
4316 x1-70,text RTN TO REG
4317 x2,land RTN TO COUNTRY
4318 x1-20 RTN TO POST
4319 x1-30 RTN TO PHONE
4320 x1-35,text SRV DESCRIPTION
4321 n1,yes DANGEROUS GOODS
4322 n1,yes AUTH LEAVE
4323 n1,yes SIG REQUIRED
4324 n10,minute NBEF DEL DT
4325 n10,minute NAFT DEL DT
4326 n6,day REL DATE
4330 n6 x0-1,minus MAX TEMP F
4331 n6 x0-1,minus MAX TEMP C
4332 n6 x0-1,minus MIN TEMP F
4333 n6 x0-1,minus MIN TEMP C
7001 n13 NSN
7002 x1-30 MEAT CUT
7003 n10,minute EXPIRY TIME
8003 n1,zero n13,key x0-16 GRAI
8004 x1-30 GIAI
8005 n6 PRICE PER UNIT
8006 n14,key n4,pieces ITIP
8007 x1-34 IBAN
8008 n8,hour n0-4,clock PROD TIME
8010 y1-30 CPID
8011 n1-12 CPID SERIAL
8013 x1-25 GMN
8017 n18,key GSRN - PROVIDER
8018 n18,key GSRN - RECIPIENT
8019 n1-10 SRIN
8020 x1-25 REF No.
8026 n14,key n4,pieces ITIP CONTENT
8200 x1-70 PRODUCT URL
90 x1-30 INTERNAL
91-99 x1-90 INTERNAL
`

// Identifier is an application identifier.
type Identifier struct {
	AI    string // two to four digits
	Title string // short, of the specification

	parts    []part
	min, max int // characters of a value
	fixed    int // characters of a value of predefined length, which needs no separator; else 0
}

// part is one part of a value.
type part struct {
	kind     byte // n, x, y
	min, max int
	rule     string
}

// Identifiers by number, of each length.
var (
	twoDigits   [100]*Identifier
	threeDigits [1000]*Identifier
	fourDigits  [10000]*Identifier
	all         []*Identifier
)

// predefined are lengths of identifier and value, by the first two digits (General
// Specifications, 7.8.5).
var predefined = map[int]int{0: 20, 1: 16, 2: 16, 3: 16, 4: 18, 11: 8, 12: 8, 13: 8, 14: 8, 15: 8, 16: 8, 17: 8, 18: 8, 19: 8, 20: 4,
	31: 10, 32: 10, 33: 10, 34: 10, 35: 10, 36: 10, 41: 16}

func init() {
	for line := range strings.Lines(strings.TrimSpace(identifiers)) {
		fields := strings.Fields(line)
		from, to, isRow := strings.Cut(fields[0], "-")
		if !isRow {
			to = from
		}
		low, _ := strconv.Atoi(from)
		high, _ := strconv.Atoi(to)
		var parts []part
		i := 1
		for ; i < len(fields); i++ {
			p, ok := parsePart(fields[i])
			if !ok {
				break
			}
			parts = append(parts, p)
		}
		for n := low; n <= high; n++ {
			x := &Identifier{AI: digits(n, len(from)), Title: strings.Join(fields[i:], " "), parts: parts}
			for _, p := range parts {
				x.min, x.max = x.min+p.min, x.max+p.max
			}
			if total := predefined[number(x.AI[:2])]; total > 0 {
				x.fixed = total - len(x.AI)
			}
			all = append(all, x)
			switch len(x.AI) {
			case 2:
				twoDigits[n] = x
			case 3:
				threeDigits[n] = x
			case 4:
				fourDigits[n] = x
			}
		}
	}
}

// parsePart reads a part such as n13,key; ok is false for what is a title.
func parsePart(s string) (p part, ok bool) {
	s, p.rule, _ = strings.Cut(s, ",")
	if len(s) < 2 || !strings.Contains("nxy", s[:1]) {
		return p, false
	}
	p.kind = s[0]
	from, to, isRange := strings.Cut(s[1:], "-")
	if !isRange {
		to = from
	}
	low, err := strconv.Atoi(from)
	if err != nil {
		return p, false
	}
	high, err := strconv.Atoi(to)
	p.min, p.max = low, high
	return p, err == nil
}

func digits(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", width-len(s)) + s
}

// number is a number of a few digits; -1 for other text.
func number(s string) int {
	n := 0
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return -1
		}
		n = n*10 + int(d)
	}
	return n
}

// Identifiers are all application identifiers that are known, by number.
func Identifiers() []*Identifier { return all }

// Find finds an identifier by its digits, nil when it is not known.
func Find(ai string) *Identifier {
	n := number(ai)
	if n < 0 {
		return nil
	}
	switch len(ai) {
	case 2:
		return twoDigits[n]
	case 3:
		return threeDigits[n]
	case 4:
		return fourDigits[n]
	}
	return nil
}

// findIn finds the identifier at the beginning of a text, nil when none is. No identifier is
// the beginning of another.
func findIn(s string) *Identifier {
	for n := 2; n <= 4 && n <= len(s); n++ {
		if x := Find(s[:n]); x != nil {
			return x
		}
	}
	return nil
}
