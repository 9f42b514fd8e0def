package page_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/webtest"
)

// newTrial is the pages of a business with cabinets, on this machine: device 88 is
// connected, 89 is not.
func newTrial(t *testing.T, program func(string) string) (*webtest.World, *fresh) {
	f := &fresh{t: t}
	w, s, _ := server(t, func(c *page.Config) {
		c.Program = program
		db, _ := c.Store.(setup.Store)
		c.Setup = setup.New(setup.Config{Store: db, Key: []byte("key"), NewToken: device.NewToken})
	})
	f.db, f.rest = w.DB, s
	f.serve()
	return w, f
}

// enter signs a person in with a browser of their own.
func (f *fresh) enter(email string) *http.Client {
	f.t.Helper()
	c := f.browser()
	_, text := f.do(c, "GET", "/console/login", nil, nil)
	r, text := f.do(c, "POST", "/console/login", url.Values{"email": {email}, "password": {webtest.Password}, "form": {hiddenIn(f.t, text)}}, nil)
	require.Equal(f.t, []any{200, "/console"}, []any{r.StatusCode, r.Request.URL.Path}, text)
	return c
}

const parcelPath = "/setup/cabinet/88/parcel"

var shownCode = regexp.MustCompile(`<strong id="code">([0-9 ]+)</strong>`)

// One press makes a provider, its token and a delivery, with the rights of who
// pressed; the codes are on the page of that browser, and nowhere else.
func TestAFirstParcelIsItsSendersOwn(t *testing.T) {
	t.Parallel()
	w, f := newTrial(t, nil)
	one, two := f.enter(w.Emails[cloud.ClientAdmin]), f.enter(w.Emails[cloud.ClientAdmin])
	r, text := f.do(one, "GET", parcelPath, nil, nil)
	require.Equal(t, 200, r.StatusCode)
	require.NotContains(t, text, `id="code"`)
	try := regexp.MustCompile(`name="try" value="([0-9a-f]{20})"`).FindStringSubmatch(text)
	require.Len(t, try, 2)
	press := url.Values{"form": {hiddenIn(t, text)}, "try": {try[1]}}

	r, _ = f.do(one, "POST", parcelPath, url.Values{"form": {"another page's"}}, nil)
	require.Equal(t, 403, r.StatusCode)
	r, _ = f.do(one, "POST", parcelPath, press, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	require.Equal(t, 403, r.StatusCode)

	var cookie *http.Cookie
	stay := *one
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, _ = f.do(&stay, "POST", parcelPath, press, nil)
	require.Equal(t, []any{303, parcelPath}, []any{r.StatusCode, r.Header.Get("Location")})
	for _, k := range r.Cookies() {
		if k.Name == "postern_parcel" {
			cookie = k
		}
	}
	require.NotNil(t, cookie)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, []any{http.SameSiteStrictMode, "/setup/cabinet/88"}, []any{cookie.SameSite, cookie.Path})
	r, text = f.do(one, "POST", parcelPath, press, nil) // a double click
	require.Equal(t, 200, r.StatusCode)
	code := shownCode.FindStringSubmatch(text)
	require.Len(t, code, 2, text)
	require.Len(t, strings.ReplaceAll(code[1], " ", ""), 7)
	require.Regexp(t, `href="http://127\.0\.0\.1:[0-9]+" target="_blank" rel="noopener">`, text)
	require.Regexp(t, `<dd id="door">[1-9]`, text)
	require.Contains(t, text, `data-status="created"`)

	deliveries, err := w.Deliveries(t.Context(), 42, 50)
	require.NoError(t, err)
	var sent []cloud.Delivery
	for _, d := range deliveries {
		if strings.HasPrefix(d.Reference, "first-") {
			sent = append(sent, d)
		}
	}
	require.Len(t, sent, 1, "the same press twice is one delivery")
	require.Equal(t, cloud.Notify{}, sent[0].Notify, "no message goes out")
	require.WithinDuration(t, time.Now(), sent[0].DeliverBefore, 49*time.Hour)

	// Another browser of the same person, and pages about other cabinets, show nothing.
	for _, path := range []string{parcelPath, "/setup/cabinet/88", "/console"} {
		_, text = f.do(two, "GET", path, nil, nil)
		require.NotContains(t, text, code[1], path)
		require.NotContains(t, text, strings.ReplaceAll(code[1], " ", ""), path)
	}
	_, text = f.do(one, "GET", "/setup/cabinet/89/parcel", nil, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "postern_parcel", Value: cookie.Value}) })
	require.NotContains(t, text, `id="code"`, "another cabinet's page")

	// A second parcel takes the provider that is there; with a foreign or former token
	// the page begins anew.
	_, text = f.do(two, "GET", parcelPath, nil, nil)
	try = regexp.MustCompile(`name="try" value="([0-9a-f]{20})"`).FindStringSubmatch(text)
	r, text = f.do(two, "POST", parcelPath, url.Values{"form": {hiddenIn(t, text)}, "try": {try[1]}}, nil)
	require.Equal(t, 200, r.StatusCode, text)
	again := shownCode.FindStringSubmatch(text)
	require.Len(t, again, 2, text)
	require.NotEqual(t, code[1], again[1])
	three := f.enter(w.Emails[cloud.ClientAdmin])
	for _, value := range []string{"1." + strings.Repeat("x", 64), "x", "1." + w.Tokens[cloud.ClientAdmin], strings.Split(cookie.Value, ".")[0] + "." + w.Tokens[cloud.ProviderType]} {
		r, text = f.do(three, "GET", parcelPath, nil, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "postern_parcel", Value: value}) })
		require.NotContains(t, text, `id="code"`)
		require.Contains(t, []int{200, 403}, r.StatusCode)
	}
}

// A person who may not add providers sends no parcel, and a cabinet that is not connected
// takes none.
func TestAFirstParcelNeedsRightsAndACabinet(t *testing.T) {
	t.Parallel()
	w, f := newTrial(t, nil)
	admin, clerk := f.enter(w.Emails[cloud.ClientAdmin]), f.enter(w.Emails[cloud.ClientEmployee])
	_, text := f.do(clerk, "GET", "/setup/cabinet/88", nil, nil)
	require.NotContains(t, text, `id="send"`, "no button that would be refused")
	_, text = f.do(clerk, "GET", parcelPath, nil, nil)
	r, _ := f.do(clerk, "POST", parcelPath, url.Values{"form": {hiddenIn(t, text)}}, nil)
	require.Equal(t, 403, r.StatusCode)
	_, text = f.do(admin, "GET", "/setup/cabinet/89", nil, nil)
	require.Contains(t, text, `data-connected="no"`)
	require.NotContains(t, text, `id="send"`)
	_, text = f.do(admin, "GET", "/setup/cabinet/89/parcel", nil, nil)
	r, text = f.do(admin, "POST", "/setup/cabinet/89/parcel", url.Values{"form": {hiddenIn(t, text)}}, nil)
	require.Equal(t, 409, r.StatusCode)
	require.Contains(t, text, "Not connected yet")
	deliveries, err := w.Deliveries(t.Context(), 42, 50)
	require.NoError(t, err)
	for _, d := range deliveries {
		require.NotContains(t, d.Reference, "first-")
	}
	for _, path := range []string{"/setup/cabinet/999", "/setup/cabinet/999/parcel", "/setup/cabinet/99999999999999999999"} {
		r, _ = f.do(admin, "GET", path, nil, nil)
		require.GreaterOrEqual(t, r.StatusCode, 400, path)
		require.Less(t, r.StatusCode, 500, path)
	}
	r, _ = f.do(f.browser(), "GET", parcelPath, nil, nil)
	require.Equal(t, "/console/login", r.Request.URL.Path)
}

// The commands of a page on this machine begin as the cloud was begun; a page that is
// read elsewhere has the programs' names.
func TestCommandsAreForTheMachineOfTheirReader(t *testing.T) {
	t.Parallel()
	w, f := newTrial(t, func(name string) string { return "go run ./cmd/" + name })
	admin := f.enter(w.Emails[cloud.ClientAdmin])
	command := func(text, name string) string {
		m := regexp.MustCompile(`<code id="command-` + name + `">([^<]+)</code>`).FindStringSubmatch(text)
		require.Len(t, m, 2, text)
		return m[1]
	}
	_, text := f.do(admin, "GET", "/setup/cabinet/89", nil, nil)
	edge := command(text, "edge")
	require.Regexp(t, `^go run \./cmd/edge --data data/edge-[A-Z0-9-]+ (--kiosk-listen 127\.0\.0\.1:[0-9]+ )?--line tcp://127\.0\.0\.1:70[0-9]{2}$`, edge)
	require.Regexp(t, `^go run \./cmd/firmware-sim --layout medium`, command(text, "simulator"))
	_, text = f.do(admin, "GET", "/setup/cabinet/89", nil, nil)
	require.Equal(t, edge, command(text, "edge"), "the same at every look, whatever listens by then")
	require.NotContains(t, text, "command-enrol", "the token was shown once")
	require.NotContains(t, text, `name="renew"`, "an enrolled cabinet takes no other")
}

// A cabinet that never connected has no free doors: nothing is known of them.
func TestDoorsThatWereNeverReadAreNotFree(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *page.Config) { c.Setup = setup.New(setup.Config{NewToken: device.NewToken}) })
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 990, BusinessID: 42, Code: "NEW-1", Name: "Brand New", Type: "smart_locker", Protocol: "mqtt", CreatedAt: time.Now()}}},
		LockerChanges: cloud.LockerChanges{Shelves: map[cloud.DeviceID][]cloud.Shelf{990: {{Code: "A", Position: 1}}},
			Compartments: []cloud.Compartment{
				{GridID: 99001, DeviceID: 990, GridCode: "A01", ShelfCode: "A", Door: 1, Column: 1, Row: 1, Size: "S", PickupEnabled: true, DoorStatus: "unknown", State: cloud.GridFree},
				{GridID: 99002, DeviceID: 990, GridCode: "A02", ShelfCode: "A", Door: 2, Column: 1, Row: 2, Size: "S", PickupEnabled: true, DoorStatus: "unknown", State: cloud.GridFree}}}})
	r.signedIn()
	for lang, words := range map[string]string{"en": "not connected yet", "zh-Hans": "尚未连接", "zh-Hant": "尚未連線", "fr": "pas encore connectée", "de": "noch nicht verbunden", "es": "aún sin conectar"} {
		g := r.do("GET", "/console?lang="+lang, nil)
		cab := g.body[strings.Index(g.body, `id="cab-990"`):]
		cab = cab[:strings.Index(cab, "</article>")]
		require.Contains(t, cab, "<strong>2</strong> "+words)
		require.Equal(t, 2, strings.Count(cab, "s-never"))
		require.NotContains(t, cab, "s-free")
		if lang == "en" {
			require.NotContains(t, cab, "free")
			require.Contains(t, cab, `<a href="/setup/cabinet/990">Connect a cabinet</a>`, "the way back to its commands")
		}
	}
}

// The front page leads staff on: to set-up while nothing is set up, to the console
// after that.
func TestTheFrontPageLeadsStaffOn(t *testing.T) {
	t.Parallel()
	f := newFresh(t)
	f.serve()
	_, text := f.do(f.browser(), "GET", "/", nil, nil)
	require.Contains(t, text, `<a id="staff" href="/setup">`)
	_, err := f.setup.Administrator(t.Context(), setup.Input{Business: "Harbour", Email: "ada@harbour.example", Password: "a long enough password"})
	require.NoError(t, err)
	_, text = f.do(f.browser(), "GET", "/", nil, nil)
	require.Contains(t, text, `<a id="staff" href="/console">`)
}
