package route

import (
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// RoutePage asks for a part of a list of routes.
type RoutePage struct {
	check.Paging
	Sort string `query:"sort" json:"sort" enum:"-id,id,-date,date,-name,name" doc:"-id when absent"`
}

// PageOutput says which part of a list it is.
type PageOutput struct {
	Total   int `json:"total"`
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
}

// pageOf is the part of a list that is asked for; it is sorted by -id when sort is
// empty.
func pageOf(p check.Paging, sort string) cloud.Page {
	_, perPage, offset := p.Window()
	out := cloud.Page{Sort: "id", Down: true, Offset: offset, Limit: perPage}
	if sort != "" {
		out.Sort, out.Down = strings.CutPrefix(sort, "-")
	}
	return out
}

func pageOutput(p check.Paging, total int) PageOutput {
	page, perPage, _ := p.Window()
	return PageOutput{total, page, perPage}
}
