package order

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// SearchInput asks for orders by what a person remembers of them.
type SearchInput struct {
	Query  string   `query:"query" json:"query" required:"true" min:"3" max:"100"`
	Limit  *int     `query:"limit" json:"limit" min:"1" max:"50" default:"10"`
	Fields []string `query:"fields" json:"fields" item_enum:"tracking_number,external_tracking_number,order_ref,recipient_name,phone" doc:"All when absent"`
}

// SearchOutput is what was found, best first.
type SearchOutput struct {
	Result  bool    `json:"result"`
	Matches []Match `json:"matches"`
}

// Match is one order that a search found, by the field that fits best.
type Match struct {
	OrderID       cloud.OrderID `json:"order_id"`
	Ref           *string       `json:"order_ref"`
	Number        string        `json:"tracking_number"`
	Field         string        `json:"matched_field"`
	Score         float64       `json:"score"` // 0 to 1; 1 is the same text
	Status        string        `json:"order_status"`
	RecipientName *string       `json:"recipient_name"`
	ScheduledDate *string       `json:"scheduled_date"`
}

const (
	minQuery = 3
	// atLeast is the part of the query's trigrams that a text must have to be
	// like it.
	atLeast = 0.4
	// rowsRead is how many fields of orders are looked at in each way.
	rowsRead = 400
)

var searchFields = [cloud.SearchFields]string{cloud.SearchNumber: "tracking_number", cloud.SearchExternal: "external_tracking_number",
	cloud.SearchRef: "order_ref", cloud.SearchName: "recipient_name", cloud.SearchPhone: "phone"}

// Search finds orders that the caller may see by a part of their numbers,
// reference, recipient's name or telephone number, or when there are none, by
// something like it.
// Error: VALIDATION_FAILED.
func (s *Service) Search(ctx context.Context, c cloud.Caller, in SearchInput) (SearchOutput, error) {
	r, err := reachOf(c)
	if err != nil {
		return SearchOutput{}, err
	}
	r.nothing = r.nothing || r.driver != 0 // drivers have lists
	text := fold(in.Query)
	q := cloud.OrderSearch{BusinessID: r.business, CustomerID: r.customer, BrokerID: r.broker, Limit: rowsRead}
	if q.Fields, err = in.check(text); err != nil {
		return SearchOutput{}, err
	}
	best := map[cloud.OrderID]Match{}
	if !r.nothing {
		err = s.search(ctx, q, text, best)
	}
	// People write telephone numbers in many ways; they are kept as digits.
	if d := digits(text); err == nil && len(d) >= minQuery && d != text && !r.nothing && slices.Contains(q.Fields, cloud.SearchPhone) {
		q.Fields = []cloud.SearchField{cloud.SearchPhone}
		err = s.search(ctx, q, d, best)
	}
	out := SearchOutput{Result: true, Matches: []Match{}}
	for _, m := range best {
		out.Matches = append(out.Matches, m)
	}
	slices.SortFunc(out.Matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.OrderID, a.OrderID))
	})
	limit := 10
	if in.Limit != nil {
		limit = *in.Limit
	}
	out.Matches = out.Matches[:min(len(out.Matches), limit)]
	return out, err
}

// check checks the text that is searched for and gives the fields.
func (in *SearchInput) check(text string) (list []cloud.SearchField, err error) {
	f := newFields()
	if n := utf8.RuneCountInString(text); n < minQuery {
		f.Say("query", check.MessageShort, strconv.Itoa(minQuery), strconv.Itoa(n)) // without blanks
	}
	for i, name := range searchFields {
		if len(in.Fields) == 0 || slices.Contains(in.Fields, name) {
			list = append(list, cloud.SearchField(i))
		}
	}
	return list, f.Err()
}

// search adds to best what contains the text, or when nothing does, what is like
// it.
func (s *Service) search(ctx context.Context, q cloud.OrderSearch, text string, best map[cloud.OrderID]Match) error {
	want := trigrams(text)
	like := q
	q.Text, like.Near = text, near(text)
	for _, q := range []cloud.OrderSearch{q, like} {
		found, err := s.store.SearchOrders(ctx, q)
		if err != nil {
			return err
		}
		for _, m := range found {
			if n := score(text, want, m.Value); n > best[m.Order.ID].Score {
				best[m.Order.ID] = match(m, n)
			}
		}
		if len(best) > 0 {
			return nil
		}
	}
	return nil
}

const (
	// mostGaps is how many places of a text are tried for being wrong.
	mostGaps = 24
	// shortText has no room for a place that is wrong and something on its sides.
	shortText = 6
)

// near lists what texts like this one contain, as alternatives of parts. A text
// that is wrong in one place (a letter more, less, other or exchanged with its
// neighbour) has what stands before it and what stands behind it; words may
// come in another order.
func near(text string) (out [][]string) {
	r := []rune(text)
	if len(r) < shortText {
		for _, g := range trigrams(text) {
			out = append(out, []string{g})
		}
		return out
	}
	step := 1 + len(r)/mostGaps
	for p := 0; p < len(r); p += step {
		before, after := string(r[:p]), string(r[min(p+step+1, len(r)):])
		switch long := len(r) * 3 / 5; {
		case p >= minQuery && len(r)-p-step-1 >= minQuery:
			out = append(out, []string{before, after})
		case p >= long:
			out = append(out, []string{before})
		case len(r)-p-step-1 >= long:
			out = append(out, []string{after})
		}
	}
	words := slices.DeleteFunc(strings.Fields(text), func(w string) bool { return utf8.RuneCountInString(w) < minQuery })
	if len(words) > 1 {
		out = append(out, words)
	}
	return out
}

func match(m cloud.OrderMatch, score float64) Match {
	o := m.Order
	out := Match{OrderID: o.ID, Ref: cloud.OrNull(o.Ref), Number: o.Number, Field: searchFields[m.Field], Score: score, Status: o.Status.String(),
		ScheduledDate: cloud.OrNull(o.ScheduledDate)}
	if a := consignee(o); a != nil {
		out.RecipientName = cloud.OrNull(a.Name)
	}
	return out
}

// score says how well a value fits a text: 1 when it is the same, 0 when it is
// not like it.
func score(text string, want []string, value string) float64 {
	switch {
	case value == text:
		return 1
	case strings.HasPrefix(value, text):
		return 0.95
	case strings.Contains(value, text):
		return 0.9
	}
	has := trigrams(value)
	n := 0
	for _, g := range want {
		if slices.Contains(has, g) {
			n++
		}
	}
	if part := float64(n) / float64(len(want)); part >= atLeast {
		return thousandth(0.85 * part)
	}
	return 0
}

// trigrams lists the runs of three characters of a text, each once.
func trigrams(text string) (out []string) {
	runes := []rune(text)
	for i := 0; i+3 <= len(runes); i++ {
		if g := string(runes[i : i+3]); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}
