package account

import (
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// PageInput asks for a part of a list.
type PageInput struct {
	check.Paging
	Sort string `query:"sort" doc:"A member, or - and a member; -id when absent"`
}

// PageOutput says which part of a list it is.
type PageOutput struct {
	Total   int `json:"total"`
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
}

// page is the part that is asked for, of a list that can be sorted by some
// members.
func (in PageInput) page(sorts ...string) (cloud.Page, error) {
	f := newFields()
	_, size, offset := in.Window()
	p := cloud.Page{Sort: "id", Down: true, Offset: offset, Limit: size}
	if in.Sort != "" {
		p.Sort, p.Down = strings.CutPrefix(in.Sort, "-")
	}
	if !slices.Contains(sorts, p.Sort) {
		f.Say("sort", check.MessageEnum, strings.Join(sorts, ", ")+", -"+strings.Join(sorts, ", -"))
	}
	return p, f.Err()
}

func (in PageInput) output(total int) PageOutput {
	page, perPage, _ := in.Window()
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
