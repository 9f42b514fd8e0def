package otep

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sheet is the protocol's own text, whose tables ours must equal.
type sheet []string

func readSheet(t *testing.T) sheet {
	t.Helper()
	b, err := os.ReadFile("../../docs/interface/otep.md")
	require.NoError(t, err)
	return strings.Split(string(b), "\n")
}

var marks = regexp.MustCompile(`\s*\[(?:seed|public|standard|decided)[^\]]*\]`)

// table gives the cells below the header that starts with the given words.
func (s sheet) table(t *testing.T, header string) [][]string {
	t.Helper()
	var out [][]string
	in := false
	for _, line := range s {
		if strings.HasPrefix(line, "| "+header) {
			in = true
			continue
		}
		if !in || strings.HasPrefix(line, "|---") {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(marks.ReplaceAllString(line, ""), "| "), "|")
		if strings.HasSuffix(strings.TrimSpace(line), "| |") {
			cells = append(cells, "")
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "`", ""))
		}
		out = append(out, cells)
	}
	require.NotEmpty(t, out, header)
	return out
}

func TestCodesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	s := readSheet(t)
	rows := s.table(t, "# | code | phase")
	require.Len(t, rows, len(universal))
	second := s.table(t, "code | Rec. 24 | AfterShip")
	for i, r := range rows {
		c := universal[i]
		require.Equal(t, r, []string{strconv.Itoa(i + 1), string(c.Code), c.Phase, yes(c.Terminal), yes(c.PoD), c.BizStep, c.Disposition, c.OneRecord, c.Transport, c.Meaning})
		subtag := c.AfterShipSubtag
		if c.AfterShipSigned != "" {
			subtag += " (_" + c.AfterShipSigned[len(c.AfterShipSigned)-3:] + " with a pod recipient or signature)"
		}
		require.Equal(t, second[i], []string{string(c.Code), c.Rec24, c.AfterShipTag + " / " + subtag, c.Shopify, c.Amazon + " / " + c.AmazonSummary})
	}
	for _, r := range s.table(t, "codes | Walmart") {
		for _, n := range numbers(t, r[0]) {
			c := universal[n-1].Coarse
			require.Equal(t, r[1:], []string{c.Walmart, fmt.Sprint(c.BigCommerceID, " ", c.BigCommerce), c.MagentoState + " / " + c.MagentoStatus, c.WooCommerce, fmt.Sprint(c.Etsy, ", ", c.EtsyShipped)}, "code %d", n)
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// numbers reads "5, 8 to 14, 17".
func numbers(t *testing.T, s string) (out []int) {
	t.Helper()
	for part := range strings.SplitSeq(s, ", ") {
		from, to, ok := strings.Cut(part, " to ")
		if !ok {
			to = from
		}
		a, err := strconv.Atoi(from)
		require.NoError(t, err)
		b, err := strconv.Atoi(to)
		require.NoError(t, err)
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out
}

func TestMovesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	total := 0
	for _, r := range readSheet(t).table(t, "from | valid next codes") {
		var next []string
		for _, c := range Next(Code(r[0])) {
			next = append(next, string(c))
		}
		total += len(next)
		if r[1] == "(none)" {
			require.Empty(t, next, r[0])
			continue
		}
		require.Equal(t, r[1], strings.Join(next, ", "), r[0])
	}
	require.Equal(t, 223, total)
}

func TestOtherTablesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	s := readSheet(t)
	reasons := s.table(t, "code | meaning | CBV")
	require.Len(t, reasons, 33)
	for i, r := range reasons {
		c := incidents[i]
		require.Equal(t, r[:6], []string{c.Code, c.Meaning, c.Disposition, c.Rec24, c.AfterShipSubtag, c.AmazonDetail})
	}
	types := s.table(t, "Value | Meaning | Accepted")
	require.Len(t, types, len(families))
	for i, r := range types {
		require.Equal(t, r, []string{families[i].Type, families[i].Meaning, strings.Join(families[i].Spellings, ", ")})
	}
	kinds := s.table(t, "type | unit | EPCIS")
	require.Len(t, kinds, len(sensors))
	for i, r := range kinds {
		kind, _, _ := strings.Cut(r[0], " ")
		require.Equal(t, []string{kind, r[1], r[2], r[3]}, []string{sensors[i].Type, sensors[i].Unit, sensors[i].EPCIS, sensors[i].QUDT})
	}
	own := s.table(t, "Profile | Code | Phase")
	require.Len(t, own, len(special))
	for i, r := range own {
		c, ok := Lookup(Code(r[1]))
		require.True(t, ok, r[1])
		require.Equal(t, special[i].Code, c.Code)
		require.Equal(t, r[:4], []string{c.Profile, string(c.Code), c.Phase, string(c.Parent)})
		parent, _ := Lookup(c.Parent)
		require.Equal(t, r[4], differences(c, parent), "%s differs from its parent in what the text says, and in nothing else", c.Code)
	}
}

// differences writes what a code's external values change, as the text does.
func differences(c, parent Spec) string {
	var out []string
	add := func(changed bool, words string) {
		if changed {
			out = append(out, words)
		}
	}
	add(c.BizStep != parent.BizStep, "bizStep "+c.BizStep)
	add(c.Disposition != parent.Disposition, "disposition "+c.Disposition)
	add(c.OneRecord != parent.OneRecord, "ONE Record "+c.OneRecord)
	add(c.Transport != parent.Transport, "UN/CEFACT "+c.Transport)
	add(c.Rec24 != parent.Rec24, "Rec. 24 "+c.Rec24)
	add(c.AfterShipTag != parent.AfterShipTag || c.AfterShipSubtag != parent.AfterShipSubtag, "AfterShip "+c.AfterShipTag+" / "+c.AfterShipSubtag)
	add(c.Shopify != parent.Shopify, "Shopify "+c.Shopify)
	add(c.Amazon != parent.Amazon || c.AmazonSummary != parent.AmazonSummary, "Amazon "+c.Amazon+" / "+c.AmazonSummary)
	add(c.Coarse != parent.Coarse || c.Uncollected != parent.Uncollected, "coarse")
	add(c.Reason != parent.Reason, "reason "+c.Reason+" implied")
	return strings.Join(out, "; ")
}
