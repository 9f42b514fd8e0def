package gs1_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/gs1"
)

const gs = "\x1d"

func elements(pairs ...string) (out []gs1.Element) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, gs1.Element{AI: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func TestCheckDigits(t *testing.T) {
	t.Parallel()
	for number, digit := range map[string]int{"34012345000000001": 7, "10614141123456789": 7, "0952123454321": 3, "629104150021": 3, "": 0} {
		require.Equal(t, digit, gs1.CheckDigit(number), number)
	}
	require.True(t, gs1.IsKey("340123450000000017"))
	require.False(t, gs1.IsKey("340123450000000018"))
	require.Equal(t, -1, gs1.CheckDigit("12x"))
}

// Labels as scanners send them, and what they say.
func TestLabels(t *testing.T) {
	t.Parallel()
	type want struct {
		kind     gs1.Kind
		elements []gs1.Element
	}
	for label, w := range map[string]want{
		"]C100340123450000000017":                                                           {gs1.ElementString, elements("00", "340123450000000017")},
		"00340123450000000017\r\n":                                                          {gs1.ElementString, elements("00", "340123450000000017")},
		"\xef\xbb\xbf00340123450000000017\t":                                                {gs1.ElementString, elements("00", "340123450000000017")},
		"]d2" + gs + "01095212345432131726123110ABC123" + gs + "2112345":                    {gs1.ElementString, elements("01", "09521234543213", "17", "261231", "10", "ABC123", "21", "12345")},
		"]C110ABC" + gs + gs + "0109521234543213":                                           {gs1.ElementString, elements("10", "ABC", "01", "09521234543213")},
		"]C10109521234543213" + gs + "17261231":                                             {gs1.ElementString, elements("01", "09521234543213", "17", "261231")},
		"]E06291041500213":                                                                  {gs1.ElementString, elements("01", "06291041500213")},
		"https://id.gs1.org/00/106141411234567897":                                          {gs1.DigitalLink, elements("00", "106141411234567897")},
		"]Q1https://id.gs1.org/01/09521234543213/10/ABC123/21/12345?17=261231":              {gs1.DigitalLink, elements("01", "09521234543213", "10", "ABC123", "21", "12345", "17", "261231")},
		"HTTP://example.com/shop/01/9521234543213/21/a%2Fb?lang=de":                         {gs1.DigitalLink, elements("01", "09521234543213", "21", "a/b")},
		"https://example.com/track/SR204518837":                                             {gs1.Plain, nil},
		"SR204518837":                                                                       {gs1.Plain, nil},
		"]C000340123450000000017":                                                           {gs1.Plain, nil},
		"00340123450000000018":                                                              {gs1.Plain, nil},
		"]C1003401234500000000174000012" + gs + "4309" + "0950000000" + "2790000000":        {gs1.ElementString, elements("00", "340123450000000017", "400", "0012", "4309", "09500000002790000000")},
		"]C18003" + "00614141000012" + "A1" + gs + "8008" + "26112809" + gs + "4331000250-": {gs1.ElementString, elements("8003", "00614141000012A1", "8008", "26112809", "4331", "000250-")},
	} {
		s, err := gs1.Read([]byte(label))
		require.NoError(t, err, "%q", label)
		require.Equal(t, w.kind, s.Kind, "%q", label)
		require.Equal(t, w.elements, s.Elements, "%q", label)
		require.Equal(t, gs1.Exact, s.Certainty)
		require.Equal(t, label, string(s.Raw), "the bytes as they came are kept")
	}
	for label, text := range map[string]string{
		"]C100340123450000000018":                        "check digit",
		"]C10109521234543213" + "1":                      "no identifier is known",
		"]C14201" + gs + "421124A1":                      "exclude each other",
		"]C1401A" + gs + "401B":                          "twice",
		"]C117261331":                                    "date",
		"]C10009":                                        "characters",
		"https://id.gs1.org/00/106141411234567898":       "check digit",
		"https://id.gs1.org/01/09521234543213/21/A/10/B": "no qualifier",
	} {
		s, err := gs1.Read([]byte(label))
		require.ErrorIs(t, err, gs1.ErrElements, "%q: %+v", label, s)
		require.ErrorContains(t, err, text, "%q", label)
	}
	for label, want := range map[string]error{"": gs1.ErrEmpty, "\r\n": gs1.ErrEmpty, "]C1": gs1.ErrEmpty, gs: gs1.ErrEmpty, strings.Repeat("1", 513): gs1.ErrTooLong} {
		_, err := gs1.Read([]byte(label))
		require.ErrorIs(t, err, want, "%q", label)
	}
}

// What a keyboard sends without its separators.
func TestMissingSeparators(t *testing.T) {
	t.Parallel()
	keyboard := gs1.Source{DropsSeparators: true}
	read := func(label string) gs1.Scan {
		s, err := keyboard.Read([]byte(label))
		require.NoError(t, err, "%q", label)
		return s
	}
	require.Equal(t, gs1.Exact, read("00340123450000000017").Certainty, "of predefined length alone")
	s := read("10ABC17261231")
	require.Equal(t, gs1.Ambiguous, s.Certainty, "a batch, or a batch and a date")
	require.Empty(t, s.Elements)
	ai, v := s.Subject()
	require.Equal(t, []string{"", "10ABC17261231"}, []string{ai, v})
	s = read("4331000250-00340123450000000017")
	require.Equal(t, gs1.Recovered, s.Certainty, "one way alone")
	require.Equal(t, elements("4331", "000250-", "00", "340123450000000017"), s.Elements)
	s, err := gs1.Read([]byte("4331000250-00340123450000000017"))
	require.NoError(t, err)
	require.Equal(t, gs1.Recovered, s.Certainty, "it cannot be read otherwise, whatever the scanner")
}

func TestValues(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]string{"261231": "2026-12-31", "260200": "2026-02-28", "280200": "2028-02-29", "760101": "2076-01-01", "770101": "1977-01-01", "000101": "2000-01-01"} {
		d, err := gs1.Date(value, now)
		require.NoError(t, err)
		require.Equal(t, want, d.Format(time.DateOnly), value)
	}
	d, err := gs1.Date("000101", time.Date(2055, 1, 1, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, 2100, d.Year())
	_, err = gs1.Date("261301", now)
	require.Error(t, err)
	for e, want := range map[gs1.Element]string{{AI: "3103", Value: "001250"}: "1.25", {AI: "3100", Value: "000007"}: "7", {AI: "3105", Value: "000001"}: "0.00001"} {
		got, ok := e.Decimal()
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	text, ok := gs1.Text("Jane+Smith%2C+M%C3%BCnchen")
	require.True(t, ok)
	require.Equal(t, "Jane Smith, München", text)
	for label, want := range map[string][2]string{
		"]C100340123450000000017" + "40212345678901234560": {"00", "340123450000000017"},
		"]C1401CON1" + gs + "400X":                         {"401", "CON1"},
		"]C1010952123454321321S1":                          {"01", "09521234543213/S1"},
		"SR1":                                              {"", "SR1"},
	} {
		s, err := gs1.Read([]byte(label))
		require.NoError(t, err, label)
		ai, v := s.Subject()
		require.Equal(t, want, [2]string{ai, v}, label)
	}
	s, err := gs1.Read([]byte("]C137" + "12"))
	require.NoError(t, err)
	require.NotEmpty(t, s.Warnings)
}

// maker makes values by the form of an identifier as the specification writes it, without the
// reader's rules.
type maker struct{ *rand.Rand }

const charactersX = `!"%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz`

func (m maker) digits(n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(byte('0' + m.IntN(10)))
	}
	return b.String()
}

// key is a number with its check digit, which is found by trying all ten.
func (m maker) key(n int) string {
	body := m.digits(n - 1)
	for d := range 10 {
		sum := 0
		number := body + fmt.Sprint(d)
		for i := range len(number) {
			weight := 1
			if (len(number)-i)%2 == 0 {
				weight = 3
			}
			sum += int(number[i]-'0') * weight
		}
		if sum%10 == 0 {
			return number
		}
	}
	panic("no digit completes it")
}

func (m maker) text(low, high int) string {
	var b strings.Builder
	for range low + m.IntN(high-low+1) {
		b.WriteByte(charactersX[m.IntN(len(charactersX))])
	}
	return b.String()
}

func (m maker) day(zero bool) string {
	d := time.Date(2000+m.IntN(100), time.Month(1+m.IntN(12)), 1+m.IntN(28), 0, 0, 0, 0, time.UTC).Format("060102")
	if zero && m.IntN(4) == 0 {
		return d[:4] + "00"
	}
	return d
}

func (m maker) pieces() string {
	of := 1 + m.IntN(99)
	return fmt.Sprintf("%02d%02d", 1+m.IntN(of), of)
}

// value is a good one of an identifier, and bad ones.
func (m maker) value(ai string) (good string, bad []string) {
	two := ai[:2]
	switch {
	case ai == "00", ai == "8017", ai == "8018":
		good = m.key(18)
	case ai == "01", ai == "02", ai == "03":
		good = m.key(14)
	case ai == "402":
		good = m.key(17)
	case len(ai) == 3 && two == "41":
		good = m.key(13)
	case two >= "11" && two <= "17":
		return m.day(true), []string{"261301", "260230", "26010", "2601011", "26010A", "260132"}
	case ai == "4326":
		return m.day(false), []string{"260100", "261301", "26010", "2601011"}
	case ai == "20":
		return m.digits(2), []string{"1", "123", "1A"}
	case two >= "31" && two <= "36", strings.HasPrefix(ai, "395"), ai == "8005":
		return m.digits(6), []string{"12345", "1234567", "12345A"}
	case ai == "253":
		return m.key(13) + m.text(0, 17), []string{m.key(13) + strings.Repeat("A", 18), m.digits(12), m.wrongKey(13) + "A"}
	case ai == "255":
		return m.key(13) + m.digits(m.IntN(13)), []string{m.key(13) + "A", m.wrongKey(13), m.key(13) + m.digits(13)}
	case ai == "8003":
		return "0" + m.key(13) + m.text(0, 16), []string{"1" + m.key(13), "0" + m.wrongKey(13), "0" + m.key(13) + strings.Repeat("A", 17)}
	case ai == "8006", ai == "8026":
		return m.key(14) + m.pieces(), []string{m.wrongKey(14) + "0101", m.key(14) + "0201", m.key(14) + "0001", m.key(14) + "01"}
	case ai == "8008":
		return m.day(false) + fmt.Sprintf("%02d", m.IntN(24)) + []string{"", "59", "0000", "5959"}[m.IntN(4)], []string{"26010124", "260101235", "2601012360", "260101230060", "26010"}
	case ai == "8010":
		return m.of("#-/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1, 30), []string{"", "a", strings.Repeat("A", 31)}
	case ai == "4307", ai == "4317":
		return m.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 2, 2), []string{"C", "ca", "C1", "CAN"}
	case ai == "4309":
		return fmt.Sprintf("%010d%010d", m.Int64N(1800000001), m.Int64N(3600000001)), []string{"18000000010000000000", "00000000003600000001", "1"}
	case ai >= "4321" && ai <= "4323" && len(ai) == 4:
		return m.digits(1)[:0] + fmt.Sprint(m.IntN(2)), []string{"2", "", "00"}
	case ai == "4324", ai == "4325", ai == "7003":
		return m.day(false) + []string{"9999", "0000", "2359", "1200"}[m.IntN(4)], []string{"2601012400", "2601011260", "2601001200", "26010112"}
	case ai >= "4330" && ai <= "4333" && len(ai) == 4:
		return m.digits(6) + []string{"", "-"}[m.IntN(2)], []string{"12345", "1234567", "123456--"}
	case len(ai) == 4 && ai >= "4300" && ai <= "4320" && ai != "4308" && ai != "4318" && ai != "4319":
		most := 70
		if slices.Contains([]string{"4300", "4301", "4310", "4311", "4320"}, ai) {
			most = 35
		}
		return m.of("ABCabc012+-.", 1, most-3) + "%C3", []string{"", strings.Repeat("A", most+1), "A%G1", "A%C"}
	case ai == "421":
		return m.digits(3) + m.text(1, 9), []string{"124", "12AB", "124" + strings.Repeat("A", 10)}
	case ai == "422", ai == "424", ai == "426":
		return m.digits(3), []string{"12", "1234", "12A"}
	case ai == "425":
		return m.digits(3 + m.IntN(13)), []string{"12", "12A", strings.Repeat("1", 16)}
	case ai == "427":
		return m.text(1, 3), []string{"", "ABCD", "A "}
	case strings.HasPrefix(ai, "391"), strings.HasPrefix(ai, "393"):
		return m.digits(4 + m.IntN(15)), []string{"123", "123A", strings.Repeat("1", 19)}
	case strings.HasPrefix(ai, "394"):
		return m.digits(4), []string{"123", "12345", "123A"}
	case strings.HasPrefix(ai, "39"):
		return m.digits(1 + m.IntN(15)), []string{"", "A", strings.Repeat("1", 16)}
	case ai == "30", ai == "37":
		return m.digits(1 + m.IntN(8)), []string{"", "123456789", "A"}
	case ai == "242":
		return m.digits(1 + m.IntN(6)), []string{"", "1234567", "A"}
	case ai == "7001":
		return m.digits(13), []string{m.digits(12), m.digits(14)}
	case ai == "8011":
		return m.digits(1 + m.IntN(12)), []string{"", m.digits(13), "A"}
	case ai == "8019":
		return m.digits(1 + m.IntN(10)), []string{"", m.digits(11), "A"}
	default: // of the first set alone
		most := map[string]int{"10": 20, "21": 20, "22": 20, "235": 28, "243": 20, "254": 20, "420": 20, "4318": 20, "8007": 34, "8013": 25, "8020": 25, "8200": 70}[ai]
		if most == 0 {
			most = 30
		}
		if ai >= "91" && ai <= "99" && len(ai) == 2 {
			most = 90
		}
		return m.text(1, most), []string{"", strings.Repeat("A", most+1), "A B", "ü", "A^"}
	}
	wrong := []byte(good)
	wrong[len(wrong)-1] = '0' + (wrong[len(wrong)-1]-'0'+byte(1+m.IntN(9)))%10
	return good, []string{string(wrong), good[1:], good + "0", "A" + good[1:]}
}

func (m maker) of(set string, low, high int) string {
	var b strings.Builder
	for range low + m.IntN(high-low+1) {
		b.WriteByte(set[m.IntN(len(set))])
	}
	return b.String()
}

func (m maker) wrongKey(n int) string {
	k := []byte(m.key(n))
	k[n-1] = '0' + (k[n-1]-'0'+1)%10
	return string(k)
}

func tries() int {
	if !ring.Check() {
		return 100
	}
	return 3000
}

// Each identifier: good values are written and read again as element strings and addresses, bad
// ones are refused everywhere.
func TestEveryIdentifier(t *testing.T) {
	t.Parallel()
	links := 0
	for n, x := range gs1.Identifiers() {
		m := maker{rand.New(rand.NewPCG(uint64(n), 7))}
		for range tries() {
			good, bad := m.value(x.AI)
			require.NoError(t, x.Check(good), "(%s) %q", x.AI, good)
			list := elements(x.AI, good)
			label, err := gs1.Encode(list)
			require.NoError(t, err)
			s, err := gs1.Read([]byte("]C1" + label))
			require.NoError(t, err, "(%s) %q", x.AI, good)
			require.Equal(t, list, s.Elements)
			require.Equal(t, gs1.Exact, s.Certainty)
			carrier := append(elements("00", "340123450000000017"), list...)
			if x.AI == "00" {
				carrier = list
			}
			address, err := gs1.Link("https://example.com/a", carrier)
			require.NoError(t, err)
			s, err = gs1.Read([]byte(address))
			require.NoError(t, err, "%s", address)
			require.Equal(t, gs1.DigitalLink, s.Kind, "%s", address)
			require.Equal(t, carrier, s.Elements, "%s", address)
			links++
			wrong := bad[m.IntN(len(bad))]
			require.Error(t, x.Check(wrong), "(%s) %q", x.AI, wrong)
			_, err = gs1.Encode(elements(x.AI, wrong))
			require.ErrorIs(t, err, gs1.ErrElements)
			if s, err := gs1.Read([]byte("]C1" + x.AI + wrong)); err == nil && s.Certainty == gs1.Exact {
				require.NotEqual(t, elements(x.AI, wrong), s.Elements, "(%s) %q", x.AI, wrong)
			}
		}
	}
	require.GreaterOrEqual(t, links, len(gs1.Identifiers())*tries())
}

// Several elements together: read as they were written; and without their separators never
// as anything else.
func TestLabelsOfSeveralElements(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(3, 9))}
	all := gs1.Identifiers()
	counts := map[gs1.Certainty]int{}
	for range tries() * 3 {
		var list []gs1.Element
		for range 1 + m.IntN(4) {
			x := all[m.IntN(len(all))]
			good, _ := m.value(x.AI)
			if slices.ContainsFunc(list, func(e gs1.Element) bool { return e.AI == x.AI }) {
				continue
			}
			list = append(list, gs1.Element{AI: x.AI, Value: good})
		}
		label, err := gs1.Encode(list)
		if err != nil {
			require.ErrorContains(t, err, "exclude", "%v", list)
			continue
		}
		s, err := gs1.Read([]byte("]C1" + label))
		if len(label) > gs1.MaxLabel-3 {
			require.ErrorIs(t, err, gs1.ErrTooLong)
			continue
		}
		require.NoError(t, err, "%q", label)
		require.ElementsMatch(t, list, s.Elements, "%q", label)
		written := s.Elements
		s, err = gs1.Source{DropsSeparators: true}.Read([]byte(strings.ReplaceAll(label, gs, "")))
		require.NoError(t, err, "%q", label)
		counts[s.Certainty]++
		if s.Certainty != gs1.Ambiguous {
			require.Equal(t, written, s.Elements, "%q read as another label", label)
		}
	}
	for _, c := range []gs1.Certainty{gs1.Exact, gs1.Recovered, gs1.Ambiguous} {
		require.NotZero(t, counts[c], "%v", counts)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"]C100340123450000000017", "10ABC17261231", "https://id.gs1.org/01/09521234543213/10/A?17=261231", "]d2" + gs + "21" + gs, strings.Repeat("91", 200), strings.Repeat("10", 250), "]E06291041500213"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, drops bool) {
		s, err := gs1.Source{DropsSeparators: drops}.Read(raw)
		if err != nil {
			return
		}
		if s.Kind == gs1.Plain || s.Certainty == gs1.Ambiguous {
			require.Empty(t, s.Elements)
			return
		}
		require.NotEmpty(t, s.Elements)
		label, err := gs1.Encode(s.Elements)
		require.NoError(t, err, "%+v", s)
		again, err := gs1.Read([]byte("]C1" + label))
		if len(label) > gs1.MaxLabel-3 {
			return
		}
		require.NoError(t, err, "%q", label)
		require.Equal(t, gs1.Exact, again.Certainty)
	})
}

func BenchmarkRead(b *testing.B) {
	label := []byte("]C1003401234500000000174000012" + gs + "401CON123456" + gs + "420M5J2L7")
	for b.Loop() {
		if s, err := gs1.Read(label); err != nil || len(s.Elements) != 4 {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadWithoutSeparators(b *testing.B) {
	label := []byte("4331000250-00340123450000000017")
	for b.Loop() {
		if _, err := (gs1.Source{DropsSeparators: true}).Read(label); err != nil {
			b.Fatal(err)
		}
	}
}
