package page_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/passcode"
)

// withLink is a visitor who came by the link of the parcel that waits, and its page.
func withLink(t *testing.T) (r *rig, path, code string) {
	t.Helper()
	r, path = newRig(t, nil), "/track/"+webtest.Waiting
	s, err := r.w.DB.FindShipment(t.Context(), webtest.Waiting)
	require.NoError(t, err)
	require.Equal(t, 303, r.do("GET", path+"?k="+linkKey.OfShipment(s.ID, 0), nil).status)
	list, err := r.w.Lockers.ListParcels(t.Context(), cloud.Caller{}, locker.ParcelsInput{Number: webtest.Waiting, Key: linkKey.OfShipment(s.ID, 0)})
	require.NoError(t, err)
	return r, path, *list.Parcels[0].PickupCode
}

// A code stands on the page of who came by the link, and of no one else.
func TestTheLinkAloneShowsTheCode(t *testing.T) {
	t.Parallel()
	r, path, code := withLink(t)
	shown := code[:3] + " " + code[3:]
	g := r.do("GET", path, nil)
	require.Contains(t, g.body, shown)
	require.Contains(t, g.body, `class="qr"`)
	require.Equal(t, "no-store", g.header("Cache-Control"))
	clean(t, r, g)
	delete(r.cookies, "postern_parcel")
	require.NotContains(t, r.do("GET", path, nil).body, shown)
	require.Equal(t, 303, r.do("POST", path, url.Values{"do": {"verify"}, "digits": {"0123"}}).status)
	g = r.do("GET", path, nil)
	require.Contains(t, g.body, ">A-3<", "digits show where it is")
	require.NotContains(t, g.body, shown)
	require.NotContains(t, g.body, "on_site_token")
	g = r.do("POST", path, url.Values{"do": {"open"}, "delivery": {"LD-000064021"}, "latitude": {"43.6446"}, "longitude": {"-79.3849"}})
	require.Equal(t, 404, g.status, "and open nothing")
	require.Empty(t, opened(t, r))
}

// opened are the openings for recipients.
func opened(t *testing.T, r *rig) (out []cloud.Opening) {
	t.Helper()
	require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) error {
		list, err := v.DeliveryOpenings(64021)
		for _, o := range list {
			if o.Kind == "pickup" {
				out = append(out, o)
			}
		}
		return err
	}))
	return out
}

func TestTheRecipientOpensTheDoorOnThePage(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestTheLinkAloneShowsTheCode")
	t.Parallel()
	r, path, _ := withLink(t)
	open := func(form url.Values) got {
		form.Set("do", "open")
		form.Set("delivery", "LD-000064021")
		return r.do("POST", path, form)
	}
	for _, form := range []url.Values{{}, {"on_site_token": {"ABCDEF"}}, {"latitude": {"43.65"}, "longitude": {"-79.38"}}, {"latitude": {"NaN"}, "longitude": {"Inf"}}, {"latitude": {"43.64"}}} {
		g := open(form)
		require.Contains(t, []int{403, 422}, g.status, form)
		require.Contains(t, g.body, `role="alert"`)
		require.Contains(t, g.body, `id="on-site"`, "the next try is at hand")
		clean(t, r, g)
	}
	require.Empty(t, opened(t, r))
	form := url.Values{"do": {"open"}, "delivery": {"LD-000064021"}, "on_site_token": {"ABCDEF"}}
	require.Equal(t, 403, r.do("POST", path, form, "Sec-Fetch-Site", "cross-site").status)

	pending, done := locale.Word("en", "collect.pending"), locale.Word("en", "collect.opened", "A-3")
	said := func(want string) {
		t.Helper()
		g := r.do("GET", path+"?opened=1", nil)
		require.Contains(t, g.body, locale.Word("en", "collect.title"))
		for _, words := range []string{pending, done} {
			require.Equal(t, words == want, strings.Contains(g.body, words), words)
		}
		clean(t, r, g)
	}
	said("")
	token := strings.ToLower(passcode.OnSite(make([]byte, 32), r.w.Device.Code, time.Now()))
	g := open(url.Values{"on_site_token": {token[:3] + " " + token[3:]}})
	require.Equal(t, []any{303, path}, []any{g.status, g.header("Location")})
	list := opened(t, r)
	require.Len(t, list, 1)
	said(pending)
	list[0].State, list[0].Doors[0].OpenedAt = cloud.OpeningRunning, time.Now()
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: list}})
	said(done)
	list[0].State, list[0].EndedAt = cloud.OpeningEnded, time.Now()
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: list}})
	said("")

	form = url.Values{"do": {"open"}, "delivery": {" ld-000064021 "}, "latitude": {"43.6446"}, "longitude": {"-79.3849"}}
	g = r.do("POST", path+"?lang=de", form)
	require.Equal(t, []any{303, path + "?lang=de"}, []any{g.status, g.header("Location")})
	require.Contains(t, r.do("GET", path+"?lang=de", nil).body, `action="`+path+`?lang=de"`)
}

// Openings and readings of one network have a bound, and the page says when it is reached.
func TestThePageSaysThatItAskedTooOften(t *testing.T) {
	t.Parallel()
	r, path, code := withLink(t)
	shown, form := code[:3]+" "+code[3:], url.Values{"do": {"open"}, "delivery": {"LD-000064021"}, "on_site_token": {"ABCDEF"}}
	g := r.do("POST", path, form)
	for range 6 {
		g = r.do("POST", path, form)
	}
	require.Equal(t, 429, g.status)
	require.NotEmpty(t, g.header("Retry-After"))
	require.Contains(t, g.body, locale.Word("en", "collect.often"))
	g = r.do("GET", path, nil)
	require.Contains(t, g.body, shown)
	for range 100 {
		if g = r.do("GET", path, nil); !strings.Contains(g.body, shown) {
			break
		}
	}
	require.NotContains(t, g.body, shown)
	require.Contains(t, g.body, locale.Word("en", "collect.unread"))
	clean(t, r, g)
	for range 100 { // calls come back once a second meanwhile
		if g = r.do("POST", path, url.Values{"do": {"open"}, "delivery": {"LD-000064099"}, "latitude": {"43.6446"}, "longitude": {"-79.3849"}}); g.status == 429 {
			break
		}
	}
	require.Equal(t, 429, g.status)
	require.Contains(t, g.body, locale.Word("en", "collect.often"))
}

// Messages to recipients are without the words of partners.
func TestRecipientsHaveWordsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r, path, _ := withLink(t)
	g := r.do("POST", path, url.Values{"do": {"open"}, "delivery": {"LD-000064099"}, "latitude": {"43.6446"}, "longitude": {"-79.3849"}})
	require.Equal(t, 404, g.status)
	require.Contains(t, g.body, locale.Word("en", "collect.gone"))
	require.NotContains(t, g.body, locale.Error("en", "DELIVERY_NOT_FOUND"))
	session := cloud.Session{DeviceID: r.w.Device.ID, Generation: 99, LastSeenAt: time.Now()}
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{session}}})
	g = r.do("POST", path, url.Values{"do": {"open"}, "delivery": {"LD-000064021"}, "latitude": {"43.6446"}, "longitude": {"-79.3849"}})
	require.Equal(t, 409, g.status)
	require.Contains(t, g.body, locale.Word("en", "collect.offline"))
	require.NotContains(t, g.body, locale.Error("en", "DEVICE_OFFLINE"))
}

// In a real browser: nothing that axe objects to, on a telephone and on a desk, in light and
// dark; a position that is refused, far or near; and all of it without script.
func TestCollectingInARealBrowser(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestTheLinkAloneShowsTheCode")
	w, s, _ := server(t, nil)
	sh, err := w.DB.FindShipment(t.Context(), webtest.Waiting)
	require.NoError(t, err)
	token := passcode.OnSite(make([]byte, 32), w.Device.Code, time.Now().Add(time.Minute)) // it takes its time
	out := drive(t, s, []string{"TOKEN=" + token}, "collect.mjs", "/track/"+webtest.Waiting, linkKey.OfShipment(sh.ID, 0))
	var f struct {
		Axe                        map[string][]string
		Console, Foreign, Overflow []string
		Refused, Hidden            bool
		Far, Near, Noscript        string
		Handed, Back               string
	}
	require.NoError(t, json.Unmarshal(out, &f))
	require.Regexp(t, `^\d{3} \d{3}$`, f.Handed)
	require.Regexp(t, `^\d{3} \d{3}$`, f.Back)
	require.NotEqual(t, f.Handed, f.Back)
	require.Len(t, f.Axe, 10)
	for name, violations := range f.Axe {
		require.Empty(t, violations, name)
	}
	require.Empty(t, f.Console)
	require.Empty(t, f.Foreign)
	require.Empty(t, f.Overflow)
	require.True(t, f.Refused, "the screen's code is at hand")
	require.Contains(t, f.Far, locale.Error("en", "NOT_AT_LOCKER"))
	require.Contains(t, f.Near, locale.Word("en", "collect.pending"))
	require.Contains(t, f.Noscript, locale.Word("en", "collect.pending"))
	require.True(t, f.Hidden, "a position needs a script")
}

// The recipient who came by the link lets another person collect, whose code is shown once and
// never as the recipient's own, and takes the parcel back; digits of a telephone number do neither.
func TestTheRecipientHandsAParcelOverOnThePage(t *testing.T) {
	t.Parallel()
	r, path, code := withLink(t)
	g := r.do("GET", path, nil)
	require.Contains(t, g.body, locale.Word("en", "handover.ask"))
	require.Contains(t, g.body, "enter the code from your message")
	clean(t, r, g)
	ask := url.Values{"do": {"hand_over"}, "delivery": {"LD-000064021"}, "name": {"Sam <Smith>"}, "phone": {"+14165550199"}}
	key := r.cookies["postern_parcel"]
	for _, proof := range []string{"", "digits"} {
		delete(r.cookies, "postern_parcel")
		if proof != "" {
			require.Equal(t, 303, r.do("POST", path, url.Values{"do": {"verify"}, "digits": {"0123"}}).status)
		}
		require.Equal(t, 404, r.do("POST", path, ask).status, "proof: %s", proof)
		require.NotContains(t, r.do("GET", path, nil).body, locale.Word("en", "handover.ask"))
	}
	r.cookies["postern_parcel"] = key
	require.Equal(t, 403, r.do("POST", path, ask, "Sec-Fetch-Site", "cross-site").status)
	g = r.do("POST", path, url.Values{"do": {"hand_over"}, "delivery": {"LD-000064021"}, "name": {" "}, "phone": {"+14165550199"}})
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, `id="handover-problem"`)
	require.Contains(t, g.body, "Give the name of the person")
	require.Contains(t, g.body, `value="&#43;14165550199"`, "what was typed stays")
	clean(t, r, g)

	g = r.do("POST", path, ask)
	require.Equal(t, 200, g.status)
	clean(t, r, g)
	require.NotContains(t, g.body, halvesOf(code))
	require.Contains(t, g.body, "Give Sam &lt;Smith&gt; this code.")
	other := regexp.MustCompile(`<p class="digits">(\d{3} \d{3})</p>`).FindAllStringSubmatch(g.body, -1)
	require.Len(t, other, 1, "one code, that of the other person")
	require.NotContains(t, g.body, "enter the code from your message", "the visitor's own code does not work")
	passed := func() (d cloud.Delivery) {
		require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) (err error) { d, err = v.Delivery(64021); return err }))
		return d
	}
	before := passed()
	require.Equal(t, 303, r.do("POST", path, ask).status)
	require.Equal(t, before, passed(), "the form is sent again: the code that was passed on stays")
	g = r.do("GET", path, nil)
	require.NotContains(t, g.body, other[0][1], "it is shown once")
	require.NotContains(t, g.body, `class="qr"`)
	require.Contains(t, g.body, "Sam &lt;Smith&gt; collects it in your place")
	require.Equal(t, 404, r.do("POST", path, url.Values{"do": {"take_back"}, "delivery": {"LD-000064099"}}).status)
	g = r.do("POST", path, url.Values{"do": {"take_back"}, "delivery": {"LD-000064021"}})
	require.Equal(t, []any{303, path}, []any{g.status, g.header("Location")})
	g = r.do("GET", path, nil)
	own := regexp.MustCompile(`<p class="digits">(\d{3} \d{3})</p>`).FindStringSubmatch(g.body)
	require.NotNil(t, own)
	require.NotContains(t, []string{other[0][1], halvesOf(code)}, own[1], "the recipient's is a new one")
	require.Equal(t, 409, r.do("POST", path, url.Values{"do": {"take_back"}, "delivery": {"LD-000064021"}}).status, "twice")
}

func halvesOf(code string) string { return code[:3] + " " + code[3:] }

// collected has the parcel that waits collected by its recipient, at a business that takes
// returns.
func collected(t *testing.T, r *rig) {
	t.Helper()
	require.NoError(t, r.w.DB.Decide(t.Context(), r.w.Device.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Delivery(r.w.Delivery.ID)
		if err != nil {
			return nil, err
		}
		d.Status, d.PickedUpAt, d.PickedUpBy, d.PickedUpMethod, d.PickupCodeActive = cloud.DeliveryPickedUp, time.Now().UTC(), "recipient", "code", false
		for i := range d.Packages {
			d.Packages[i].Status = cloud.PackagePickedUp
		}
		b, err := v.Business(d.BusinessID)
		b.Settings.LockerReturns = true
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}, AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
}

// The recipient who came by the link asks for a return on the page, and finds its code there;
// digits of a telephone number show neither.
func TestTheRecipientReturnsAParcelOnThePage(t *testing.T) {
	t.Parallel()
	r, path, _ := withLink(t)
	require.NotContains(t, r.do("GET", path, nil).body, locale.Word("en", "return.title"))
	collected(t, r)
	g := r.do("GET", path, nil)
	require.Contains(t, g.body, locale.Word("en", "return.ask"))
	clean(t, r, g)
	ask := url.Values{"do": {"return"}, "delivery": {"LD-000064021"}}
	require.Equal(t, 404, r.do("POST", path, url.Values{"do": {"return"}, "delivery": {"LD-000064099"}}).status)
	key := r.cookies["postern_parcel"]
	delete(r.cookies, "postern_parcel")
	require.Equal(t, 404, r.do("POST", path, ask).status, "without the link")
	require.Equal(t, 303, r.do("POST", path, url.Values{"do": {"verify"}, "digits": {"0123"}}).status)
	require.Equal(t, 404, r.do("POST", path, ask).status, "digits are no proof for a code")
	r.cookies["postern_parcel"] = key
	for range 2 {
		g = r.do("POST", path, ask)
		require.Equal(t, []any{303, path}, []any{g.status, g.header("Location")})
	}
	var back []cloud.Delivery
	require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) (err error) { back, err = v.ReturnsOf(64021); return err }))
	require.Len(t, back, 1, "one return")
	g = r.do("GET", path, nil)
	found, err := r.w.Lockers.FindReturn(t.Context(), cloud.Caller{}, locker.ParcelReturnInput{Number: "LD-000064021", Key: key})
	require.NoError(t, err)
	code := *found.Return.DropoffCode
	require.Contains(t, g.body, code[:3]+" "+code[3:])
	require.Contains(t, g.body, `class="qr"`)
	require.NotContains(t, g.body, locale.Word("en", "return.ask"))
	clean(t, r, g)
	delete(r.cookies, "postern_parcel")
	require.NotContains(t, r.do("GET", path, nil).body, code[:3]+" "+code[3:])
	back[0].Status = cloud.DeliveryDelivered
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: back}})
	r.cookies["postern_parcel"] = key
	g = r.do("GET", path, nil)
	require.Contains(t, g.body, locale.Word("en", "return.waits"))
	require.NotContains(t, g.body, code[:3]+" "+code[3:])
}
