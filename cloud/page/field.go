package page

import "html/template"

// entry is a field of a form, as the template of that name draws it.
type entry struct {
	Name, Type, Value, Label string
	Fill                     string // what browsers fill in, as HTML's autocomplete says
	Max                      int    // characters
	Required                 bool
	Problem                  string // what is wrong with the value; "" when nothing is
}

// formPage is a page with a form.
type formPage interface {
	T(key string, args ...any) string
	Problem(field string) string
}

// formFuncs are what templates of forms call: field makes an entry, whose label
// is a key.
var formFuncs = template.FuncMap{"icon": icon, "initials": initials, "pair": func(page, name any) any {
	return struct{ Page, Name any }{page, name}
}, "field": func(p formPage, name, kind, value, label, fill string, most int, required bool) entry {
	return entry{name, kind, value, p.T(label), fill, most, required, p.Problem(name)}
}}
