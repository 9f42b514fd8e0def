package api_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

var (
	formTag   = regexp.MustCompile(`(?s)<form class="card formcard".*?</form>`)
	inputTag  = regexp.MustCompile(`<input [^>]*>`)
	areaTag   = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]*)"[^>]*>(.*?)</textarea>`)
	selectTag = regexp.MustCompile(`(?s)<select [^>]*name="([^"]*)"[^>]*>(.*?)</select>`)
	typedIn   = regexp.MustCompile(`(?s)(?: value="[^"]*")|(?:<textarea.*?</textarea>)`) // what a field of a form holds is as it is
	chosenTag = regexp.MustCompile(`<option value="([^"]*)" selected>`)
)

func attribute(tag, name string) string {
	m := regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(tag)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// formIn is the form of a page with the values that a browser would send.
func formIn(t *testing.T, s seen) url.Values {
	t.Helper()
	part := formTag.FindString(s.body)
	require.NotEmpty(t, part, "%d: %s", s.status, mainPart.FindString(s.body))
	out := url.Values{}
	for _, tag := range inputTag.FindAllString(part, -1) {
		if attribute(tag, "type") == "checkbox" && !strings.Contains(tag, " checked") {
			continue
		}
		out.Add(attribute(tag, "name"), attribute(tag, "value"))
	}
	for _, m := range areaTag.FindAllStringSubmatch(part, -1) {
		out.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	for _, m := range selectTag.FindAllStringSubmatch(part, -1) {
		value := ""
		if c := chosenTag.FindStringSubmatch(m[2]); c != nil {
			value = html.UnescapeString(c[1])
		}
		out.Add(html.UnescapeString(m[1]), value)
	}
	return out
}

// filled is a copy of a form with values in place of its own, in pairs.
func filled(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for k, v := range form {
		out[k] = slices.Clone(v)
	}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// confirm sends a form, looks at the preview and confirms it.
func (d *desk) confirm(session, path string, form url.Values, pairs ...string) seen {
	d.t.Helper()
	s := d.preview(session, path, form, pairs...)
	require.Equal(d.t, 200, s.status, mainPart.FindString(s.body))
	return d.ask(session, path, filled(formIn(d.t, s), "step", "do"))
}

// preview sends a form, and gives the preview or what is wrong.
func (d *desk) preview(session, path string, form url.Values, pairs ...string) seen {
	d.t.Helper()
	return d.ask(session, path, filled(form, append([]string{"step", "next"}, pairs...)...))
}

func (d *desk) form(session, path string) url.Values {
	d.t.Helper()
	s := d.ask(session, path, nil)
	require.Equal(d.t, 200, s.status, mainPart.FindString(s.body))
	return formIn(d.t, s)
}

func (x *world) read(path, member string, names ...string) any {
	x.t.Helper()
	return at(x.made("GET", path, x.token(admin), ""), append([]string{member}, names...)...)
}

// onBoth runs a test on either database.
func onBoth(t *testing.T, test func(t *testing.T, x *world)) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store.DB{"SQLite": storetest.OpenSQLite, "PostgreSQL": storetest.OpenPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorldOn(t, open(t)))
		})
	}
}

// Two people edit one record: members that only the first one changed stay, and the
// second is shown what it is by now before anything is written.
func TestTwoPeopleEditOneRecord(t *testing.T) { onBoth(t, editTogether) }

func editTogether(t *testing.T, x *world) {
	d := newDesk(t, x)
	one, two := x.signIn("one", x.token(admin)), x.signIn("two", x.token(admin))
	order, _ := x.order(cloud.OrderNew)
	path, api := "/console/orders/"+order+"/update", "/api/v1/orders/"+order
	first, second := d.form(one.session, path), d.form(two.session, path)

	s := d.confirm(one.session, path, first, "in:delivery_instruction", "Ring twice")
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	require.Regexp(t, "^/console/orders/"+order+`\?done=orders.update&after=sealed`, s.to)
	s = d.confirm(two.session, path, second, "in:note", "Fragile")
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	require.Equal(t, "Ring twice", x.read(api, "order", "delivery_instruction"), "what only the first one changed stays")
	require.Equal(t, "Fragile", x.read(api, "order", "note"))

	// The second has looked at what would change; meanwhile the first changes it.
	shown := formIn(t, d.ask(two.session, path, filled(d.form(two.session, path), "step", "next", "in:delivery_instruction", "Leave at the desk")))
	s = d.confirm(one.session, path, d.form(one.session, path), "in:delivery_instruction", "Call first")
	require.Equal(t, 303, s.status)
	s = d.ask(two.session, path, filled(shown, "step", "do"))
	require.Equal(t, 409, s.status)
	row := regexp.MustCompile(`(?s)<table class="diff clashes">.*?</table>`).FindString(s.body)
	for _, text := range []string{"Ring twice", "Call first", "Leave at the desk"} {
		require.Contains(t, row, text, "as it was, as it is by now, as the second wants it")
	}
	require.Contains(t, s.body, `role="alert"`)
	require.Equal(t, "Call first", x.read(api, "order", "delivery_instruction"), "nothing was written")
	s = d.confirm(two.session, path, formIn(t, s))
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	require.Equal(t, "Leave at the desk", x.read(api, "order", "delivery_instruction"))

	// A digest that no page showed confirms nothing.
	shown = formIn(t, d.ask(one.session, path, filled(d.form(one.session, path), "step", "next", "in:note", "Changed")))
	for _, digest := range []string{"", "x", strings.Repeat("a", 64), shown.Get("digest") + "0"} {
		require.Equal(t, 200, d.ask(one.session, path, filled(shown, "step", "do", "digest", digest)).status)
	}
	require.Equal(t, 200, d.ask(one.session, path, filled(shown, "step", "do", "in:note", "Not what was shown")).status)
	require.Equal(t, "Fragile", x.read(api, "order", "note"))
}

// Rights and sessions that end while a form is open, and forms of another browser,
// change nothing.
func TestAFormWhoseRightsEnded(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	order, _ := x.order(cloud.OrderNew)
	path, api := "/console/orders/"+order+"/update", "/api/v1/orders/"+order
	p := x.signIn("employee", x.token(cloud.ClientEmployee), "orders:write")
	form := d.form(p.session, path)
	shown := formIn(t, d.ask(p.session, path, filled(form, "step", "next", "in:note", "Changed")))

	for name, form := range map[string]url.Values{"form": filled(form, "step", "next", "in:note", "Changed"), "preview": filled(shown, "step", "do")} {
		s := d.ask(p.session, path, filled(form, "form", strings.Repeat("x", 32)))
		require.Equal(t, 403, s.status, "%s of another browser", name)
		require.NotContains(t, s.body, "Changed", "what another site sent is not filled in")
		require.Equal(t, 403, d.ask(p.session, path, form, "Sec-Fetch-Site", "cross-site").status)
	}
	x.login(x.token(cloud.ClientEmployee), "orders:read")
	for name, form := range map[string]url.Values{"form": filled(form, "step", "next", "in:note", "Changed"), "preview": filled(shown, "step", "do")} {
		require.Equal(t, 403, d.ask(p.session, path, form).status, "%s without the permission", name)
	}
	require.Equal(t, 403, d.ask(p.session, path, nil).status)
	require.Equal(t, 200, d.ask(p.session, "/console/orders/"+order, nil).status)

	q := x.signIn("employee again", x.token(cloud.ClientEmployee), "orders:write")
	form = d.form(q.session, path)
	x.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(q.session), AccountID: q.caller.Account.ID, Name: "test", ExpiresAt: time.Now().Add(-time.Second)}}}})
	s := d.ask(q.session, path, filled(form, "step", "next", "in:note", "Changed"))
	require.Equal(t, 401, s.status)
	require.Contains(t, s.body, `href="/console/login"`)
	require.Contains(t, s.body, `<input type="hidden" name="in:note" value="Changed">`, "what was typed is kept")
	require.Nil(t, x.read(api, "order", "note"))
	require.Equal(t, 303, d.ask(q.session, path, nil).status)
}

// A form that is sent twice makes one record, of every noun that has a form for it.
func TestAFormSentTwiceMakesOneRecord(t *testing.T) { onBoth(t, sendTwice) }

func sendTwice(t *testing.T, x *world) {
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	for path, in := range map[string][]string{
		"customers": {"in:name", "Twice Goods", "in:email", "again@goods.example"},
		"api-keys":  {"in:name", "Twice key"},
		"orders":    {"in:type", "D", "in:order_ref", "Twice-1", "in:recipient.name", "Ada", "in:recipient.phone", "+14165550123", "in:recipient.address_line1", "100 Queen St W", "in:recipient.city", "Toronto", "in:recipient.province", "ON", "in:recipient.postal_code", "M5H 2N2", "in:recipient.country", "CA", "in:packages[0].weight", "2"},
	} {
		new := "/console/" + path + "/new"
		shown := d.ask(p.session, new, filled(d.form(p.session, new), append(in, "step", "next")...))
		require.Equal(t, 200, shown.status, mainPart.FindString(shown.body))
		form := filled(formIn(t, shown), "step", "do")
		answers := make(chan seen, 2)
		for range 2 {
			go func() { answers <- d.ask(p.session, new, form) }()
		}
		for range 2 {
			s := <-answers
			require.Contains(t, []int{200, 303, 409, 422}, s.status, mainPart.FindString(s.body))
		}
		s := d.ask(p.session, new, form)
		require.Contains(t, []int{200, 303}, s.status, "%s: %s", path, mainPart.FindString(s.body))
		csv := d.check(p, "/console/"+path+".csv").body
		require.Equal(t, 1, strings.Count(csv, "Twice"), "%s: %s", path, csv)
	}
}

// Names of other people's making are text everywhere: cut, without control characters,
// no markup, no formula.
func TestHostileNamesAreText(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestHostileFieldsAreBounded")
	t.Parallel()
	x := newWorld(t)
	x.furnish()
	d := newDesk(t, x)
	hostile := `=HYPERLINK("x")<img src=x onerror=alert(1)>"'>` + "\u202e\tמזל " + strings.Repeat("long ", 60)
	x.lengthen(hostile)
	p := x.signIn("admin", x.token(admin))
	for _, n := range x.table.Nouns() {
		if n.Area == "" || n.Area == "platform" || n.List == "" {
			continue
		}
		list := "/console/" + n.Path
		s := d.check(p, list)
		pages := map[string]string{list: s.body}
		for _, m := range wholeRow.FindAllStringSubmatch(s.body, 3) {
			to := html.UnescapeString(m[1])
			record := d.check(p, to)
			pages[to] = record.body
			for _, form := range links(headPart.FindString(record.body)) {
				if strings.HasPrefix(form, to+"/") {
					pages[form] = d.check(p, form).body
				}
			}
		}
		for at, body := range pages {
			require.NotContains(t, body, "<img", at)
			require.NotContains(t, typedIn.ReplaceAllString(body, ""), "\u202e", at)
		}
		lines, err := csv.NewReader(strings.NewReader(d.check(p, list+".csv").body)).ReadAll()
		require.NoError(t, err, list)
		for _, line := range lines {
			for _, cell := range line {
				require.NotContains(t, cell, "\u202e", list)
				require.NotRegexp(t, `^[=@\t\r]`, cell, list)
			}
		}
	}
}

// lengthen gives the accounts, a cabinet, a parcel and the orders of the business a name.
func (x *world) lengthen(hostile string) {
	t := x.t
	for id := cloud.AccountID(1); id <= 5; id++ {
		var a cloud.Account
		require.NoError(t, x.w.DB.Look(t.Context(), func(v cloud.View) (err error) { a, err = v.Account(id); return err }))
		a.Name = hostile
		x.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
	}
	x.w.Device.Name, x.w.Device.Address = hostile, hostile
	x.w.Delivery.Recipient.Name, x.w.Delivery.Reference = hostile, hostile
	x.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{x.w.Device}}, LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{x.w.Delivery}}})
	var orders []cloud.Order
	require.NoError(t, x.w.DB.Look(t.Context(), func(v cloud.View) error {
		for id := cloud.OrderID(1); id < 400; id++ {
			if o, err := v.Order(42, id); err == nil {
				o.Ref, o.Note = fmt.Sprint(hostile, id), hostile
				if o.Recipient != nil {
					to := *o.Recipient
					to.Name, to.Line1 = hostile, hostile
					o.Recipient = &to
				}
				orders = append(orders, o)
			}
		}
		return nil
	}))
	require.NotEmpty(t, orders)
	x.w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: orders}})
}

// Fields that no page has are not taken, and do not cost more than they are.
func TestHostileFieldsAreBounded(t *testing.T) {
	ring.SkipUnlessCheck(t, "single operations; this one walks over all of them")
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	const path = "/console/orders/new"
	form := d.form(p.session, path)
	for _, name := range []string{"in:packages[999999999].weight", "in:packages[-1].weight", "in:a[b", "in:packages[", "in:packages[]", "in:packages[1", "in:]packages[", "in:", "in:packages[0][0].weight", "in:packages[0].weight.more", "in:packages[00000000000000000000000].weight", "in:constructor", "in:recipient[0].name", "in:recipient", "in:metadata"} {
		for _, step := range []string{"next", "edit", "do"} {
			s := d.ask(p.session, path, filled(form, name, "7", "step", step, "in:type", "D"))
			require.Contains(t, []int{200, 422}, s.status, "%s: %s", name, mainPart.FindString(s.body))
		}
	}
	for _, value := range []string{"NaN", "Inf", "-Inf", "0x1p-2", "1_000", "1e999", "+5", "٣", "1,5", strings.Repeat("9", 400)} {
		s := d.ask(p.session, path, filled(form, "in:type", "D", "in:packages[0].weight", value, "in:priority", value, "step", "next"))
		require.Equal(t, 422, s.status, "%s: %s", value, mainPart.FindString(s.body))
	}
	for _, name := range []string{"add", "remove"} {
		for _, list := range []string{"packages[0]", "packages[999999999]", "packages[-1]", "x", "[", "]", "packages[0].items[", strings.Repeat("a[", 500)} {
			require.Equal(t, 200, d.ask(p.session, path, filled(form, name, list)).status, list)
		}
	}
	// Fifty rows are the most, and stay when one more is asked for.
	full := filled(form, "add", "packages")
	for i := range 50 {
		full.Set(fmt.Sprintf("in:packages[%d].weight", i), fmt.Sprint(i+1))
	}
	s := d.ask(p.session, path, full)
	require.Equal(t, 200, s.status)
	require.Equal(t, 50, strings.Count(s.body, `name="remove"`)-strings.Count(s.body, `.items[`))
	full.Del("add")
	full.Set("remove", "packages[0]")
	s = d.ask(p.session, path, full)
	require.Equal(t, "50", formIn(t, s).Get("in:packages[48].weight"), "rows below a removed one move up")
	require.NotContains(t, s.body, `name="in:packages[49].weight"`)

	// Thousands of fields, and one field thousands of times.
	many, often := filled(form, "step", "next"), filled(form, "step", "next")
	for i := range 30000 {
		many.Set(fmt.Sprint("in:f", i), "x")
	}
	often["in:note"] = slices.Repeat([]string{"x"}, 100000)
	for name, form := range map[string]url.Values{"many": many, "often": often} {
		began := time.Now()
		s := d.ask(p.session, path, form)
		require.Contains(t, []int{413, 422}, s.status, name)
		require.Less(t, len(s.body), 400000, name)
		require.Less(t, time.Since(began), time.Minute, name) // squares of them take longer
	}
	for _, id := range []string{"+5", "-0", "007", "1e3", "NaN", "%00", "..", "%2e%2e", "%2F", "999999999999999999999", strings.Repeat("9", 3000), "%ff%fe"} {
		for _, noun := range []string{"orders", "cabinets", "people", "apps", "features", "carrier-assignments", "contractor-assignments"} {
			for _, end := range []string{"", "/update", "/edit", "/cancel", "/save", "/switch"} {
				s := d.ask(p.session, "/console/"+noun+"/"+id+end, nil)
				require.Contains(t, []int{301, 303, 403, 404, 422}, s.status, "%s %s%s: %s", noun, id, end, mainPart.FindString(s.body))
			}
		}
	}
}

// A secret that was typed, or that is set, stands on no page.
func TestSecretsAreNotEchoed(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	const typed = "a-typed-secret-of-32-characters!"
	const settings = "/console/webhook-settings/save"
	x.made("PUT", "/api/v1/webhook-settings", x.token(admin), hooks)
	form := d.form(p.session, settings)
	require.Empty(t, form.Get("in:webhook_sign_secret"), "what is set is not filled in, masked or not")
	clean := func(s seen) url.Values {
		t.Helper()
		require.NotContains(t, s.body, typed)
		require.NotContains(t, s.body, "wxyz")
		return formIn(t, s)
	}
	// Nothing typed: the secret stays.
	s := d.ask(p.session, settings, filled(form, "step", "next", "in:order_create_webhook_url", "https://mine.example/other"))
	s = d.ask(p.session, settings, filled(clean(s), "step", "do"))
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	require.True(t, x.signsWith("whk-secret-0123456789-abcdef-wxyz"))
	// Typed: on the preview, after a mistake and when a row is added it is not shown.
	form = d.form(p.session, settings)
	clean(d.ask(p.session, settings, filled(form, "step", "next", "in:webhook_sign_secret", typed, "in:order_create_webhook_url", "nonsense")))
	clean(d.ask(p.session, settings, filled(form, "add", "webhook_url_options", "in:webhook_sign_secret", typed)))
	s = d.ask(p.session, settings, filled(form, "step", "next", "in:webhook_sign_secret", typed))
	sealed := clean(s)
	clean(d.ask(p.session, settings, filled(sealed, "step", "edit")))
	other := x.signIn("another session", x.token(admin))
	s = d.ask(other.session, settings, filled(sealed, "step", "do"))
	require.NotEqual(t, 303, s.status, "what one session typed is nothing to another")
	s = d.ask(p.session, settings, filled(sealed, "step", "do"))
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	require.True(t, x.signsWith(typed))
	for _, to := range []string{settings, "/console/webhook-settings", "/console/audit"} {
		require.NotContains(t, d.ask(p.session, to+"?webhook_sign_secret="+typed, nil).body, typed)
	}
}

// signsWith reports whether the business signs with a secret, by the end that it shows.
func (x *world) signsWith(secret string) bool {
	x.t.Helper()
	a := x.do("GET", "/api/v1/webhook-settings", x.token(admin), "")
	require.Equal(x.t, 200, a.status)
	return strings.Contains(string(a.body), `***`+secret[len(secret)-4:]+`"`)
}

// Records of another business are not there by any address: typed, guessed, as a
// filter, in a form or sent.
func TestAnotherBusinessIsNotThere(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	x.furnish()
	d := newDesk(t, x)
	ours, theirs := x.signIn("admin", x.token(admin)), x.signIn("other admin", x.w.OtherAdmin)
	tried, filters := 0, url.Values{"driver_id": {"26"}, "customer_id": {"27"}, "device_id": {"90"}, "provider_id": {"18"}, "broker_id": {"25"}, "user_id": {"23"}, "keyword": {strings.ToLower(foreign)}}
	for _, n := range x.table.Nouns() {
		if n.List == "" || n.Area == "" || n.Area == "platform" {
			continue
		}
		list := "/console/" + n.Path
		d.clean(ours, list, d.ask(ours.session, list+"?"+filters.Encode(), nil))
		d.clean(ours, list, d.ask(ours.session, list+".csv?"+filters.Encode(), nil))
		if n.Create != "" {
			d.clean(ours, list+"/new", d.ask(ours.session, list+"/new?"+filters.Encode(), nil))
		}
		if n.Name == "feature" || n.Name == "app" { // every business has those of these names
			continue
		}
		rows := wholeRow.FindAllStringSubmatch(d.ask(theirs.session, list, nil).body, -1)
		for _, m := range rows[:min(len(rows), 2)] {
			to := html.UnescapeString(m[1])
			tried++
			for _, path := range append([]string{to, to + "?of=90"}, formsOf(d, theirs, to)...) {
				s := d.ask(ours.session, path, nil)
				require.Contains(t, []int{403, 404}, s.status, path)
				d.clean(ours, path, s)
				if path != to && !strings.Contains(path, "?") {
					s = d.ask(ours.session, path, url.Values{"step": {"do"}, "digest": {"x"}, "key": {"k"}})
					require.Contains(t, []int{403, 404}, s.status, path)
					d.clean(ours, path, s)
				}
			}
		}
	}
	require.Greater(t, tried, 10)
	for path, in := range map[string][]string{
		"/console/routes/new": {"in:driver_id", "26", "in:date", "2099-12-01", "in:name", "Ours"},
	} {
		s := d.ask(ours.session, path, filled(d.form(ours.session, path), append(in, "step", "next")...))
		require.Contains(t, []int{404, 422}, s.status, path)
		d.clean(ours, path, s)
	}
}

// formsOf are the addresses of the forms that a record's page leads to.
func formsOf(d *desk, p person, to string) (out []string) {
	for _, link := range links(headPart.FindString(d.ask(p.session, to, nil).body)) {
		if strings.HasPrefix(link, to+"/") && !strings.Contains(link, ".csv") {
			out = append(out, link)
		}
	}
	return out
}
