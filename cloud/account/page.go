package account

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// PageInput asks for a part of a list.
type PageInput struct {
	check.Keyset
	Sort string `query:"sort" doc:"A member, or - and a member; -id when absent"`
}

// page is the part that an input asks for, of a list that can be sorted by some
// members.
func (p PageInput) page(in any, sorts ...string) (cloud.Page, error) {
	if p.Sort != "" && !slices.Contains(sorts, strings.TrimPrefix(p.Sort, "-")) {
		f := newFields()
		f.Say("sort", check.MessageEnum, strings.Join(sorts, ", ")+", -"+strings.Join(sorts, ", -"))
		return cloud.Page{}, f.Err()
	}
	return p.Part(in, cmp.Or(p.Sort, "-id"))
}
