package gs1

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// primaryKeys are the identifiers that begin the GS1 part of an address, with their qualifiers
// in order; of qualifiers in one group a label has one (Digital Link URI Syntax, 4.7).
var primaryKeys = map[string][][]string{
	"00": nil, "01": {{"22"}, {"10"}, {"21", "235"}}, "253": nil, "255": nil, "401": nil, "402": nil, "414": {{"254"}}, "415": {{"8020"}}, "417": nil,
	"8003": nil, "8004": nil, "8006": {{"22"}, {"10"}, {"21"}}, "8010": {{"8011"}}, "8013": nil, "8017": {{"8019"}}, "8018": {{"8019"}},
}

// keyOrder are the primary keys in the order in which one is chosen for a link.
var keyOrder = []string{"00", "8006", "01", "8010", "8017", "8018", "8003", "8004", "414", "415", "417", "253", "255", "401", "402", "8013"}

// errNoLink is the error of an address that names nothing of GS1.
var errNoLink = errors.New("the address has no GS1 key")

func isAddress(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// parseLink reads a GS1 Digital Link of any domain. Errors: errNoLink, ErrElements.
func parseLink(s string) ([]Element, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, errNoLink
	}
	segments := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	at := -1
	for i, seg := range segments { // what stands before it is the path of the domain's own
		if _, ok := primaryKeys[seg]; ok && (len(segments)-i)%2 == 0 && isPairs(segments[i:]) {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, errNoLink
	}
	var list []Element
	order := primaryKeys[segments[at]]
	for i := at; i < len(segments); i += 2 {
		ai := segments[i]
		value, err := url.PathUnescape(segments[i+1])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrElements, err)
		}
		if ai == "01" && slices.Contains([]int{8, 12, 13}, len(value)) {
			value = strings.Repeat("0", 14-len(value)) + value
		}
		if i > at {
			group := slices.IndexFunc(order, func(g []string) bool { return slices.Contains(g, ai) })
			if group < 0 {
				return nil, fmt.Errorf("%w: (%s) is no qualifier of (%s), or stands too late", ErrElements, ai, segments[at])
			}
			order = order[group+1:]
		}
		list = append(list, Element{ai, value})
	}
	for _, pair := range strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		ai, value, _ := strings.Cut(pair, "=")
		if number(ai) < 0 || len(ai) < 2 || len(ai) > 4 {
			continue // the domain's own
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrElements, err)
		}
		list = append(list, Element{ai, value})
	}
	return list, checkAll(list)
}

// isPairs reports whether a path consists of identifiers and values in turn.
func isPairs(segments []string) bool {
	for i := 0; i < len(segments); i += 2 {
		if Find(segments[i]) == nil {
			return false
		}
	}
	return true
}

// Link writes elements as a GS1 Digital Link of a domain such as https://id.gs1.org: with the
// first key that they have, its qualifiers in order, and the others as a query by number.
// Errors: ErrElements.
func Link(domain string, list []Element) (string, error) {
	if err := checkAll(list); err != nil {
		return "", err
	}
	key := slices.IndexFunc(keyOrder, func(ai string) bool { return has(list, ai) })
	if key < 0 {
		return "", fmt.Errorf("%w: there is no key that an address may begin with", ErrElements)
	}
	path := []string{keyOrder[key]}
	for _, group := range primaryKeys[keyOrder[key]] {
		for _, ai := range group {
			if has(list, ai) {
				path = append(path, ai)
				break
			}
		}
	}
	out := strings.TrimRight(domain, "/")
	var query []string
	for _, ai := range path {
		at := slices.IndexFunc(list, func(e Element) bool { return e.AI == ai })
		out += "/" + ai + "/" + url.PathEscape(list[at].Value)
	}
	for _, e := range list {
		if !slices.Contains(path, e.AI) {
			query = append(query, e.AI+"="+url.QueryEscape(e.Value))
		}
	}
	if slices.Sort(query); len(query) > 0 {
		out += "?" + strings.Join(slices.Compact(query), "&")
	}
	return out, nil
}
