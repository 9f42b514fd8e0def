package account

import (
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// PageInput asks for a part of a list.
type PageInput struct {
	Page    *int   `query:"page" doc:"From 1"`
	PerPage *int   `query:"per_page" doc:"1 to 200, 20 when absent"`
	Sort    string `query:"sort" doc:"A member, or - and a member; -id when absent"`
}

// PageOutput says which part of a list it is.
type PageOutput struct {
	Total   int `json:"total"`
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
}

// mostPages keeps what a database is asked to skip inside its numbers.
const mostPages = 1 << 30

// page is the part that is asked for, of a list that can be sorted by some
// members.
func (in PageInput) page(sorts ...string) (cloud.Page, error) {
	f := newFields()
	n, size := in.numbers()
	if n < 1 || n > mostPages {
		f.Add("page", "Use a page from 1.")
	}
	if size < 1 || size > 200 {
		f.Add("per_page", "The value must be between 1 and 200.")
	}
	p := cloud.Page{Sort: "id", Down: true, Offset: (n - 1) * size, Limit: size}
	if in.Sort != "" {
		p.Sort, p.Down = strings.CutPrefix(in.Sort, "-")
	}
	if !slices.Contains(sorts, p.Sort) {
		f.Add("sort", "The value is not one of those allowed.")
	}
	return p, f.Err()
}

func (in PageInput) numbers() (page, perPage int) {
	page, perPage = 1, 20
	if in.Page != nil {
		page = *in.Page
	}
	if in.PerPage != nil {
		perPage = *in.PerPage
	}
	return page, perPage
}

func (in PageInput) output(total int) PageOutput {
	page, perPage := in.numbers()
	return PageOutput{total, page, perPage}
}

// partOf is a part of a short list that is sorted by id.
func partOf[T any](list []T, p cloud.Page) []T {
	if p.Down {
		slices.Reverse(list)
	}
	from := min(p.Offset, len(list))
	return list[from:min(from+p.Limit, len(list))]
}
