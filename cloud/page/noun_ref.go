package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
)

// references are the titles of the records that a page names by their IDs, read once
// for a page and as far as its visitor may read them.
type references struct {
	p     nounPages
	c     context.Context
	ctx   *fasthttp.RequestCtx
	v     visitor
	known map[string][]choice // by the noun's name
	pages map[string]bool     // whether the visitor has a page of a record, by the noun's name
	// cabinet is the id of the cabinet whose doors are named, nil for none; doors are
	// those, by the id of a compartment, once one was asked for.
	cabinet any
	doors   map[string]shown
	titles  map[string]string // of records that were read by themselves, by noun and id
}

func (p nounPages) references(c context.Context, ctx *fasthttp.RequestCtx, v visitor) *references {
	return &references{p: p, c: c, ctx: ctx, v: v, known: map[string][]choice{}, titles: map[string]string{}, pages: map[string]bool{}}
}

// choices are the records that an input chooses a member from, nil when there are none or
// too many.
func (r *references) choices(member string) []choice {
	n := r.p.cfg.Catalog.NounOf(lastPart(member))
	if n == nil {
		return nil
	}
	filters, also := n.Also[lastPart(member)]
	if also && filters == nil {
		return nil
	}
	return r.listed(n, filters)
}

// listed are the records of a noun that has few, by filters of its list; nil when there
// are too many.
func (r *references) listed(n *catalog.Noun, filters map[string]any) []choice {
	if !n.Named || !r.p.mayAny(r.c, r.v, n.List) {
		return nil
	}
	key := n.Name + marshalJSON(filters)
	list, ok := r.known[key]
	if !ok {
		list = r.read(n, filters)
		r.known[key] = list
	}
	return append([]choice(nil), list...)
}

func (r *references) read(n *catalog.Noun, filters map[string]any) (list []choice) {
	in := map[string]any{}
	maps.Copy(in, filters)
	pageSize(r.p.cfg.Catalog.Find(n.List), maxRefs, in)
	answer, err := r.p.read(r.c, r.ctx, r.v, n.List, in)
	if err != nil || answer["next_cursor"] != nil {
		return nil
	}
	member, _ := r.p.cfg.Catalog.Find(n.List).Listed()
	rows, _ := answer[member].([]any)
	for _, x := range rows {
		if record, ok := x.(map[string]any); ok {
			list = append(list, choice{Value: plainText(record[n.ID]), Text: titleOf(r.v.Lang, n, record)})
		}
	}
	return list
}

// maxTitles is how many records of nouns with many a page reads for their titles.
const maxTitles = 60

// title is name for a fact about one record: the title of a record of a noun with many is
// read by itself, for a few of them on a page.
func (r *references) title(member string, s shown) shown {
	named := r.name(member, s)
	if named.To == "" || named.Out || named.Text != s.Text || named.Text == "" {
		return named
	}
	named.Text = r.titleOf(r.p.cfg.Catalog.NounOf(lastPart(member)), s.Text)
	return named
}

// titleOf is what a record is called, its id where it is gone, the visitor may not read
// it, or the page has read enough.
func (r *references) titleOf(n *catalog.Noun, id string) string {
	key := n.Name + " " + id
	text, known := r.titles[key]
	if !known && len(r.titles) < maxTitles && n.Find != "" && r.p.mayAny(r.c, r.v, n.Find) {
		if record, err := r.p.find(r.c, r.ctx, r.v, n, id); err == nil {
			text = titleOf(r.v.Lang, n, record)
		}
		r.titles[key] = text
	}
	return cmp.Or(text, id)
}

// door is the door of the record's cabinet that the id of a compartment names.
func (r *references) door(grid string) (shown, bool) {
	if r.doors == nil && r.cabinet != nil {
		r.doors = map[string]shown{}
		r.readDoors()
	}
	d, ok := r.doors[grid]
	return d, ok
}

func (r *references) readDoors() {
	const find = "smart_lockers.devices.find"
	n := r.p.cfg.Catalog.NounOf("device_id")
	if n == nil || !r.p.mayAny(r.c, r.v, find) {
		return
	}
	found, err := r.p.read(r.c, r.ctx, r.v, find, map[string]any{"id": r.cabinet})
	if err != nil { // the ids stay
		return
	}
	device, _ := found["device"].(map[string]any)
	grids, _ := device["grids"].([]any)
	for _, x := range grids {
		if g, ok := x.(map[string]any); ok {
			code := plainText(g["grid_code"])
			r.doors[plainText(g["grid_id"])] = shown{Text: outside(plainText(g["door_name"]), maxValue), To: ConsolePath + "/" + n.Path + "/" + url.PathEscape(plainText(r.cabinet)) + "#door-" + url.PathEscape(code)}
		}
	}
}

// name shows the title of the record that a value names, in place of its ID.
func (r *references) name(member string, s shown) shown {
	if lastPart(member) == "grid_id" {
		if d, ok := r.door(s.Text); ok {
			return d
		}
	}
	if s.To == "" || s.Out {
		return s
	}
	if !r.opens(member) {
		return shown{Text: r.own(lastPart(member), s.Text)}
	}
	n := r.p.cfg.Catalog.NounOf(lastPart(member))
	list := r.listed(n, nil)
	for _, c := range list {
		if c.Value == s.Text {
			s.Text = c.Text
			return s
		}
	}
	if _, also := n.Also[lastPart(member)]; also { // of another kind, as an operator of the platform is
		return shown{Text: r.own(lastPart(member), s.Text)}
	}
	if list != nil { // one that the list leaves out, as a mock cabinet
		s.Text = r.titleOf(n, s.Text)
	}
	return s
}

// opens reports whether the visitor has the page of the records that a member names.
func (r *references) opens(member string) bool {
	n := r.p.cfg.Catalog.NounOf(lastPart(member))
	may, known := r.pages[n.Name]
	if !known {
		may = r.p.mayAny(r.c, r.v, n.Find, n.List)
		r.pages[n.Name] = may
	}
	return may
}

// own is the name of the visitor's own business or account in place of its ID.
func (r *references) own(member, id string) string {
	a := r.v.c.Account
	switch {
	case member == "business_id" && id == fmt.Sprint(int64(a.BusinessID)):
		return outside(r.v.business, maxValue)
	case id == fmt.Sprint(int64(a.ID)) && slices.Contains(accountMembers, member):
		return outside(a.Name, maxValue)
	}
	return id
}

// accountMembers are members that name an account.
var accountMembers = []string{"account_id", "broker_id", "customer_id", "driver_id", "user_id"}
