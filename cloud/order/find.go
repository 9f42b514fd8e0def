package order

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
)

// Found is an order that a short search found.
type Found struct {
	Match
	StatusID cloud.OrderStatus
}

// wholePhone is how many digits a text needs to be taken for a telephone number before it
// is taken for anything else.
const wholePhone = 7

// FindByText finds at most limit orders that the caller may see: those with exactly this
// number, of their own or of a package, or reference, or else the newest that contain the
// text in their numbers, reference, recipient's name or telephone number. It finds nothing
// that is only like the text, and reads no more rows of the search than it needs: what
// many orders contain is found at once, newest first.
func FindByText(ctx context.Context, s *Service, c cloud.Caller, text string, limit int) (out []Found, err error) {
	r, err := reachOf(c)
	if err != nil || r.nothing || r.driver != 0 {
		return nil, err
	}
	add := func(o cloud.Order, field cloud.SearchField, score float64) {
		if len(out) < limit && r.sees(o) && !slices.ContainsFunc(out, func(m Found) bool { return m.OrderID == o.ID }) {
			out = append(out, Found{match(cloud.OrderMatch{Order: o, Field: field}, score), o.Status})
		}
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		numbers := []string{text}
		if number, ok := cloud.OrderNumber(text); ok {
			numbers = append(numbers, number)
		}
		for _, number := range numbers {
			o, err := v.OrderByNumber(r.business, number)
			switch {
			case err == nil && (number == text || slices.ContainsFunc(o.Packages, func(p cloud.OrderPackage) bool { return cloud.NumberKey(p.Number) == cloud.NumberKey(text) })):
				add(o, cloud.SearchNumber, 1)
			case err != nil && !errors.Is(err, cloud.ErrNotFound):
				return err
			}
		}
		same, err := v.OrdersByRef(r.business, strings.TrimSpace(text))
		for _, o := range same {
			add(o, cloud.SearchRef, 1)
		}
		return err
	})
	text = fold(text)
	if err != nil || len(out) > 0 || utf8.RuneCountInString(text) < minQuery {
		return out, err
	}
	q := cloud.OrderSearch{BusinessID: r.business, CustomerID: r.customer, BrokerID: r.broker, Limit: limit + cloud.SearchFields, Text: text,
		Fields: []cloud.SearchField{cloud.SearchNumber, cloud.SearchExternal, cloud.SearchRef, cloud.SearchName, cloud.SearchPhone}}
	searches := []cloud.OrderSearch{q}
	if d := digits(text); len(d) >= minQuery && d != text && strings.Trim(text, "+-()./ 0123456789") == "" { // as telephone numbers are written
		phones := q
		phones.Text, phones.Fields = d, []cloud.SearchField{cloud.SearchPhone}
		searches = append(searches, phones)
		if len(d) >= wholePhone {
			slices.Reverse(searches)
		}
	}
	var found []cloud.OrderMatch
	for _, x := range searches {
		if err == nil && len(found) == 0 {
			found, err = s.store.SearchOrders(ctx, x)
		}
	}
	want := trigrams(text)
	slices.SortStableFunc(found, func(a, b cloud.OrderMatch) int {
		x, y := score(text, want, a.Value), score(text, want, b.Value)
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, m := range found {
		add(m.Order, m.Field, score(text, want, m.Value))
	}
	return out, err
}
