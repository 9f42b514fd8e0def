package scanner

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

const gs = "\x1d"

var dock = Config{Name: "dock", Port: "tcp://127.0.0.1:1", Use: UseLabels, Post: "Dock 3", Step: otep.Received, Repeat: 5 * time.Second}

func keyboardAt(c Config) Config {
	c.Port = "input:/dev/input/by-id/x-event-kbd"
	return c
}

// What lines of scanners mean.
func TestLines(t *testing.T) {
	t.Parallel()
	type want struct {
		outcome            Outcome
		subject, symbology string
		certainty          gs1.Certainty
	}
	for line, w := range map[string]want{
		"]C100340123450000000017":                     {Accepted, "00340123450000000017", "]C1", gs1.Exact},
		"\xef\xbb\xbf00340123450000000017\x00":        {Accepted, "00340123450000000017", "", gs1.Exact},
		"https://id.gs1.org/00/106141411234567897":    {Accepted, "00106141411234567897", "", gs1.Exact},
		"]C1402" + "12345678901234560" + "401C-9":     {Accepted, "C-9", "]C1", gs1.Exact}, // overwritten below
		"]C1401CON1" + gs + "400X":                    {Accepted, "CON1", "]C1", gs1.Exact},
		"]d2010952123454321321S1":                     {Accepted, "09521234543213/S1", "]d2", gs1.Exact},
		"]d2010952123454321310B1":                     {Accepted, "010952123454321310B1", "]d2", gs1.Exact},
		"]d2010952123454321310B1" + gs + "17261231":   {Accepted, "010952123454321310B117261231", "]d2", gs1.Exact}, // goods: whatever the order of its fields
		"]d201095212345432131726123110B1":             {Accepted, "01095212345432131726123110B1", "]d2", gs1.Exact},
		"SR" + gs + "204518837":                       {Unreadable, "", "", gs1.Exact},
		"SR204518837":                                 {Accepted, "SR204518837", "", gs1.Exact},
		"  SR204518837-1 ":                            {Accepted, "SR204518837-1", "", gs1.Exact},
		"]L2SR204518837":                              {Accepted, "SR204518837", "]L2", gs1.Exact},
		"]A000340123450000000017":                     {Accepted, "00340123450000000017", "]A0", gs1.Exact},
		"1Z 999 AA1 01 2345 6784":                     {Accepted, "1Z999AA10123456784", "", gs1.Exact},
		"1Z 999 AA1 01 2345 6785":                     {Accepted, "1Z 999 AA1 01 2345 6785", "", gs1.Exact},
		"ra 473 124 829 us":                           {Accepted, "RA473124829US", "", gs1.Exact},
		"RA473124828US":                               {Accepted, "RA473124828US", "", gs1.Exact},
		"]C142090210" + gs + "9400100000000000000004": {Accepted, "9400100000000000000004", "]C1", gs1.Exact},
		"Zürich 7":                                    {Accepted, "Zürich 7", "", gs1.Exact},
		"4331000250-00340123450000000017":             {Accepted, "00340123450000000017", "", gs1.Recovered},
		"]C100340123450000000018":                     {Unreadable, "", "]C1", ""},
		"340123450000000017":                          {Accepted, "340123450000000017", "", gs1.Exact},
		"340123450000000018":                          {Ambiguous, "", "", gs1.Ambiguous}, // an SSCC with a wrong check digit
		"00340123450000000018":                        {Ambiguous, "", "", gs1.Ambiguous},
		"106141411234567890":                          {Ambiguous, "", "", gs1.Ambiguous},                 // not a batch of 16 digits
		"]C0340123450000000018":                       {Accepted, "340123450000000018", "]C0", gs1.Exact}, // says that it is no GS1 label
		"34012345000000001":                           {Accepted, "34012345000000001", "", gs1.Exact},
		"12340123450000000018":                        {Accepted, "12340123450000000018", "", gs1.Exact},
		"34012345000000001X":                          {Accepted, "34012345000000001X", "", gs1.Exact},
		"\xff\xfe\x80rubbish":                         {Unreadable, "", "", gs1.Exact},
		"a\x02b":                                      {Unreadable, "", "", gs1.Exact},
		strings.Repeat("x", 129):                      {Unreadable, "", "", gs1.Exact},
		strings.Repeat("x", 600):                      {Unreadable, "", "", ""},
		"\x00":                                        {},
		gs:                                            {},
		"PU:CAB-1:482913":                             {outcome: Refused},
		"pu:cab-1:482913":                             {outcome: Refused},
		" ]Q1PU:CAB-1:482913":                         {outcome: Refused},
		"P\x00U\x1d:CAB-1:482913":                     {outcome: Refused},
		"SR1PU:CAB-1:482913":                          {outcome: Refused},
		"https://tms.example/track/SR1?k=LRR1IkP2Be5": {outcome: Refused},
		"]Q1https://tms.example/reset?key=secret":     {outcome: Refused},
		// The line that enrols a cabinet, as its page shows it, and other ways to write codes.
		"https://tms.example CAB-1001 K7QM-2RXD-9FHT-4WZB":              {outcome: Refused},
		"https://tms.example/track/SR1":                                 {outcome: Refused},
		"https://tms.example/join/5e9a1c":                               {outcome: Refused},
		"https://tms.example/PU%3ACAB-1001%3A482913":                    {outcome: Refused},
		"https://id.gs1.org/00/106141411234567897#k=secret":             {outcome: Refused},
		"https://id.gs1.org/00/106141411234567897?k=secret":             {outcome: Refused},
		"https://id.gs1.org/00/106141411234567897?=secret":              {outcome: Refused},
		"https://secret@id.gs1.org/00/106141411234567897":               {outcome: Refused},
		"https://id.gs1.org/01/09521234543213/10/ABC123/21/1?17=261231": {Accepted, "09521234543213/1", "", gs1.Exact},
		"$*@(!#":                 {outcome: Refused},
		"&é\"'(-":                {outcome: Refused},
		"-è_çàé&":                {outcome: Refused},
		"PU%3ACAB-1001%3A482913": {outcome: Refused},
		"PU>CAB-1>482913":        {outcome: Refused},
		"482913":                 {outcome: Refused},
		"]C04829137":             {outcome: Refused},
		"\x0248291375\x03":       {outcome: Refused},
		"482 913":                {outcome: Refused},
		"48291":                  {Accepted, "48291", "", gs1.Exact},
		"482913756":              {Accepted, "482913756", "", gs1.Exact},
		"PUMA-17":                {Accepted, "PUMA-17", "", gs1.Exact},
	} {
		if strings.HasPrefix(line, "]C1402") {
			number := "1234567890123456"
			number += fmt.Sprint(gs1.CheckDigit(number))
			line, w.subject = "]C1402"+number+gs+"401C-9", number
		}
		if strings.Contains(line, "94001") {
			number := "940010000000000000000"
			number += fmt.Sprint(gs1.CheckDigit(number))
			line, w.subject = "]C142090210"+gs+number, number
		}
		r := readLabel([]byte(line), dock)
		require.Equal(t, w.outcome, r.outcome, "%q: %+v", line, r)
		switch w.outcome {
		case "", Refused:
			require.Equal(t, reading{outcome: w.outcome, message: r.message}, r, "nothing of %q", line)
			require.Equal(t, w.outcome == Refused, r.message != "")
			continue
		case Accepted:
			require.Equal(t, wire.TrackingEvent{Subject: w.subject, StatusCode: "received", Location: "Dock 3"}, r.event, "%q", line)
			require.Empty(t, r.message)
		default:
			require.Zero(t, r.event)
			require.NotEmpty(t, r.message)
		}
		require.Equal(t, line, string(r.scan.Raw))
		require.Equal(t, w.symbology, r.scan.Symbology, "%q", line)
		require.Equal(t, string(w.certainty), r.scan.Certainty, "%q", line)
		require.Equal(t, []string{"Dock 3", "received"}, []string{r.scan.Post, r.scan.Step})
	}
	r := readLabel([]byte("10ABC17261231"), keyboardAt(dock))
	require.Equal(t, Ambiguous, r.outcome, "a keyboard drops separators")
	require.Empty(t, r.scan.Identifiers)
	r = readLabel([]byte("]C100340123450000000017400PO1"), dock)
	require.Equal(t, map[string]string{"00": "340123450000000017", "400": "PO1"}, r.scan.Identifiers)
}

func lineTries() int {
	if ring.Check() {
		return 20000
	}
	return 1000
}

// Labels of elements that are drawn: the subject is what 8.5 says of what was put
// on them, whatever else is there and in whatever order.
func TestSubjectOfDrawnLabels(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(8, 5))
	digits := func(n int) (s string) {
		for range n {
			s += string(rune('0' + rnd.IntN(10)))
		}
		return s
	}
	key := func(n int) string { s := digits(n - 1); return s + fmt.Sprint(gs1.CheckDigit(s)) }
	seen := map[string]int{}
	for range lineTries() {
		all := map[string]string{"00": key(18), "402": key(17), "401": "C" + digits(4), "01": key(14), "21": "S" + digits(3), "400": "PO" + digits(3), "3103": digits(6)}
		var parts []string
		on := map[string]string{}
		for ai, v := range all {
			if rnd.IntN(2) == 0 {
				continue
			}
			on[ai] = v
			parts = append(parts, ai+v)
		}
		if len(on) == 0 {
			continue
		}
		text := strings.Join(parts, gs)
		want, by := strings.ReplaceAll(text, gs, ""), "text"
		switch {
		case on["00"] != "":
			want, by = "00"+on["00"], "00"
		case on["402"] != "":
			want, by = on["402"], "402"
		case on["401"] != "":
			want, by = on["401"], "401"
		case on["01"] != "" && on["21"] != "":
			want, by = on["01"]+"/"+on["21"], "01+21"
		}
		r := readLabel([]byte("]C1"+text), dock)
		require.Equal(t, Accepted, r.outcome, "%q", text)
		require.Equal(t, want, r.event.Subject, "%q", text)
		require.Equal(t, on, r.scan.Identifiers)
		seen[by]++
	}
	require.Len(t, seen, 5)
}

// No code comes through, whatever a scanner puts around or between its signs.
func TestCodesAreNeverLabels(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(4, 1))
	around := []string{"", "", " ", "\x00", "\x02", "\x03", gs, "\xef\xbb\xbf", "\x7f", "\xff"}
	for range lineTries() {
		code := fmt.Sprintf("%0*d", 6+rnd.IntN(3), rnd.IntN(1000000))
		text := code
		if rnd.IntN(2) == 0 {
			text = []string{"PU:", "pu:", "Pu:"}[rnd.IntN(3)] + "CAB-1:" + code
		} else if rnd.IntN(2) == 0 {
			code = "ABCD" + strings.Repeat("EFGH", rnd.IntN(90))
			text = []string{"PX:", "px:", "PX\u00d6", "PX;", "PX>"}[rnd.IntN(5)] + code
		}
		var b strings.Builder
		pick := func() { b.WriteString(around[rnd.IntN(len(around))]) }
		pick()
		b.WriteString([]string{"", "]C0", "]Q1", "]d1", "]A0"}[rnd.IntN(5)])
		for _, c := range text {
			pick()
			b.WriteRune(c)
		}
		pick()
		r := readLabel([]byte(b.String()), dock)
		require.Equal(t, reading{outcome: Refused, message: r.message}, r, "%q", b.String())
		require.NotContains(t, r.message, code)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"]C100340123450000000017", "PU:CAB-1:482913", "10ABC17261231", "1Z999AA10123456784", "\xff\x1d\x00"} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, typed bool) {
		c := dock
		if typed {
			c = keyboardAt(c)
		}
		r := readLabel(raw, c)
		if r.outcome != Accepted {
			require.Zero(t, r.event)
			return
		}
		require.True(t, isPrintable(r.event.Subject))
		if len(r.scan.Identifiers) == 0 { // a consignment may have a number as short as a code
			require.False(t, isCode([]byte(r.event.Subject)), "%q", raw)
		}
		require.Equal(t, raw, r.scan.Raw)
		require.LessOrEqual(t, len(wire.MustEncode(r.scan)), wire.MaxRecord)
	})
}

func BenchmarkReadLabel(b *testing.B) {
	raw := []byte("]C1003401234500000000174000012" + gs + "401CON123456")
	for b.Loop() {
		if readLabel(raw, dock).outcome != Accepted {
			b.Fatal("not accepted")
		}
	}
}
