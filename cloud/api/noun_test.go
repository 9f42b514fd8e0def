package api_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/setup"
)

// Every noun, verb, member and choice that the console shows has words in all
// languages: a key without words is shown as it is.
func TestNounsHaveWords(t *testing.T) {
	table := api.New(api.Config{Setup: new(setup.Service)})
	missing := map[string]bool{}
	want := func(key string) {
		if locale.Word(locale.English, key) == key {
			missing[key] = true
		}
	}
	var members func(list []catalog.Member, depth int)
	members = func(list []catalog.Member, depth int) {
		for _, m := range list {
			if slices.Contains([]string{"page", "per_page", "cursor", "sort"}, m.Name) {
				continue
			}
			want("member." + m.Name)
			r := m.Rules()
			values := r.Enum
			if r.Item != nil {
				values = slices.Concat(values, r.Item.Enum)
			}
			for _, v := range values {
				switch {
				case strings.Trim(v, "0123456789") == "":
				case m.Name == "profile":
					want("profile." + v)
				case m.Name == "scopes" || m.Name == "permissions":
					if area, _, _ := strings.Cut(v, ":"); locale.Scope(locale.English, v) == v {
						missing["scope."+area] = true
					}
				default:
					want("value." + v)
				}
			}
			of := m.Type
			for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			if of.Kind() == reflect.Struct && depth < 4 {
				members(catalog.BodyMembers(of), depth+1)
			}
		}
	}
	record := func(of reflect.Type) { members(catalog.BodyMembers(of), 0) }
	for _, n := range table.Nouns() {
		want("noun." + n.Name)
		want("noun." + n.Name + ".one")
		if n.Area != "" && n.List != "" {
			want("noun." + n.Name + ".empty")
		}
		if n.List != "" {
			members(table.Find(n.List).Members(), 0)
			_, of := table.Find(n.List).Listed()
			record(of)
		}
		if n.Find != "" {
			_, of := table.Find(n.Find).Found()
			record(of)
		}
		if n.States != "" {
			for _, v := range listedStates(table, n) {
				want(n.States + "." + v)
				if n.Find != "" && n.Area != "" && !slices.Contains([]string{"job", "outbox", "severity", "opening"}, n.States) { // it has a generated page
					want("state." + n.States + "." + v)
				}
			}
		}
		for _, verb := range append(slices.Clone(n.Verbs), n.Create) {
			if verb != "" {
				want("verb." + verb)
				members(table.Find(verb).Members(), 0)
			}
		}
	}
	var list []string
	for key := range missing {
		list = append(list, key)
	}
	slices.Sort(list)
	require.Empty(t, list)
}

// listedStates are the states of a noun's records as far as types list them: the record's,
// or those by which its list is filtered; those of orders are the dictionary's.
func listedStates(table *catalog.Catalog, n catalog.Noun) (out []string) {
	if n.States == "order" {
		for _, s := range cloud.OrderStates() {
			out = append(out, strconv.Itoa(int(s.ID)))
		}
		return out
	}
	_, of := table.Find(n.List).Listed()
	for _, m := range slices.Concat(catalog.BodyMembers(of), table.Find(n.List).Members()) {
		if m.Name == n.State {
			out = append(out, m.Rules().Enum...)
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "all" }) // a filter's, no state
}

// A form offers reasons for what staff do to orders, interceptions, deliveries and
// cabinets: as many in each language, short enough for the member, and none for
// operations that do not exist or are not done by a form.
func TestFormsOfferReasons(t *testing.T) {
	table := api.New(api.Config{Setup: new(setup.Service)})
	offered := 0
	for _, n := range table.Nouns() {
		for _, verb := range n.Verbs {
			for _, m := range table.Find(verb).Members() {
				if m.Name != "reason" && m.Name != "note" || m.Type.Kind() != reflect.String || len(m.Rules().Enum) > 0 {
					continue
				}
				list := locale.QuickTexts(locale.English, verb, m.Name)
				if m.Name == "reason" && slices.Contains([]string{"order", "cabinet", "delivery"}, n.Name) {
					require.GreaterOrEqual(t, len(list), 2, verb)
				}
				if len(list) > 0 {
					offered++
				}
				for _, lang := range locale.All() {
					texts := locale.QuickTexts(lang.Code, verb, m.Name)
					require.Len(t, texts, len(list), "%s in %s", verb, lang.Code)
					for _, text := range texts {
						require.Less(t, len([]rune(text)), int(*m.Rules().Max), text)
					}
				}
			}
		}
	}
	source, err := os.ReadFile("../locale/reason.go")
	require.NoError(t, err)
	require.Len(t, regexp.MustCompile(`"quick\.[a-z_.]+": `).FindAll(source, -1), offered, "reasons of what is no form")
}

// An exception that staff close is gone from the work list, and its page is there: the
// form of the close leads to a page that says what happened.
func TestAClosedExceptionLeadsOn(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	x.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "closed", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)}}}})
	p := x.signIn("admin", x.token(admin))
	form := "/console/work/exception-9301/close"
	s := d.ask(p.session, form, nil)
	require.Equal(t, 200, s.status, mainPart.FindString(s.body))
	s = d.ask(p.session, form, filled(formIn(t, s), "step", "next", "in:note", "The door is shut"))
	require.Equal(t, 200, s.status, mainPart.FindString(s.body))
	s = d.ask(p.session, form, filled(formIn(t, s), "step", "do"))
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	require.True(t, strings.HasPrefix(s.to, "/console/work?done="), s.to)
	s = d.ask(p.session, s.to, nil)
	require.Equal(t, 200, s.status)
	require.NotContains(t, mainPart.FindString(s.body), "exception-9301")
	require.Equal(t, 200, d.ask(p.session, "/console/exceptions/9301", nil).status, "one that is closed has its page")
	require.Equal(t, 404, d.ask(x.signIn("other", x.w.OtherAdmin).session, "/console/exceptions/9301", nil).status)
}
