package attack

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/protocol/otep"
)

// A customer who knows the number of one order computed those of all others: it
// was a public formula of the order's id.
func TestAttackNumbersAreNotComputed(t *testing.T) {
	t.Parallel()
	g := launch(t)
	seen := map[string]bool{}
	for i := range 20 {
		p := g.order(g.box.Admin.Token, fmt.Sprintf("N-%d", i))
		require.Regexp(t, `^SR[2-9B-DF-HJ-NP-TV-Z]{12}$`, p.number)
		require.NotEqual(t, fmt.Sprintf("SR%08d", (int64(p.id)*61_803_399+20_451_883)%100_000_000), p.number[:min(len(p.number), 10)])
		require.False(t, seen[p.number[:6]], "numbers of neighbours begin alike")
		seen[p.number[:6]] = true
		aloud := strings.ToLower(p.number[:2] + " " + p.number[2:6] + "-" + p.number[6:10] + " " + p.number[10:])
		require.Equal(t, p.number, g.must("GET", "/api/v1/tracking/"+url.PathEscape(aloud), "", "").text("tracking_number"))
	}
}

// secrets are what a number alone must not open, in any format.
var secrets = []string{"oct_", "Ann Lee", "2N2", "100 Queen", "0123", "order_id\":1", "order_id\": 1", "N-secret", "the dog bites", "Left with Bob", "called twice", "ticket-77"}

// The number of a parcel is on its label. It opened the order's chat, the place
// of its driver and what staff wrote into events.
func TestAttackTheNumberAloneOpensNothing(t *testing.T) {
	t.Parallel()
	g := launch(t)
	g.must("PUT", "/api/v1/order-chat/settings", g.box.Admin.Token, `{"allow_recipient":true}`)
	p := g.order(g.box.Admin.Token, "N-secret")
	require.NotEmpty(t, p.link)
	g.remark(p)
	read := func(path string, headers ...string) result { return g.must("GET", path, "", "", headers...) }
	paths := []string{"/api/v1/tracking/" + p.number, "/track/" + p.number}
	for _, format := range []string{"otep", "epcis", "onerecord", "uncefact", "otlp", "sensorthings", "aftership", "shopify", "amazon"} {
		paths = append(paths, "/api/v1/otep/trackings/"+p.number+"?format="+format, "/api/v1/otep/trackings/"+p.number+"/events?format="+format)
	}
	for _, path := range paths {
		r := read(path)
		for _, secret := range secrets {
			require.NotContains(t, r.raw, secret, path)
		}
	}
	graph := g.must("POST", "/api/graphql", "", fmt.Sprintf(`{"query":"{trackingPublic(trackingNumber:\"%s\"){order_ref chat recipient} otepTracking(trackingNumber:\"%s\")}"}`, p.number, p.number))
	tool := g.must("POST", "/mcp", "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"track_package","arguments":{"tracking_number":%q}}}`, p.number), "Accept", "application/json, text/event-stream")
	batch := g.must("POST", "/api/v1/otep/trackings/batch", "", fmt.Sprintf(`{"tracking_numbers":[%q]}`, p.number))
	for _, r := range []result{graph, tool, batch} {
		for _, secret := range secrets {
			require.NotContains(t, r.raw, secret)
		}
	}
	require.Equal(t, "public", read(paths[0]).text("access.level"))

	t.Run("the link opens it", func(t *testing.T) {
		link, err := url.Parse(p.link)
		require.NoError(t, err)
		key := link.Query().Get("k")
		r := read(paths[0], "X-Tracking-Key", key)
		require.Equal(t, "recipient", r.text("access.level"))
		require.Equal(t, "Ann Lee", r.text("recipient.name"))
		require.True(t, strings.HasPrefix(r.text("chat.token"), "oct_"))
		for _, wrong := range []string{key[:len(key)-1] + "A", "A" + key[1:], "", "null", strings.Repeat("A", 22), g.order(g.box.Admin.Token, "N-other").key(t)} {
			r := read(paths[0], "X-Tracking-Key", wrong)
			if wrong != key {
				require.Equal(t, "public", r.text("access.level"), wrong)
				require.Empty(t, r.text("chat.token"))
			}
		}
		v := g.visitor()
		to := v.send("GET", link.RequestURI(), nil)
		require.Equal(t, 303, to.status)
		require.Equal(t, "/track/"+p.number, to.header.Get("Location"), "the address is clean")
		require.Contains(t, to.header.Get("Set-Cookie"), "HttpOnly")
		page := v.send("GET", to.header.Get("Location"), nil)
		require.Contains(t, page.raw, "oct_", "the chat of its recipient is there")
		require.NotContains(t, page.raw, key)
		require.NotContains(t, g.log.String(), key)
		require.NotContains(t, g.visitor().send("GET", "/track/"+p.number, nil).raw, "oct_")
	})
	t.Run("the digits open it", func(t *testing.T) {
		r := read(paths[0] + "?verify=0123")
		require.Equal(t, "recipient", r.text("access.level"))
		require.Equal(t, "ok", r.text("access.verify"))
		require.Equal(t, "private, max-age=30", read("/api/v1/otep/trackings/"+p.number+"?verify=0123").header.Get("Cache-Control"))
		v := g.visitor()
		form := url.Values{"do": {"verify"}, "digits": {"0123"}}
		to := v.send("POST", "/track/"+p.number, form)
		require.Equal(t, 303, to.status, to.raw)
		page := v.send("GET", "/track/"+p.number, nil)
		require.Contains(t, page.raw, "oct_")
		other := g.order(g.box.Admin.Token, "N-third")
		for name, value := range v.cookies {
			w := g.visitor()
			w.cookies[name] = value
			require.NotContains(t, w.send("GET", "/track/"+other.number, nil).raw, "oct_", "the proof of one parcel opens another")
		}
	})
	t.Run("the chat wants proof", func(t *testing.T) {
		r := g.visitor().send("POST", "/track/"+p.number, url.Values{"do": {"send"}, "text": {"hello"}, "client_message_id": {"x"}})
		require.Equal(t, 403, r.status, r.raw)
	})
}

// key is the secret of a parcel's link.
func (p parcel) key(t *testing.T) string {
	u, err := url.Parse(p.link)
	require.NoError(t, err)
	return u.Query().Get("k")
}

// remark lets an event say what is for staff only.
func (g *gateway) remark(p parcel) {
	g.t.Helper()
	now := otep.Time{Time: time.Now().UTC().Add(-time.Minute).Truncate(time.Second)}
	require.NoError(g.t, g.server.Store.Decide(g.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		s, err := v.ShipmentByNumber(p.number)
		if err != nil {
			return nil, err
		}
		e := otep.Event{EventID: "evt_remark", OccurredAt: now, RecordedAt: now, StatusCode: otep.DeliveryFailed, Message: "the dog bites", PoD: &otep.Proof{Note: "Left with Bob"},
			Location:   &otep.Location{Type: otep.PlaceAddress, Name: "Ann Lee", Address: "100 Queen", City: "Toronto"},
			Source:     &otep.Source{Type: "self_delivery", Reference: "ticket-77", RawStatus: "called twice", RawMessage: "called twice"},
			Extensions: otep.Extensions{"internal": json.RawMessage(`"called twice"`)}}
		return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{ShipmentID: s.ID, BusinessID: s.BusinessID, Event: e.Fill("parcel")}}}}, nil
	}))
}

// Ten thousand digits are few: a caller that asked often enough was the recipient.
func TestAttackDigitsAreGuessed(t *testing.T) {
	t.Parallel()
	g := launch(t)
	p := g.order(g.box.Admin.Token, "V-1")
	try := func(digits string) result {
		return g.must("GET", "/api/v1/tracking/"+p.number+"?verify="+digits, "", "")
	}
	for i := range 5 {
		require.Equal(t, "wrong", try(fmt.Sprintf("%04d", 9000+i)).text("access.verify"))
	}
	r := try("0123")
	require.Equal(t, "locked", r.text("access.verify"), "right digits look wrong while it is locked")
	require.Equal(t, "public", r.text("access.level"))
	wait, _ := r.at("access.retry_after").(float64)
	require.InDelta(t, 15*60, wait, 5)
	require.NotContains(t, r.raw, "Ann Lee")
	page := g.visitor().send("POST", "/track/"+p.number, url.Values{"do": {"verify"}, "digits": {"0123"}})
	require.Equal(t, 429, page.status)
	require.Contains(t, page.raw, "Too many wrong digits. Try again in ")
	require.NotContains(t, page.raw, "Ann Lee")
	otepRead := g.must("GET", "/api/v1/otep/trackings/"+p.number+"?verify=0123", "", "")
	require.Equal(t, "locked", otepRead.text("access.verify"))
	console := g.signIn(g.box.Admin)
	require.Contains(t, console.send("GET", "/console", nil).raw, p.number, "staff see which parcel is attacked")
	require.Contains(t, g.log.String(), "recipient check locked")
	require.NotContains(t, g.log.String(), "9001")
	other := g.order(g.box.Admin.Token, "V-2")
	require.Equal(t, "wrong", g.must("GET", "/api/v1/tracking/"+other.number+"?verify=9999", "", "").text("access.verify"), "another parcel is not locked")
	require.Equal(t, "recipient", g.must("GET", "/api/v1/tracking/"+p.number, "", "", "X-Tracking-Key", p.key(t)).text("access.level"), "the link still works")
}

// One call with a hundred numbers cost as much as one with one.
func TestAttackBatchesOfGuesses(t *testing.T) {
	t.Parallel()
	g := launch(t, func(c *server.Config) { c.Limits = catalog.Limits{Authenticated: -1} })
	p := g.order(g.box.Admin.Token, "B-1")
	numbers := make([]string, 100)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("%q", cloud.NewTrackingNumber())
	}
	guess := `{"tracking_numbers":[` + strings.Join(numbers, ",") + `]}`
	first := g.must("POST", "/api/v1/otep/trackings/batch", "", guess)
	require.Equal(t, "OTEP_TRACKING_NOT_FOUND", first.text("data.0.code"))
	require.Equal(t, "RATE_LIMITED", first.text("data.99.code"), "a batch costs its size")
	again := g.call("POST", "/api/v1/otep/trackings/batch", "", guess)
	require.Equal(t, 429, again.status, again.raw)
	require.NotEmpty(t, again.header.Get("Retry-After"))
	require.Equal(t, 429, g.call("GET", "/api/v1/tracking/"+p.number, "", "").status)
	require.Equal(t, 429, g.visitor().send("GET", "/track/"+p.number, nil).status)
	require.Equal(t, 200, g.call("GET", "/api/v1/tracking/"+p.number, g.box.Admin.Token, "").status, "its owner is not limited by it")
}

// Old numbers can be computed by everybody and are not given up: they say what
// is on the label.
func TestAttackOldNumbersSayLittle(t *testing.T) {
	t.Parallel()
	for mode, check := range map[string]func(*testing.T, result){
		"":       func(t *testing.T, r result) { require.Equal(t, "reduced", r.text("access.level")) },
		"open":   func(t *testing.T, r result) { require.Equal(t, "public", r.text("access.level")) },
		"closed": func(t *testing.T, r result) { require.Equal(t, 404, r.status) },
	} {
		t.Run("legacy "+mode, func(t *testing.T) {
			t.Parallel()
			g := launch(t, func(c *server.Config) { c.LegacyNumbers = mode })
			p := g.order(g.box.Admin.Token, "L-1")
			const old = "SR204518837"
			require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				s, err := v.ShipmentByNumber(p.number)
				s.Number = old
				return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}}, err
			}))
			r := g.call("GET", "/api/v1/tracking/"+old, "", "")
			check(t, r)
			if mode == "" {
				require.Equal(t, "information_submitted", r.text("otep_status"))
				require.NotEmpty(t, r.text("status_at"))
				require.Empty(t, r.at("events"))
				require.NotContains(t, r.raw, "Toronto")
				require.Nil(t, r.at("recipient.name"))
				require.Empty(t, g.must("GET", "/api/v1/otep/trackings/"+old, "", "").at("data.events"))
				require.NotContains(t, g.visitor().send("GET", "/track/"+old, nil).raw, "Toronto")
			}
			require.Equal(t, "recipient", g.must("GET", "/api/v1/tracking/"+old, "", "", "X-Tracking-Key", p.key(t)).text("access.level"))
			require.Equal(t, "owner", g.must("GET", "/api/v1/tracking/"+old, g.box.Staff.Token, "").text("access.level"))
		})
	}
}

// form is the hidden secret of a page's form.
var form = regexp.MustCompile(`name="form" value="([^"]+)"`)

// signIn signs a person in to the console.
func (g *gateway) signIn(who server.SandboxAccount) *visitor {
	g.t.Helper()
	v := g.visitor()
	m := form.FindStringSubmatch(v.send("GET", "/console/login", nil).raw)
	require.NotNil(g.t, m)
	r := v.send("POST", "/console/login", url.Values{"email": {who.Email}, "password": {who.Password}, "form": {m[1]}})
	require.Equal(g.t, 303, r.status, r.raw)
	return v
}
