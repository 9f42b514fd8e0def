package catalog

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// OwnAccount is where records of a noun begin that people make on their own account's page.
const OwnAccount = "account"

// Noun is a kind of record as the console shows it. It stands in the row of its list,
// or of the operation that finds it where there is no list. Lists, details, forms and
// the navigation follow from it and from its operations; a caller sees the part that
// Pipeline.May allows. Words are those of package locale: noun.NAME, noun.NAME.one,
// noun.NAME.empty, verb.OPERATION and member.MEMBER.
//
// What a row leaves out follows from its list, such as skills.list: Find and Create are
// skills.find and skills.create, where they exist, Path is skills, ID is NAME_id where
// records have it and are shown by themselves, and Title is name.
type Noun struct {
	Name string // in the singular: order
	Path string // of its pages below the console: orders
	Area string // of the navigation, one of Areas; "" for records that are shown with another alone
	Icon string // of the icons of the pages
	Key  string // letter that leads to the list after g; "" none
	// ID is the member of a record that names it in addresses of operations; "" for
	// records that have no page of their own.
	ID string
	// Refs are members of other records and of inputs that hold an ID of this noun.
	Refs []string
	// Also are further members that hold an ID of one of its records, with the filters of
	// its list that give those of them that inputs choose from: broker_id is a person of
	// the type broker. A member without filters is shown by name and not chosen.
	Also map[string]map[string]any
	// Named says that pages show the title of a record where another holds its ID: for
	// nouns with few records.
	Named bool
	// Title are the members that people call a record by; the first that has a value
	// counts.
	Title []string
	// State is the member with the state of a record, and States the kind of its words
	// in package locale.
	State, States string
	// Usual are the states that lists offer as chips, where there are more than six.
	Usual []string
	// List, Find and Create are operations; "" where there is none, "-" in a row where none
	// is shown. A noun without a list is one record of the business, such as its settings.
	List, Find, Create string
	// Others are nouns that are made in place of one, such as invitations of people: their
	// forms stand beside the noun's own.
	Others []string
	// Begin is a noun whose page an empty list leads to, for records that come of its own, or
	// OwnAccount.
	Begin string
	// Columns are members of a listed record, by path (recipient.name). Phones show the
	// first three.
	Columns []string
	// Verbs are operations about one record, whose first path member is the ID. The
	// first three are buttons, the others stand in a menu.
	Verbs []string
	// Keys are letters that press a verb on pages, by its operation.
	Keys    map[string]string
	Related []Relation
	// Story are the operations whose answers tell what happened to a record.
	Story []Strand
	// Links are further pages about a record.
	Links []Link
	// Parts are the choices that a record offers to its verbs: their input Input names
	// elements of the record's list Of.
	Parts []Part
	// Live are the kinds of changes (cloud.Touch) that the records follow, which are the
	// same for all of a business's staff with the same rights. nil: they follow all
	// changes, and each person's are read for that person.
	Live []string
	// Page is the address of a drawn page that stands in for the generated detail, with
	// {id} for the ID; "" for none.
	Page string
}

// Relation is a list of another noun that is shown with a record: those whose member
// By, of the path or a filter, is the record's ID.
type Relation struct{ Noun, By string }

// Link is another page about a record: To is its address, with members of the record in
// braces, and Words the key of its name. It is shown to callers with the right to call
// Operation, and where each member has a value.
type Link struct {
	Words, To, Operation string
	// Only are members that a record has the link by, with their values.
	Only map[string]string
}

// Part offers the elements of a record's list for a member of an input: doors of a
// cabinet, packages of an order. Only names members that belong to one element, by its ID: a
// form whose record does not offer it leaves them out.
type Part struct {
	Input, Of, ID, Title string
	Only                 map[string]string
}

// Strand is a part of a record's story: the rows that an operation answers, in one
// column with those of the others, by time.
type Strand struct {
	Operation string
	// Fills are members of the operation's input, with members of the record in braces:
	// order:{order_id}.
	Fills map[string]string
	// Only are members that a record has this part of the story by, with their values.
	Only map[string]string
	Rows string // path of the list in the answer
	Icon string
	// At is the member of a row with its time, What the one that says what happened,
	// and Words the kind of its words in package locale, otep for a tracking status.
	At, What, Words string
	More            []string // further members, by path
	State, States   string   // as of a Noun
	Noun            string   // that the rows are; "" for none with pages
}

// Areas are the parts of the navigation in their order.
func Areas() []string { return []string{"platform", "lockers", "delivery", "connections", "business"} }

// MakeNouns makes the nouns of the rows, those named here first and in this order. It
// leaves out verbs that a deployment does not serve, and panics, at start, when a noun
// names a member or a noun that does not exist.
func (c *Catalog) MakeNouns(order ...string) {
	for i := range c.list {
		o := &c.list[i]
		if o.Noun != nil {
			c.nouns = append(c.nouns, c.fillNoun(o))
		}
	}
	place := func(n Noun) int {
		if i := slices.Index(order, n.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(c.nouns, func(a, b Noun) int { return place(a) - place(b) })
	for i := range c.nouns {
		if err := c.checkNoun(&c.nouns[i]); err != nil {
			panic(fmt.Sprintf("catalog: noun %s: %v", c.nouns[i].Name, err))
		}
	}
}

// fillNoun adds to a row's noun what follows from the row.
func (c *Catalog) fillNoun(o *Operation) Noun {
	n := *o.Noun
	dot := strings.LastIndexByte(o.Name, '.')
	family, verb := o.Name[:max(dot, 0)], o.Name[dot+1:]
	_, of := o.Listed()
	switch verb {
	case "find":
		n.Find = o.Name
	case "list":
		n.List = o.Name
		n.Find = cmp.Or(n.Find, family+".find")
		n.Create = cmp.Or(n.Create, family+".create")
	default: // a list that is shown with another record
		n.List = o.Name
	}
	if c.byName[n.Find] == nil {
		n.Find = ""
	}
	if create := c.byName[n.Create]; create == nil || create.Target() != "" {
		n.Create = ""
	}
	n.Verbs = slices.DeleteFunc(slices.Clone(n.Verbs), func(name string) bool { return c.byName[name] == nil })
	n.Path = cmp.Or(n.Path, strings.NewReplacer("_", "-", ".", "-").Replace(family))
	if id := n.Name + "_id"; n.ID == "" && n.Find+n.Area != "" && of != nil && memberAt(of, id) != nil {
		n.ID = id
	}
	if len(n.Title) == 0 && of != nil && memberAt(of, "name") != nil {
		n.Title = []string{"name"}
	}
	return n
}

// Nouns lists the nouns in the order in which they were added.
func (c *Catalog) Nouns() []Noun { return slices.Clone(c.nouns) }

// NounAt finds the noun whose pages have a path; nil when there is none.
func (c *Catalog) NounAt(path string) *Noun {
	i := slices.IndexFunc(c.nouns, func(n Noun) bool { return n.Path == path })
	if i < 0 {
		return nil
	}
	return &c.nouns[i]
}

// Noun finds a noun by name; nil when there is none.
func (c *Catalog) Noun(name string) *Noun {
	i := slices.IndexFunc(c.nouns, func(n Noun) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &c.nouns[i]
}

// NounOf finds the noun whose IDs a member holds; nil when there is none.
func (c *Catalog) NounOf(member string) *Noun {
	i := slices.IndexFunc(c.nouns, func(n Noun) bool {
		_, also := n.Also[member]
		return also || slices.Contains(n.Refs, member)
	})
	if i < 0 {
		return nil
	}
	return &c.nouns[i]
}

// NounWith finds the noun that an operation is a verb of, lists, finds or creates; nil when
// there is none.
func (c *Catalog) NounWith(operation string) *Noun {
	i := slices.IndexFunc(c.nouns, func(n Noun) bool {
		return operation != "" && (slices.Contains(n.Verbs, operation) || slices.Contains([]string{n.List, n.Find, n.Create}, operation))
	})
	if i < 0 {
		return nil
	}
	return &c.nouns[i]
}

func (c *Catalog) checkNoun(n *Noun) error {
	same := func(o Noun) bool { return o.Name == n.Name || o.Path == n.Path }
	switch {
	case slices.IndexFunc(c.nouns, same) != slices.IndexFunc(c.nouns, func(o Noun) bool { return o.Name == n.Name && o.Path == n.Path }):
		return fmt.Errorf("the name or the path is there twice")
	case n.Area != "" && !slices.Contains(Areas(), n.Area):
		return fmt.Errorf("the area %s is unknown", n.Area)
	}
	for _, name := range slices.Concat([]string{n.List, n.Find, n.Create}, n.Verbs) {
		if name != "" && c.byName[name] == nil {
			return fmt.Errorf("the operation %s does not exist", name)
		}
	}
	if n.List != "" {
		_, of := c.byName[n.List].Listed()
		if of == nil {
			return fmt.Errorf("%s lists no records", n.List)
		}
		for _, path := range slices.Concat(n.Columns, n.Title, []string{n.ID, n.State}) {
			if path != "" && memberAt(of, path) == nil {
				return fmt.Errorf("records of %s have no member %s", n.List, path)
			}
		}
	}
	if n.Find != "" {
		if _, of := c.byName[n.Find].Found(); of == nil {
			return fmt.Errorf("%s finds no record", n.Find)
		}
	}
	for _, kind := range n.Live {
		if !slices.Contains(cloud.TouchKinds(), kind) {
			return fmt.Errorf("there are no changes of the kind %s", kind)
		}
	}
	for _, verb := range n.Verbs {
		if member, _ := n.About(c.byName[verb]); n.ID != "" && member == "" {
			return fmt.Errorf("%s is about no record", verb)
		}
		if u := c.byName[verb].Undo; u != nil && (c.byName[verb].Risk != RiskLow || !slices.Contains(n.Verbs, u.Operation)) {
			return fmt.Errorf("%s cannot be taken back by %s: the risk is not low, or it is no verb of the noun", verb, u.Operation)
		}
	}
	for _, x := range n.Story {
		o := c.byName[x.Operation]
		if o == nil || x.Noun != "" && c.Noun(x.Noun) == nil {
			return fmt.Errorf("the story has the operation %s or the noun %s, which does not exist", x.Operation, x.Noun)
		}
		for member := range x.Fills {
			if !slices.ContainsFunc(o.Members(), func(m Member) bool { return m.Name == member }) {
				return fmt.Errorf("%s has no member %s", x.Operation, member)
			}
		}
		of := o.out
		for name := range strings.SplitSeq(x.Rows, ".") {
			f := memberAt(of, name)
			if f == nil {
				return fmt.Errorf("%s does not answer %s", x.Operation, x.Rows)
			}
			for of = f.Type; of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice; {
				of = of.Elem()
			}
		}
		for _, path := range append([]string{x.At, x.What, x.State}, x.More...) {
			if path != "" && of.Kind() != reflect.Interface && memberAt(of, path) == nil {
				return fmt.Errorf("rows of %s have no member %s", x.Operation, path)
			}
		}
	}
	for verb, key := range n.Keys {
		if !slices.Contains(n.Verbs, verb) || len(key) != 1 || strings.Contains("jkxgefm/.?", key) {
			return fmt.Errorf("%s is no verb of the noun, or its key %q is one of every page", verb, key)
		}
	}
	for _, r := range n.Related {
		o := c.Noun(r.Noun)
		if o == nil || o.List == "" || !slices.ContainsFunc(c.byName[o.List].Members(), func(m Member) bool { return m.Name == r.By }) {
			return fmt.Errorf("no list of %s is filtered by %s", r.Noun, r.By)
		}
	}
	return nil
}

// About is the member of a verb's input that names the record: the first of its path, or
// else the ID or a list of IDs in its body. "" when no member does.
func (n *Noun) About(o *Operation) (member string, many bool) {
	if member = o.Target(); member != "" {
		return member, false
	}
	for _, m := range o.Members() {
		switch {
		case slices.Contains(n.Refs, m.Name):
			return m.Name, false
		case slices.Contains(n.Refs, strings.TrimSuffix(m.Name, "s")):
			return m.Name, true
		}
	}
	return "", false
}

// Target is the first member of the path, which says what a call is about; "" when
// the path has none.
func (o *Operation) Target() string {
	_, rest, ok := strings.Cut(o.Path, "{")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "}")
	return name
}

// Listed is the member of a list's answers that holds the records, and their type, a
// struct; nil for an operation that answers no list.
func (o *Operation) Listed() (member string, of reflect.Type) {
	return o.answered(func(t reflect.Type) reflect.Type {
		if t.Kind() != reflect.Slice {
			return nil
		}
		return structOf(t.Elem())
	})
}

// Found is the member of an answer that holds one record, and its type, a struct; nil
// for an operation whose answers hold none.
func (o *Operation) Found() (member string, of reflect.Type) { return o.answered(structOf) }

// answered is the first member of the answer, in its order, that pick finds a type in.
func (o *Operation) answered(pick func(reflect.Type) reflect.Type) (member string, of reflect.Type) {
	if o.out.Kind() != reflect.Struct {
		return "", nil
	}
	for _, f := range reflect.VisibleFields(o.out) {
		name, _, ok := jsonName(f)
		if !ok || f.Anonymous || !promoted(o.out, f) {
			continue
		}
		if t := pick(f.Type); t != nil {
			return name, t
		}
	}
	return "", nil
}

func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// memberAt is the member of a type at a path, nil when there is none.
func memberAt(t reflect.Type, path string) *reflect.StructField {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper && t.Kind() == reflect.Slice && strings.Trim(name, "0123456789") == "" { // an element
		return memberAt(t.Elem(), rest)
	}
	t = structOf(t)
	if t == nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		n, _, ok := jsonName(f)
		switch {
		case !ok || f.Anonymous || n != name || !promoted(t, f):
		case deeper:
			return memberAt(f.Type, rest)
		default:
			return &f
		}
	}
	return nil
}

// FoundMembers are the names of the members of the record that Found gives, or of the
// object or the list's element at a path in it, in the order of the type.
func (o *Operation) FoundMembers(path string) (names []string) {
	_, of := o.Found()
	if of != nil && path != "" {
		f := memberAt(of, path)
		if f == nil {
			return nil
		}
		for of = f.Type; of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice; {
			of = of.Elem()
		}
	}
	if of == nil || of.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(of) {
		if name, _, ok := jsonName(f); ok && !f.Anonymous && promoted(of, f) {
			names = append(names, name)
		}
	}
	return names
}

// ListedMembers are the names of the plain members of a listed record, in the order of
// its type.
func (o *Operation) ListedMembers() (names []string) {
	_, of := o.Listed()
	if of == nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(of) {
		name, _, ok := jsonName(f)
		if !ok || f.Anonymous || !promoted(of, f) || f.Tag.Get("price") == "true" {
			continue
		}
		t := f.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if k := t.Kind(); k != reflect.Struct && k != reflect.Interface && !(k == reflect.Slice && structOf(t.Elem()) != nil) {
			names = append(names, name)
		}
	}
	return names
}

// BodyMembers lists the members of a struct in a body, such as an address in an input.
func BodyMembers(t reflect.Type) (out []Member) {
	if t = structOf(t); t == nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, ok := jsonName(f); ok && !f.Anonymous && place(f) == "" && promoted(t, f) {
			out = append(out, Member{name, "", f.Type, f.Tag.Get("required") == "true", f})
		}
	}
	return out
}

// Rules are the bounds of a member.
func (m Member) Rules() check.Rules { return check.RulesOf(m.Field) }
