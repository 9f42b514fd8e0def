package page_test

import (
	"html"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/otep"
)

// A recipient's page: by the link, which leaves the address; by digits, which are
// looked at five times; in every language.
func TestTheRecipientShowsWhoTheyAre(t *testing.T) {
	t.Parallel()
	keys := linkKey
	fresh := func() *rig { return newRig(t, nil) }
	path := "/track/" + webtest.Waiting
	const door = ">A-3<"
	t.Run("by the link", func(t *testing.T) {
		r := fresh()
		require.NotContains(t, r.do("GET", path, nil).body, door)
		s, err := r.w.DB.FindShipment(t.Context(), webtest.Waiting)
		require.NoError(t, err)
		g := r.do("GET", path+"?lang=fr&k="+keys.OfShipment(s.ID, 0), nil)
		require.Equal(t, 303, g.status)
		require.Equal(t, path+"?lang=fr", g.header("Location"))
		require.Contains(t, g.set["postern_parcel"], "HttpOnly")
		require.Contains(t, g.set["postern_parcel"], "path="+path)
		g = r.do("GET", path, nil)
		require.Contains(t, g.body, door)
		require.NotContains(t, g.body, `name="digits"`)
		require.NotContains(t, g.body, keys.OfShipment(s.ID, 0))
	})
	t.Run("by another link", func(t *testing.T) {
		r := fresh()
		for _, key := range []string{keys.OfShipment(999, 0), keys.OfOrder(1, 0), "x", "a%0d%0ab", "%3Cscript%3E"} {
			require.Equal(t, 303, r.do("GET", path+"?k="+key, nil).status)
			g := r.do("GET", path, nil)
			require.NotContains(t, g.body, door)
			clean(t, r, g)
		}
	})
	t.Run("by digits", func(t *testing.T) {
		r := fresh()
		give := func(digits string) got { return r.do("POST", path, url.Values{"do": {"verify"}, "digits": {digits}}) }
		for _, bad := range []string{"", "12", "abcd"} {
			g := give(bad)
			require.Equal(t, 422, g.status)
			clean(t, r, g)
		}
		g := give("9999")
		require.Equal(t, 422, g.status, "what is no guess does not count")
		require.Contains(t, g.body, locale.Word("en", "track.wrong"))
		g = give("0123")
		require.Equal(t, 303, g.status)
		require.Equal(t, path, g.header("Location"))
		require.Contains(t, r.do("GET", path, nil).body, door)
		require.Equal(t, 403, r.do("POST", path, url.Values{"do": {"verify"}, "digits": {"0123"}}, "Sec-Fetch-Site", "cross-site").status)
		delete(r.cookies, "postern_parcel")
		for range 4 {
			require.Equal(t, 422, give("9998").status)
		}
		for _, l := range locale.All() {
			r.cookies["postern_lang"] = l.Code
			g := give("0123")
			require.Equal(t, 429, g.status)
			require.Equal(t, "900", g.header("Retry-After"))
			require.Contains(t, g.body, locale.Word(l.Code, "track.locked", "15"))
			require.NotContains(t, g.body, door)
			clean(t, r, g)
		}
		r.signedIn()
		for _, l := range locale.All() {
			r.cookies["postern_lang"] = l.Code
			g := r.do("GET", "/console", nil)
			require.Contains(t, g.body, webtest.Waiting)
			require.Contains(t, g.body, locale.Value(l.Code, "exception", "proof_locked"))
		}
	})
}

// What the page offers for a proof is what the proof brings: digits show the compartment of a parcel
// that waits, and never its code; before that they show nothing more, and are not asked for.
func TestThePageOffersWhatAProofBrings(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := "/track/" + webtest.Waiting
	for _, l := range locale.All() {
		r.cookies["postern_lang"] = l.Code
		body := html.UnescapeString(r.do("GET", path, nil).body)
		require.Contains(t, body, locale.Word(l.Code, "track.codelink")+" "+locale.Word(l.Code, "track.digitsdoor")+"<")
		require.Contains(t, body, `name="digits"`)
		body = html.UnescapeString(r.do("GET", "/track/"+webtest.Announced, nil).body)
		require.Contains(t, body, locale.Word(l.Code, "track.codelater")+"<")
		require.NotContains(t, body, `name="digits"`, "they would show nothing more")
		clean(t, r, r.do("GET", "/track/"+webtest.Announced, nil))
	}
	r.cookies["postern_lang"] = "en"
	g := r.do("POST", "/track/"+webtest.Announced, url.Values{"do": {"verify"}, "digits": {"9999"}})
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, locale.Word("en", "track.wrong"))
	require.Equal(t, 303, r.do("POST", path, url.Values{"do": {"verify"}, "digits": {"0123"}}).status)
	body := html.UnescapeString(r.do("GET", path, nil).body)
	require.Contains(t, body, locale.Word("en", "track.codelink")+"<", "where the code is")
	require.Contains(t, body, ">A-3<")
	require.NotContains(t, body, `name="digits"`)

	linked, path, _ := withLink(t)
	body = html.UnescapeString(linked.do("GET", path, nil).body)
	require.NotContains(t, body, locale.Word("en", "track.codelink"), "the code is there")
}

// The page of an order that waits for its driver says who has it and the day that is set.
func TestThePageSaysWhatIsPlannedForAnOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	now := time.Now().UTC().Truncate(time.Second)
	day := now.AddDate(0, 0, 3)
	set := func(change func(*cloud.Order), code otep.Code) {
		o := cloud.Order{ID: 900, BusinessID: 42, Number: "PLAN-7Q2K-900", Type: cloud.DeliveryOrder, Status: cloud.OrderNew, Recipient: &cloud.Address{Name: "Jane Smith", Phone: "+1 416 555 0123", City: "Toronto", Country: "CA"}, CreatedAt: now, UpdatedAt: now}
		change(&o)
		e := otep.Event{OccurredAt: otep.Time{Time: now.Add(-time.Hour)}, RecordedAt: otep.Time{Time: now}, StatusCode: code, Source: &otep.Source{Type: otep.System}}
		e.EventID = otep.ID(otep.Subject{TrackingNumber: o.Number}, e)
		route := cloud.Route{ID: 90, BusinessID: 42, Date: day.Format(time.DateOnly), DriverID: 4, LastStop: 1, DispatchedAt: now, CreatedAt: now, UpdatedAt: now}
		r.w.Write(t, cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{route}}, OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}},
			TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 900, BusinessID: 42, Number: o.Number, OrderID: o.ID, Profile: "parcel", CreatedAt: now}},
				Events: []cloud.TimelineEvent{{ShipmentID: 900, BusinessID: 42, Event: e.Fill("parcel")}}}})
	}
	says := func(headline, next string, args ...any) {
		t.Helper()
		for _, l := range locale.All() {
			r.cookies["postern_lang"] = l.Code
			values := make([]any, len(args))
			for i, a := range args {
				if at, ok := a.(time.Time); ok {
					a = locale.DayMonth(l.Code, at)
				}
				values[i] = a
			}
			g := r.do("GET", "/track/PLAN-7Q2K-900", nil)
			clean(t, r, g)
			body := html.UnescapeString(g.body)
			require.Contains(t, body, "<h1>"+locale.Word(l.Code, headline)+"</h1>")
			require.Contains(t, body, `<p class="next">`+locale.Word(l.Code, next, values...)+"</p>")
		}
	}
	set(func(*cloud.Order) {}, otep.InformationSubmitted)
	r.cookies["postern_lang"] = "en"
	require.Contains(t, r.do("GET", "/track/PLAN-7Q2K-900", nil).body, "<h1>Announced by the sender</h1>", "nothing is planned")

	set(func(o *cloud.Order) { o.AssignmentID, o.BrokerID = 7, 9 }, otep.InformationSubmitted)
	says("plan.partner", "plan.partner.next")
	set(func(o *cloud.Order) { o.Status = cloud.OrderRoutePlanned }, otep.InformationSubmitted)
	says("plan.delivery", "plan.delivery.open")
	set(func(o *cloud.Order) {
		o.Status, o.ScheduledDate = cloud.OrderRoutePlanned, now.AddDate(0, 0, -2).Format(time.DateOnly)
	}, otep.InformationSubmitted)
	says("plan.delivery", "plan.delivery.open")
	set(func(o *cloud.Order) { o.Status, o.RouteID, o.Stop, o.DriverID = cloud.OrderDriverAssigned, 90, 1, 4 }, otep.InformationSubmitted)
	says("plan.driver", "plan.delivery.day", day)
	set(func(o *cloud.Order) {
		o.Status, o.RouteID, o.Stop, o.DriverID, o.WindowStart, o.WindowEnd = cloud.OrderDriverAccepted, 90, 1, 4, "13:00", "17:30"
	}, otep.InformationSubmitted)
	r.cookies["postern_lang"] = "en"
	require.Contains(t, r.do("GET", "/track/PLAN-7Q2K-900", nil).body, "A driver brings your parcel on "+locale.DayMonth("en", day)+", between 1:00 pm and 5:30 pm.")
	r.cookies["postern_lang"] = "de"
	require.Contains(t, r.do("GET", "/track/PLAN-7Q2K-900", nil).body, "Ein Fahrer bringt Ihr Paket am "+locale.DayMonth("de", day)+" zwischen 13:00 und 17:30 Uhr.")
	set(func(o *cloud.Order) {
		o.Type, o.Status, o.RouteID, o.Stop = cloud.PickupOrder, cloud.OrderDriverAssigned, 90, 1
	}, otep.InformationSubmitted)
	says("plan.driver", "plan.pickup.day", day)
	set(func(o *cloud.Order) { o.Status = cloud.OrderOutForDelivery }, otep.OutForDelivery)
	r.cookies["postern_lang"] = "en"
	require.Contains(t, r.do("GET", "/track/PLAN-7Q2K-900", nil).body, "<h1>"+locale.Headline("en", otep.OutForDelivery)+"</h1>")
}
