package api_test

import (
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// desk is a browser at the console's pages over a world.
type desk struct {
	t *testing.T
	x *world
	s *rest.Server
	c *fasthttp.Client
	// followed are references that a person followed, by name and address.
	followed map[string]bool
}

// seen is an answer of a page.
type seen struct {
	status   int
	body, to string // to: where it leads
	kind     string
}

// newDesk serves the pages of a world.
func newDesk(t *testing.T, x *world) *desk {
	x.pages.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	pages, err := page.New(x.pages)
	require.NoError(t, err)
	s := rest.New(rest.Config{Catalog: x.table, Pipeline: x.pages.Pipeline, Pages: pages.Handler})
	return &desk{t: t, x: x, s: s, c: webtest.Client(webtest.Serve(t, s))}
}

// formSecret is the form token of every browser of these tests.
const formSecret = "0123456789abcdefghijklmnopqrstuv"

// ask sends a request with a session; form nil is a GET.
func (d *desk) ask(session, path string, form url.Values, headers ...string) seen {
	d.t.Helper()
	var req fasthttp.Request
	var resp fasthttp.Response
	req.SetRequestURI("http://cloud.test" + path)
	if session != "" {
		req.Header.SetCookie("postern_session", session)
	}
	req.Header.SetCookie("postern_form", formSecret)
	if form != nil {
		req.Header.SetMethod("POST")
		if !form.Has("form") {
			form.Set("form", formSecret)
		}
		req.Header.SetContentType("application/x-www-form-urlencoded")
		req.SetBodyString(form.Encode())
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	require.NoError(d.t, d.c.DoTimeout(&req, &resp, 30*time.Second))
	to, _ := url.Parse(string(resp.Header.Peek("Location")))
	return seen{status: resp.StatusCode(), body: string(resp.Body()), to: strings.TrimPrefix(to.String(), "http://cloud.test"), kind: string(resp.Header.ContentType())}
}

// person is an account of the world at the console.
type person struct {
	name    string
	session string
	caller  cloud.Caller
}

// signIn is a session of an account by one of its tokens, with scopes for an employee.
func (x *world) signIn(name, token string, scopes ...string) person {
	session := x.login(token, scopes...)
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(session))
	require.NoError(x.t, err)
	c := cloud.Caller{Account: s.Account, Language: "en", Surface: "web"}
	if s.Account.Type == cloud.ClientEmployee {
		c.Scopes = append([]string{}, s.Account.Permissions...)
	}
	return person{name, session, c}
}

// may reports whether the interface lets a person call an operation.
func (d *desk) may(p person, operation string) bool {
	o := d.x.table.Find(operation)
	return o != nil && d.x.pages.Pipeline.May(d.t.Context(), o, p.caller) == nil
}

var (
	railPart  = regexp.MustCompile(`(?s)<nav class="rail".*?</nav>`)
	hrefs     = regexp.MustCompile(`href="([^"]*)"`)
	mainPart  = regexp.MustCompile(`(?s)<main.*</main>`)
	wholeRow  = regexp.MustCompile(`<a class="whole" href="([^"]+)"`)
	headPart  = regexp.MustCompile(`(?s)<main id="main" class="desk">.*?<div class="head"[^>]*>.*?</(?:p|div)></div>`)
	nothingIn = regexp.MustCompile(`ZgotmplZ|<style|\sstyle=|\son[a-z]+="|<no value>|%!\w\(`)
)

func links(part string) (out []string) {
	for _, m := range hrefs.FindAllStringSubmatch(part, -1) {
		out = append(out, html.UnescapeString(m[1]))
	}
	return out
}

// foreign is in every name of the second business.
const foreign = "Zzyzx"

// foreignWords are what no page of the first business may hold.
var foreignWords = []string{foreign, "Rival Post", "Berlin Hauptbahnhof", "BER-01", "Other Freight"}

// furnish gives both businesses a record of every kind, and marks those of the second.
func (x *world) furnish() {
	t, now := x.t, time.Now()
	x.review()
	for _, d := range []cloud.Device{x.w.Device, x.w.Spare} { // doors open from afar
		x.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: d.ID, Generation: 1, Node: "test", Online: true, ConnectedAt: now, LastSeenAt: now}}}})
	}
	for id := cloud.AccountID(21); id <= 27; id++ {
		var a cloud.Account
		require.NoError(t, x.w.DB.Look(t.Context(), func(v cloud.View) (err error) { a, err = v.Account(id); return err }))
		if a.BusinessID == 43 {
			a.Name = fmt.Sprint(foreign, " ", a.Name)
			x.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
		}
	}
	for _, side := range []struct {
		admin, mark          string
		driver, broker, prov int
	}{{x.token(admin), "Plain", 4, 3, 17}, {x.w.OtherAdmin, foreign, 26, 25, 18}} {
		post := func(path, body string) map[string]any { return x.made("POST", path, side.admin, body) }
		order := x.id(at(post("/api/v1/client/orderCreate", strings.Replace(orderOf(side.mark+"-1"), "Ada Moreau", side.mark+" Moreau", 1)), "order_id"))
		lent := x.id(at(post("/api/v1/client/orderCreate", strings.Replace(orderOf(side.mark+"-2"), "Ada Moreau", side.mark+" Lent", 1)), "order_id"))
		route := x.id(at(post("/api/v1/routes", fmt.Sprintf(`{"date":"2099-12-01","driver_id":%d,"name":"%s round"}`, side.driver, side.mark)), "route", "route_id"))
		post("/api/v1/routes/"+route+"/orders", `{"order_ids":[`+order+`]}`)
		post("/api/v1/broker-order-assignments", fmt.Sprintf(`{"order_ids":[%s],"broker_id":%d}`, lent, side.broker))
		third := x.id(at(post("/api/v1/client/orderCreate", strings.Replace(orderOf(side.mark+"-3"), "Ada Moreau", side.mark+" Third", 1)), "order_id"))
		if side.prov == 17 {
			post(partner+"/assignments", fmt.Sprintf(`{"order_id":%s,"provider_id":%d}`, third, side.prov))
		}
		post("/api/v1/orders/"+third+"/interceptions", `{"outcome":"return_to_sender","reason":"`+side.mark+`"}`)
		post("/api/v1/order-chat/orders/"+order+"/messages", `{"client_message_id":"c-1","text":"`+side.mark+` asks"}`)
		x.made("PUT", "/api/v1/webhook-settings", side.admin, strings.Replace(hooks, "mine", strings.ToLower(side.mark), 1))
		post("/api/v1/client/orderCreate", strings.Replace(orderOf(side.mark+"-4"), "Ada Moreau", side.mark+" Told", 1))
		post("/api/v1/otep/subscriptions", `{"all":true,"url":"https://`+strings.ToLower(side.mark)+`.example/parcels"}`)
		post("/api/v1/user/api-keys", `{"name":"`+side.mark+` key"}`)
		post("/api/v1/invitations", fmt.Sprintf(`{"account_type":"driver","name":"%s Guest","email":"%s@guest.example"}`, side.mark, side.mark))
		x.bulk(side.admin, side.mark, cloud.JobChecked)
		post(fmt.Sprintf("/api/v1/providers/%d/tokens", side.prov), `{"name":"`+side.mark+` token"}`)
	}
	x.agent()
	x.pass()
}

// people are every kind of account that the console has pages for.
func (x *world) people() (list []person) {
	list = append(list, x.signIn("admin", x.token(admin)), x.signIn("contractor", x.token(cloud.Broker)), x.signIn("customer", x.token(cloud.Customer)), x.signIn("operator of the platform", x.token(cloud.PlatformAdmin)))
	return list
}

// employees are the permissions that one employee has by turns: none, each that an
// operation of a noun names, all.
func (x *world) employees() [][]string {
	var named []string
	for _, n := range x.table.Nouns() {
		for _, name := range slices.Concat([]string{n.List, n.Find, n.Create}, n.Verbs) {
			if o := x.table.Find(name); o != nil {
				named = append(named, o.Scopes...)
			}
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	out := [][]string{{}}
	for _, s := range named {
		out = append(out, []string{s})
	}
	return append(out, cloud.AllScopes())
}

// Every control that a page shows works and is allowed, none that is allowed is
// missing, and what is not shown is refused at its address.
func TestPagesShowWhatTheirVisitorMay(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestEveryOperationLetsInWhomItsRowNames, of the same rows")
	t.Parallel()
	x := newWorld(t)
	x.furnish()
	for _, n := range x.table.Nouns() {
		if n.Find != "" && n.List != "" {
			x.row(n.Find) // of a simple family
		}
	}
	d := newDesk(t, x)
	opened := map[string]int{}
	for _, p := range x.people() {
		d.walk(p, true, opened)
	}
	for _, scopes := range x.employees() {
		name := "employee with " + strings.Join(scopes, " ")
		if len(scopes) > 1 {
			name = "employee with all"
		}
		d.walk(x.signIn(name, x.token(cloud.ClientEmployee), scopes...), len(scopes) > 1, opened)
	}
	for _, n := range x.table.Nouns() {
		if n.List != "" && n.ID != "" {
			if n.Name != "work_item" { // its list is drawn, and tested beside it
				require.NotZero(t, opened[n.Name], "no record of %s was opened", n.Name)
			}
		}
	}
	t.Log(opened)
}

// check asks for a page that must be there and be clean.
func (d *desk) check(p person, path string) seen {
	d.t.Helper()
	s := d.ask(p.session, path, nil)
	require.Equal(d.t, 200, s.status, "%s at %s: %s", p.name, path, mainPart.FindString(s.body))
	d.clean(p, path, s)
	return s
}

// clean looks for what no page may hold.
func (d *desk) clean(p person, path string, s seen) {
	d.t.Helper()
	if m := nothingIn.FindString(s.body); m != "" {
		require.Fail(d.t, "not clean", "%s at %s holds %s", p.name, path, m)
	}
	if partly := locale.Word(locale.English, "work.partly"); strings.Contains(s.body, partly) {
		require.Fail(d.t, "incomplete", "%s at %s says %q", p.name, path, partly)
	}
	for _, secret := range []string{webtest.Password, p.session, "whk-secret-0123456789", webtest.PickupCode, webtest.DeliveryCode} {
		if strings.Contains(s.body, secret) {
			require.Fail(d.t, "secret", "%s at %s holds %s", p.name, path, secret)
		}
	}
	if p.caller.Account.Type == cloud.PlatformAdmin || p.caller.Account.BusinessID != 42 {
		return
	}
	for _, word := range foreignWords {
		if i := strings.Index(s.body, word); i >= 0 {
			require.Fail(d.t, "another business", "%s at %s holds %q: …%s…", p.name, path, word, s.body[max(0, i-200):min(len(s.body), i+100)])
		}
	}
}

// walk opens what a person is shown, and what is not. Every form is opened for those
// with forms.
func (d *desk) walk(p person, forms bool, opened map[string]int) {
	t := d.t
	home := d.ask(p.session, "/console", nil)
	var rail []string
	switch home.status {
	case 200:
		d.clean(p, "/console", home)
		rail = links(railPart.FindString(home.body))
	case 303:
		rail = links(railPart.FindString(d.check(p, home.to).body))
	default:
		require.Equal(t, 403, home.status, "%s at home: %s", p.name, home.body)
	}
	for _, to := range rail {
		if to != "/console" {
			d.check(p, to)
		}
	}
	for _, n := range d.x.table.Nouns() {
		list := "/console/" + n.Path
		read := n.List
		if read == "" {
			read = n.Find
		}
		if o := d.x.table.Find(n.List); o != nil && o.Target() != "" { // of another record alone
			continue
		}
		inRail := n.Area != "" || n.Name == "work_item" // which stands beside Home
		require.Equal(t, inRail && d.may(p, read), slices.Contains(rail, list), "%s: %s in the navigation", p.name, n.Name)
		if !d.may(p, read) {
			for _, to := range []string{list, list + ".csv", list + "/1", list + "/new"} {
				require.Contains(t, []int{403, 404}, d.ask(p.session, to, nil).status, "%s at %s", p.name, to)
			}
			continue
		}
		s := d.check(p, list)
		if n.List == "" {
			d.verbs(p, n, list, s, forms)
			d.references(p, s)
			opened[n.Name]++
			continue
		}
		create := n.Create != "" && d.may(p, n.Create)
		require.Equal(t, create, slices.Contains(links(s.body), list+"/new"), "%s: new %s", p.name, n.Name)
		if n.Create != "" {
			d.opens(p, list+"/new", create, forms)
		}
		if n.Area != "" {
			csv := d.check(p, list+".csv")
			require.Contains(t, csv.kind, "text/csv")
		}
		if rows := wholeRow.FindAllStringSubmatch(s.body, -1); len(rows) > 0 {
			to := html.UnescapeString(rows[0][1])
			record := d.check(p, to)
			d.verbs(p, n, to, record, forms)
			d.references(p, s)
			d.references(p, record)
			opened[n.Name]++
			if forms {
				for _, row := range rows { // some of them have what others lack
					d.related(p, d.check(p, html.UnescapeString(row[1])), opened)
				}
			}
		}
	}
}

// references opens every record that a page links to: what names a record leads to it only
// for who may see it.
func (d *desk) references(p person, s seen) {
	d.t.Helper()
	for _, to := range links(mainPart.FindString(s.body)) {
		u, err := url.Parse(to)
		require.NoError(d.t, err)
		parts := strings.Split(u.Path, "/")
		if len(parts) != 4 || parts[1] != "console" || u.Host != "" || parts[3] == "new" || strings.HasSuffix(u.Path, ".csv") || d.followed[p.name+" "+u.Path] {
			continue
		}
		if d.followed == nil {
			d.followed = map[string]bool{}
		}
		d.followed[p.name+" "+u.Path] = true
		at := d.ask(p.session, to, nil)
		require.Contains(d.t, []int{200, 303}, at.status, "%s is led to %s: %s", p.name, to, mainPart.FindString(at.body))
	}
}

// related opens the records that another one's page lists, which stand below it.
func (d *desk) related(p person, s seen, opened map[string]int) {
	for _, to := range links(mainPart.FindString(s.body)) {
		path, of, below := strings.Cut(to, "?of=")
		parts := strings.Split(path, "/")
		if !below || len(parts) != 4 {
			continue
		}
		n := d.x.table.NounAt(parts[2])
		require.NotNil(d.t, n, to)
		record := d.check(p, to)
		offered := links(headPart.FindString(record.body))
		for _, o := range n.Verbs {
			form := path + "/" + o[strings.LastIndexByte(o, '.')+1:] + "?of=" + of
			if is := slices.Contains(offered, form); is || len(d.x.table.Find(o).When) == 0 {
				require.Equal(d.t, d.may(p, o), is, "%s: %s at %s of %v", p.name, o, to, offered)
			}
			d.opens(p, form, d.may(p, o), true)
		}
		opened[n.Name]++
	}
}

// verbs compares what a record offers with what its visitor may do.
func (d *desk) verbs(p person, n catalog.Noun, to string, s seen, forms bool) {
	to, _, _ = strings.Cut(to, "?")
	offered := links(headPart.FindString(s.body))
	if n.Name == "cabinet" { // a drawn page: verbs stand in its drawers and its service part
		offered = offered[:0]
		for _, l := range append(links(s.body), links(d.check(p, to+"?tab=service").body)...) {
			path, _, _ := strings.Cut(l, "?")
			offered = append(offered, path)
		}
	}
	for _, o := range n.Verbs {
		name := o[strings.LastIndexByte(o, '.')+1:]
		for _, other := range n.Verbs {
			if other != o && strings.HasSuffix(other, "."+name) {
				name = strings.ReplaceAll(o, ".", "-")
			}
		}
		may := d.may(p, o)
		if strings.HasPrefix(o, "smart_lockers.grids.") || conditional(d.x.table.Find(o)) { // a door and a record offer what their state allows
			require.True(d.t, may || !slices.Contains(offered, to+"/"+name), "%s: %s at %s of %v", p.name, o, to, offered)
		} else {
			require.Equal(d.t, may, slices.Contains(offered, to+"/"+name), "%s: %s at %s of %v", p.name, o, to, offered)
		}
		d.opens(p, to+"/"+name, may, forms)
	}
}

// conditional reports whether an operation is offered for some records alone.
func conditional(o *catalog.Operation) bool {
	return len(o.When)+len(o.Free)+len(o.Needs) > 0 || o.Offered != nil
}

// opens asks for a form that must be there, or must be refused.
func (d *desk) opens(p person, to string, may, forms bool) {
	if may && !forms {
		return
	}
	s := d.ask(p.session, to, nil)
	if !may {
		require.Contains(d.t, []int{403, 404}, s.status, "%s at %s", p.name, to)
		return
	}
	require.Equal(d.t, 200, s.status, "%s at %s: %s", p.name, to, mainPart.FindString(s.body))
	require.Contains(d.t, s.body, `class="card formcard"`, "%s at %s", p.name, to)
	d.clean(p, to, s)
	s = d.ask(p.session, to, filled(formIn(d.t, s), "step", "next")) // as it stands: a preview, or what is missing
	require.Contains(d.t, []int{200, 303, 404, 409, 422}, s.status, "%s at %s: %s", p.name, to, mainPart.FindString(s.body))
	d.clean(p, to, s)
}
