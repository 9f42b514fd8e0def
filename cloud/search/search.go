// Package search finds records of all kinds by a text that people know them by.
package search

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

const (
	minText   = 2 // characters
	usualHits = 5 // a noun
)

// Finder finds records of one noun.
type Finder struct {
	Noun string
	// Operation is the one that lists or finds such records: a caller who may not call
	// it finds none.
	Operation string
	// Find gives at most limit records, and no error when there is none.
	Find func(ctx context.Context, c cloud.Caller, text string, limit int) ([]Hit, error)
	// Own says that the records have numbers of the platform alone, which few people
	// know: where anything else is called exactly as the text, they are no exact hits.
	Own bool
}

// Service searches.
type Service struct {
	finders []Finder
	may     func(ctx context.Context, operation string, c cloud.Caller) error
}

// New builds a service. may says why a caller may not call an operation.
func New(may func(ctx context.Context, operation string, c cloud.Caller) error, finders ...Finder) *Service {
	return &Service{finders, may}
}

// Input asks for records.
type Input struct {
	Query string `query:"query" json:"query" required:"true" min:"2" max:"120" line:"true" doc:"A number, reference, telephone number, name, code or email, or its beginning; or the name of a door, with or without its cabinet before it"`
	Limit *int   `query:"limit" json:"limit" min:"1" max:"20" default:"5" doc:"Most hits of each noun"`
}

// Output is what was found: nouns with an exact hit first, then in the order of the
// navigation.
type Output struct {
	Result bool    `json:"result"`
	Groups []Group `json:"groups"`
}

// GraphQLName is the name of the type in GraphQL.
func (Output) GraphQLName() string { return "SearchResults" }

// Group is the records of one noun that were found, exact hits first.
type Group struct {
	Noun string `json:"noun" doc:"cabinet, delivery, order, driver, webhook_log, user, provider or customer"`
	Hits []Hit  `json:"hits"`
	More bool   `json:"more" doc:"There are more than limit"`
}

// GraphQLName is the name of the type in GraphQL.
func (Group) GraphQLName() string { return "SearchGroup" }

// Hit is a record that was found.
type Hit struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Detail string `json:"detail" doc:"What else tells it from others; empty when nothing does"`
	State  string `json:"state" doc:"Empty for records without one"`
	Exact  bool   `json:"exact" doc:"It is called exactly as the query"`
	// DoorName is what pages call it.
	DoorName string `json:"door_name" doc:"Of that door, as on it: pickup_locker_code, or grid_code where there is none"`
	Door     string `json:"door" doc:"Of the cabinet, where the query names a door; else empty"`
}

// GraphQLName is the name of the type in GraphQL.
func (Hit) GraphQLName() string { return "SearchHit" }

// Find finds records of every noun that the caller may read, of the caller's business
// alone. Error: VALIDATION_FAILED.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in Input) (Output, error) {
	text, limit := strings.Join(strings.Fields(in.Query), " "), usualHits
	if n := utf8.RuneCountInString(text); n < minText {
		f := check.Fields{}
		f.Say("query", check.MessageShort, strconv.Itoa(minText), strconv.Itoa(n)) // without blanks
		return Output{}, f.Err()
	}
	if in.Limit != nil {
		limit = *in.Limit
	}
	out := Output{Result: true, Groups: []Group{}}
	var own []int
	exact := false
	for _, f := range s.finders {
		if s.may(ctx, f.Operation, c) != nil {
			continue
		}
		hits, err := f.Find(ctx, c, text, limit+1)
		if err != nil {
			return Output{}, fmt.Errorf("search for %s: %w", f.Noun, err)
		}
		if len(hits) == 0 {
			continue
		}
		slices.SortStableFunc(hits, func(a, b Hit) int { return rank(a.Exact) - rank(b.Exact) })
		g := Group{Noun: f.Noun, Hits: hits[:min(len(hits), limit)], More: len(hits) > limit}
		if f.Own {
			own = append(own, len(out.Groups))
		} else {
			exact = exact || hits[0].Exact
		}
		out.Groups = append(out.Groups, g)
	}
	for _, i := range own {
		for k := range out.Groups[i].Hits {
			h := &out.Groups[i].Hits[k]
			h.Exact = h.Exact && !exact
		}
	}
	slices.SortStableFunc(out.Groups, func(a, b Group) int { return rank(a.Hits[0].Exact) - rank(b.Hits[0].Exact) })
	return out, nil
}

// rank puts exact hits first.
func rank(exact bool) int {
	if exact {
		return 0
	}
	return 1
}

// Same reports whether a text is one of the names, in any case.
func Same(text string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && strings.EqualFold(n, text) })
}
