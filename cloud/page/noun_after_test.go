package page_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/signed"
)

var (
	undoForm  = regexp.MustCompile(`(?s)<form class="undo" method="post" action="([^"]+)">.*?name="undo" value="([^"]+)"`)
	afterNote = regexp.MustCompile(`(?s)<p class="notice done".*?</p>`)
)

// After a verb of low risk the page says what happened and offers to take it back; the
// inverse is refused once the record has moved on, and is of use to its session alone.
func TestUndo(t *testing.T) {
	r := newRig(t, nil)
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
	}}})
	r.signedIn()
	const item = "/console/work/exception-9301"
	formToken := func() string { return formField.FindStringSubmatch(r.do("GET", item+"/take", nil).body)[1] }
	do := func(verb string, more ...string) got {
		form := url.Values{"form": {formToken()}, "step": {"next"}, "key": {verb + time.Now().String()[:26]}}
		form.Set("key", url.QueryEscape(form.Get("key")))
		for i := 0; i < len(more); i += 2 {
			form.Set("in:"+more[i], more[i+1])
		}
		g := r.do("POST", item+"/"+verb, form)
		require.Equal(t, 303, g.status, g.body)
		return r.do("GET", g.header("Location"), nil)
	}
	undo := func(page got) got {
		m := undoForm.FindStringSubmatch(page.body)
		require.NotNil(t, m, page.body)
		return r.do("POST", m[1], url.Values{"form": {formToken()}, "undo": {html.UnescapeString(m[2])}})
	}
	factsOf := func() string {
		return regexp.MustCompile(`(?s)<dl class="facts">.*?</dl>`).FindString(r.do("GET", item, nil).body)
	}
	before := factsOf()
	require.NotEmpty(t, before)
	page := do("take")
	require.NotEqual(t, before, factsOf(), "someone sees to it")
	require.Contains(t, afterNote.FindString(page.body), "No receiver is notified.")
	require.Contains(t, page.body, "/console/audit?target=")
	g := undo(page)
	require.Equal(t, 303, g.status, g.body)
	require.Contains(t, r.do("GET", g.header("Location"), nil).body, "Taken back: ")
	require.Equal(t, before, factsOf(), "as it was")

	page = do("note", "note", "first")
	require.Equal(t, 303, undo(page).status)
	require.NotContains(t, r.do("GET", item, nil).body, "first")

	page = do("note", "note", "second")
	do("note", "note", "third") // the record moves on
	g = undo(page)
	require.Equal(t, 409, g.status)
	require.Contains(t, g.body, "has changed since")
	require.Contains(t, r.do("GET", item, nil).body, "third")

	page = do("take")
	m := undoForm.FindStringSubmatch(page.body)
	g = r.do("POST", item+"/note", url.Values{"form": {formToken()}, "undo": {html.UnescapeString(m[2])}})
	require.Equal(t, 404, g.status, "sealed for another verb")
	g = r.do("POST", m[1], url.Values{"form": {formToken()}, "undo": {"sealed:AAAA"}})
	require.Equal(t, 404, g.status)
	require.Equal(t, 303, r.do("POST", m[1], url.Values{"form": {formToken()}, "undo": {html.UnescapeString(m[2])}}).status)
	require.Equal(t, 409, r.do("POST", m[1], url.Values{"form": {formToken()}, "undo": {html.UnescapeString(m[2])}}).status, "once")
}

// A verb whose answer says something shows it, with who was notified.
func TestAVerbShowsItsAnswer(t *testing.T) {
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/cabinets/88/command"
	g := r.confirm(path, url.Values{"in:type": {"sync"}})
	require.Equal(t, 200, g.status, g.body)
	require.Regexp(t, `(?s)<h2>Result</h2>.*State.*<bdi>`, g.body)
	require.Contains(t, afterNote.FindString(g.body), "Notified: cabinets: 1")
	require.Contains(t, g.body, "/console/audit?target=")
	require.NotContains(t, g.body, "shown once")
}

// A key that was made is shown in the reader's language, its secret first.
func TestANewKeyIsShownInWords(t *testing.T) {
	r := newRig(t, nil)
	r.signedIn()
	g := r.confirm("/console/api-keys/new?lang=de", url.Values{"in:name": {"shown in words"}, "in:scopes": {"orders:read", "orders:write"}})
	require.Equal(t, 200, g.status, g.body)
	list := regexp.MustCompile(`(?s)<dl class="leaves big">.*?</dl>`).FindString(g.body)
	require.Regexp(t, `^<dl class="leaves big"><div><dt>Schlüssel</dt><dd><bdi>[^<]{20,}</bdi>`, list)
	require.NotRegexp(t, `<dt>[^<]*_`, list)
	require.NotRegexp(t, `<bdi>(false|true|\d{4}-\d{2}-\d{2}T[^<]*)</bdi>`, list)
	require.Contains(t, list, locale.Scope("de", "orders:read")+", "+locale.Scope("de", "orders:write"))
}

// What is gone after a verb has no page: its list follows and says what was done.
func TestTheListFollowsWhatIsGone(t *testing.T) {
	r := newRig(t, nil)
	r.signedIn()
	const list = "/console/api-keys"
	require.Equal(t, 200, r.confirm(list+"/new", url.Values{"in:name": {"short lived"}}).status)
	m := regexp.MustCompile(list + `/(\d+)`).FindStringSubmatch(r.do("GET", list, nil).body)
	require.NotNil(t, m)
	g := r.confirm(m[0]+"/revoke", url.Values{})
	require.Equal(t, 303, g.status, g.body)
	require.Contains(t, g.header("Location"), list+"?done=")
	g = r.do("GET", g.header("Location"), nil)
	require.Equal(t, 200, g.status)
	require.NotContains(t, g.body, m[0])
}

// A parcel's page names the door that people see on the cabinet, and leads to it.
func TestAParcelNamesItsDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	body := r.do("GET", "/console/parcels/64021", nil).body
	require.Regexp(t, `href="/console/cabinets/88#door-A\d\d">(<bdi>)?A-\d<`, body)
	require.NotRegexp(t, `>88\d\d<`, body)
}

// What a person confirms is said in the words of the pages: a door by its code, a state by
// its name.
func TestAPreviewHasWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/cabinets/88/block"
	g := r.fillIn(path, url.Values{"in:grid_id": {"8801"}, "in:reason": {"dirty"}})
	require.Equal(t, 200, g.status, g.body)
	part := g.body[strings.Index(g.body, "<main"):strings.Index(g.body, "</main>")]
	require.Contains(t, part, "A-1")
	require.NotRegexp(t, `<bdi>(8801|true|false|\{\}|[A-Z]+_[A-Z_]+)</bdi>`, part)
}

// A record offers what its state allows; the rest stands in the menu with the reason.
func TestARecordOffersWhatItsStateAllows(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/parcels/64021"
	offers := func() (out []string) {
		for _, verb := range []string{"confirm", "expire", "cancel"} {
			if strings.Contains(r.do("GET", path, nil).body, `href="`+path+"/"+verb+`"`) {
				out = append(out, verb)
			}
		}
		return out
	}
	for status, want := range map[cloud.DeliveryStatus][]string{cloud.DeliveryCreated: {"expire", "cancel"}, cloud.DeliveryDoorsOpened: {"confirm", "cancel"}, cloud.DeliveryDelivered: {"expire"}, cloud.DeliveryPickedUp: nil} {
		require.NoError(t, r.w.DB.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Delivery(64021)
			d.Status = status
			return &cloud.Changes{Unaudited: true, LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}}, err
		}))
		require.Equal(t, want, offers(), status)
	}
	require.Contains(t, r.do("GET", path, nil).body, "Not possible while the state is “")
}

// Scopes and profiles are chosen by what they let one do, in the reader's language.
func TestScopesAreChosen(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	for path, name := range map[string]string{"/console/api-keys/new": "scopes", "/console/people/new": "permissions"} {
		g := r.do("GET", path, nil, "Accept-Language", "de")
		require.Equal(t, 200, g.status, path)
		for _, s := range cloud.AllScopes() {
			require.Contains(t, g.body, `name="in:`+name+`" value="`+s+`"> `+html.EscapeString(locale.Scope("de", s)), path)
		}
	}
	g := r.do("GET", "/console/api-keys/new", nil)
	require.Contains(t, g.body, `<option value="ops-readonly">Look at daily operations</option>`)
}

// A point in time is chosen in a calendar, and is one of the business's own zone.
func TestMomentsAreChosen(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/api-keys/new"
	g := r.do("GET", path, nil)
	require.Contains(t, g.body, `name="in:expires_at" type="datetime-local"`)
	g = r.fillIn(path, url.Values{"in:name": {"till"}, "in:expires_at": {"2027-03-01T18:30"}})
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body[strings.Index(g.body, "<main"):], `<dd><bdi>2027-03-01 18:30 EST</bdi></dd>`)
	require.Contains(t, g.body[strings.Index(g.body, "<main"):], `<caption><bdi>API key till</bdi>`)
}

// A part of a form that may stay empty says what it needs once it is filled in, and demands
// none of it before.
func TestMarksOfWhatAGroupNeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	g := r.do("GET", "/console/orders/new", nil)
	require.Regexp(t, `<legend>Recipient</legend><p class="hush hint">\* needed once anything here is filled in</p>`, g.body)
	require.Regexp(t, `<label for="f-recipient.city">[^<]+ <span class="must" aria-hidden="true">\*</span></label>\s*<input id="f-recipient.city" [^>]*>`, g.body)
	require.NotRegexp(t, `<input id="f-recipient.city" [^>]*required`, g.body)
	require.Regexp(t, `<label for="f-recipient.company">[^<]+</label>`, g.body)
	require.Regexp(t, `<input id="f-packages\[0\].weight" [^>]*required`, g.body)
}

// What is wrong with a group of fields stands at the group.
func TestProblemsOfGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/orders/new?type=D"
	g := r.fillIn(path, url.Values{"in:type": {"D"}, "in:packages[0].weight": {"1"}})
	require.Equal(t, 422, g.status)
	require.Regexp(t, `<fieldset class="group" data-wrong tabindex="-1" aria-describedby="f-recipient-p"><legend>Recipient</legend><p class="problem" id="f-recipient-p">[^<]+</p>`, g.body)
	require.NotRegexp(t, `role="alert">.*Recipient`, g.body)
}

// What is wrong with an element of a list stands at the field of the list.
func TestProblemsOfElements(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	g := r.fillIn("/console/api-keys/new?lang=de", url.Values{"in:name": {"x"}, "in:ip_allowlist": {"10.0.0.1\nelsewhere"}})
	require.Equal(t, 422, g.status)
	require.Regexp(t, `<p class="problem" id="f-ip_allowlist-p">2: [^<]+</p>`, g.body)
	require.NotRegexp(t, `role="alert">.*2: `, g.body)
	g = r.fillIn("/console/orders/new?type=D", url.Values{"in:type": {"D"}, "in:packages[0].weight": {"-1"}})
	require.Equal(t, 422, g.status)
	require.Regexp(t, `<p class="problem" id="f-packages\[0\].weight-p">[^<]+</p>`, g.body)
}

// Who is signed out while a form is open signs in beside it, and has all that was typed.
func TestWhatWasTypedOutlivesASession(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/orders/new?type=D"
	session := r.cookies["postern_session"]
	g := r.do("GET", path, nil)
	sent := fields(g.body)
	sent.Set("in:recipient.name", `Ann "x" <b>`)
	sent.Set("in:webhook_secret", "hunter2hunter2")
	sent.Set("step", "do")
	delete(r.cookies, "postern_session")
	g = r.do("POST", path, sent)
	require.Equal(t, 401, g.status)
	clean(t, r, g)
	require.Contains(t, g.body, `value="Ann &#34;x&#34; &lt;b&gt;"`)
	require.NotContains(t, g.body, "hunter2")
	again := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`).FindAllStringSubmatch(g.body, -1) {
		again.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	again.Set("step", "edit")
	require.Equal(t, 401, r.do("POST", path, again).status, "still signed out")
	r.cookies["postern_session"] = session
	g = r.do("POST", path, again)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, `name="in:recipient.name" type="text" value="Ann &#34;x&#34; &lt;b&gt;"`)

	delete(r.cookies, "postern_session")
	again.Set("form", strings.Repeat("x", 32))
	require.Equal(t, 303, r.do("POST", path, again).status, "a foreign form is not shown")
}

// Where no door can be opened from afar, the page says why.
func TestDoorsThatCannotBeReached(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	for online, offered := range map[bool]bool{true: true, false: false} {
		r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: r.w.Device.ID, Online: online, LastSeenAt: time.Now()}}}})
		g := r.do("GET", "/console/cabinets/88", nil)
		require.Equal(t, 200, g.status)
		require.Equal(t, offered, strings.Contains(g.body, "/console/cabinets/88/open?grid_ids="), online)
		require.Equal(t, !offered, strings.Contains(g.body, "no door opens from here"), online)
	}
}

// A signed QR code is drawn once, on no page before that and nowhere as text; the drawing is
// the text that the cabinet reads.
func TestASignedQRCodeIsDrawn(t *testing.T) {
	r := newRig(t, nil)
	r.signedIn()
	const path = "/console/cabinets/88/opening_qr"
	fields := url.Values{"in:grid_ids": {"8801", "8802"}, "in:reason": {"The link is down"}}
	require.Contains(t, r.do("GET", "/console/cabinets/88?tab=service", nil).body, path)
	g := r.fillIn(path, fields)
	require.Equal(t, 200, g.status, g.body)
	require.NotContains(t, g.body, `class="qr"`, "a preview")
	g = r.confirm(path, fields)
	require.Equal(t, 200, g.status, g.body)
	require.Regexp(t, `(?s)<h2 id="scan">Show this QR code to the scanner of the cabinet</h2><svg class="qr" viewBox="0 0 \d+ \d+"`, g.body)
	require.NotContains(t, g.body, signed.PassPrefix)
	require.Contains(t, g.body, "shown once")
	list := regexp.MustCompile(`(?s)<dl class="leaves big">.*?</dl>`).FindString(g.body)
	require.Contains(t, list, "A-1")
	require.Contains(t, list, "<dt>Number of the QR code</dt>")
	require.NotRegexp(t, `<dt>[^<]*_`, list)
	g = r.confirm(path+"?lang=de", fields)
	require.Contains(t, g.body, "Diesen QR-Code dem Scanner des Schranks zeigen")
}
