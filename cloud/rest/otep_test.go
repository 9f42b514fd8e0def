package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/otep/oteptest"
)

const (
	otepBase = "/api/v1/otep"
	ingest   = otepBase + "/ingest"
	capture  = otepBase + "/ingest/epcis"
)

// otepRig has parcels of its own beside the world's: of the provider, of
// no provider, and of another business.
func otepRig(t testing.TB) *rig {
	r := newRig(t, func(c *options) { c.BaseURL = "https://track.example/"; c.Limits.Ingest = -1 })
	r.w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{
		{ID: 101, BusinessID: 42, Number: "SR123456789", External: "1Z999", SSCC: "106141412345678908", ProviderID: 17, Profile: "parcel"},
		{ID: 102, BusinessID: 42, Number: "SR2", External: "1Z999", Profile: "parcel"},
		{ID: 103, BusinessID: 43, Number: "FOREIGN-1", External: "1Z-F", ProviderID: 18, Profile: "parcel"},
	}}})
	r.month = time.Now().AddDate(0, 0, -62).Format("2006-01-")
	return r
}

func timelineOf(number string, events ...string) string {
	return fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[%s]}`, number, strings.Join(events, ","))
}

func eventOf(code, at string, more ...string) string {
	return fmt.Sprintf(`{"occurred_at":%q,"status_code":%q,"source":{"type":"partner"}%s}`, at, code, strings.Join(more, ""))
}

// asMap is an answer's member of members.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
	}
	return v
}

func (r *rig) current(number string) any {
	r.t.Helper()
	return dig(r.do("GET", otepBase+"/trackings/"+number, "", "").json, "data", "current_status")
}

func TestIngestTakesWhatIsGoodAndSaysWhatIsNot(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	body := timelineOf("sr123456789",
		eventOf("arrival_scan", "2026-06-09T18:20:00-04:00"),
		eventOf("delivered", "2026-06-10T11:30:00-04:00", `,"pod":{"recipient":"Joan Smith","files":[{"file_id":7,"url":"https://files.example/7"}]}`),
		`{"status_code":"not_a_code","source":{"type":"bogus"}}`,
		eventOf("returned_to_sender", "2026-06-11T00:00:00Z", `,"recorded_at":"1999-01-01T00:00:00Z"`))
	g := r.do("POST", ingest, r.provider(), body)
	require.Equal(t, 200, g.status, string(g.body))
	require.Equal(t, 3.0, g.json["accepted"])
	require.Equal(t, 1.0, g.json["rejected"])
	tl := dig(g.json, "timelines", 0)
	require.Equal(t, "SR123456789", dig(tl, "tracking_number"))
	require.Equal(t, "return_to_sender", dig(tl, "current_status"))
	require.Equal(t, "rejected", dig(tl, "events", 2, "outcome"))
	require.Len(t, dig(tl, "errors"), 3)
	require.Equal(t, "events[2].occurred_at", dig(tl, "errors", 0, "path"))
	require.Equal(t, "occurred_at is required (ISO-8601 with offset)", dig(tl, "errors", 0, "message"))
	require.NotEmpty(t, dig(tl, "errors", 0, "hint"))
	// Again, and the same in another order with one more.
	g = r.do("POST", ingest, r.provider(), body)
	require.Equal(t, 200, g.status)
	require.Equal(t, 0.0, g.json["accepted"])
	require.Equal(t, 3.0, g.json["duplicates"])
	g = r.do("POST", ingest, r.provider(), timelineOf("SR123456789", eventOf("out_for_delivery", "2026-06-10T07:00:00-04:00"), eventOf("arrival_scan", "2026-06-09T22:20:00Z")))
	require.Equal(t, 1.0, g.json["accepted"], string(g.body))
	require.Equal(t, 1.0, g.json["duplicates"], "the same instant in another offset")

	public := r.do("GET", otepBase+"/trackings/SR123456789", "", "")
	events := dig(public.json, "data", "events").([]any)
	require.Len(t, events, 4)
	codes := ""
	for _, e := range events {
		codes += dig(e, "status_code").(string) + " "
		require.Equal(t, "swiftparcel", dig(e, "source", "provider"))
		require.Equal(t, "partner", dig(e, "source", "type"))
	}
	require.Equal(t, "arrival_scan out_for_delivery delivered return_to_sender ", codes)
	require.Equal(t, "2026-06-09T18:20:00-04:00", dig(events[0], "occurred_at"))
	require.Equal(t, map[string]any{"recipient": "J. Smith"}, dig(events[2], "pod"))
	require.NotContains(t, string(public.body), "files.example")
	own := r.do("GET", otepBase+"/trackings/SR123456789", r.provider(), "")
	require.Contains(t, string(own.body), "files.example")
	require.Equal(t, 200, r.do("GET", otepBase+"/trackings/SR123456789", r.w.Stranger, "").status)
	require.NotContains(t, string(r.do("GET", otepBase+"/trackings/SR123456789", r.w.Stranger, "").body), "files.example")
}

// A move that makes no sense is stored and reported, also when its other half
// was there before.
func TestIngestWarnsOfMoves(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	require.Equal(t, 200, r.do("POST", ingest, r.provider(), timelineOf("SR123456789", eventOf("delivered", "2026-06-10T11:30:00-04:00"))).status)
	g := r.do("POST", ingest, r.provider(), timelineOf("SR123456789", eventOf("in_transit", "2026-06-11T11:30:00-04:00", `,"event_id":"later"`)))
	require.Equal(t, 1.0, g.json["accepted"])
	require.Equal(t, "V43", dig(g.json, "timelines", 0, "warnings", 0, "code"))
	require.Equal(t, "events[0].status_code", dig(g.json, "timelines", 0, "warnings", 0, "path"))
	require.Equal(t, "in_transit", r.current("SR123456789"))
	g = r.do("POST", ingest, r.provider(), timelineOf("SR123456789", `{"occurred_at":"2026-06-12T00:00:00Z","status_code":"return_to_sender","source":{"type":"carrier","provider":"ups"}}`))
	require.Equal(t, "source.type 'carrier' was replaced by 'partner'", dig(g.json, "timelines", 0, "warnings", 0, "message"))
	require.Equal(t, "source.provider 'ups' was replaced by 'swiftparcel'", dig(g.json, "timelines", 0, "warnings", 1, "message"))
}

// A list is taken side by side; paths name the timeline; one unknown parcel
// does not keep the others out.
func TestIngestOfAList(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	body := fmt.Sprintf(`{"timelines":[%s,%s,%s,%s,{"otep_version":"9.0"}]}`,
		timelineOf("SR123456789", eventOf("picked_up", "2026-06-09T18:20:00-04:00")), timelineOf("NOBODY", eventOf("picked_up", "2026-06-09T18:20:00-04:00")),
		timelineOf("SR2", eventOf("picked_up", "2026-06-09T18:20:00-04:00")), timelineOf("FOREIGN-1", eventOf("picked_up", "2026-06-09T18:20:00-04:00")))
	g := r.do("POST", ingest, r.provider(), body)
	require.Equal(t, 200, g.status, string(g.body))
	require.Equal(t, 1.0, g.json["accepted"])
	require.Equal(t, 3.0, g.json["rejected"])
	require.Equal(t, "OTEP_TRACKING_NOT_FOUND", dig(g.json, "timelines", 1, "errors", 0, "code"))
	require.Equal(t, "timelines[1]", dig(g.json, "timelines", 1, "errors", 0, "path"))
	require.Nil(t, dig(g.json, "timelines", 1, "tracking_number"))
	require.Equal(t, "OTEP_PROVIDER_FORBIDDEN", dig(g.json, "timelines", 2, "errors", 0, "code"))
	require.Equal(t, "OTEP_TRACKING_NOT_FOUND", dig(g.json, "timelines", 3, "errors", 0, "code"), "another tenant's parcel is an unknown one")
	require.Equal(t, "timelines[4].otep_version", dig(g.json, "timelines", 4, "errors", 0, "path"))
	require.Nil(t, r.current("SR2"))
	require.Nil(t, r.current("FOREIGN-1"))
}

func TestIngestFindsTheParcelByAnyOfItsNumbers(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	for i, subject := range []string{`{"external_tracking_number":"1z999"}`, `{"gs1_sscc":"00106141412345678908"}`, `{"tracking_number":"UNKNOWN","gs1_sscc":"106141412345678908"}`} {
		body := fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":%s,"events":[%s]}`, subject, eventOf("in_transit", fmt.Sprintf("2026-06-1%dT00:00:00Z", i)))
		g := r.do("POST", ingest, r.provider(), body)
		require.Equal(t, 200, g.status, string(g.body))
		require.Equal(t, "SR123456789", dig(g.json, "timelines", 0, "tracking_number"))
	}
	g := r.do("GET", otepBase+"/trackings/1Z999", r.provider(), "")
	require.Equal(t, "SR123456789", dig(g.json, "data", "subject", "tracking_number"), "of several, the one the caller may see")
	g = r.do("GET", otepBase+"/trackings/1z999", "", "")
	require.Equal(t, "SR2", dig(g.json, "data", "subject", "tracking_number"), "else the newest")
}

func TestScopeAllReachesTheWholeBusinessAndNoFurther(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{{ID: 17, BusinessID: 42, Code: "swiftparcel", Name: "Swift Parcel", SourceType: "carrier", Scope: cloud.ScopeAll}}}})
	require.Equal(t, 200, r.do("POST", ingest, r.provider(), timelineOf("SR2", eventOf("picked_up", "2026-06-09T18:20:00-04:00"))).status)
	r.refused(r.do("POST", ingest, r.provider(), timelineOf("FOREIGN-1", eventOf("picked_up", "2026-06-09T18:20:00-04:00"))), 404, "OTEP_TRACKING_NOT_FOUND")
	require.Equal(t, "carrier", dig(r.do("GET", otepBase+"/trackings/SR2", "", "").json, "data", "events", 0, "source", "type"))
}

func TestIngestErrors(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	good := timelineOf("SR123456789", eventOf("picked_up", "2026-06-09T18:20:00-04:00"))
	for _, path := range []string{ingest, capture} {
		r.refused(r.do("POST", path, "", good), 401, "OTEP_CREDENTIALS_REQUIRED")
		r.refused(r.do("POST", path, r.w.Expired, good), 401, "OTEP_CREDENTIALS_REQUIRED")
		for typ, token := range r.w.Tokens {
			if typ != cloud.ProviderType {
				r.refused(r.do("POST", path, token, good), 403, "OTEP_PROVIDER_FORBIDDEN")
			}
		}
		for _, bad := range []string{`{`, ` `, `{"a":1}}`, "\xff"} {
			r.refused(r.do("POST", path, r.provider(), bad), 400, "OTEP_INVALID_JSON")
		}
		status, over := r.raw("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2097153\r\n\r\n{")
		require.Equal(t, 413, status)
		require.Contains(t, over, "OTEP_PAYLOAD_TOO_LARGE")
		r.refused(r.do("POST", path, r.provider(), good, "Content-Type", "text/xml"), 415, "UNSUPPORTED_MEDIA_TYPE")
	}
	r.refused(r.do("POST", ingest, r.provider(), timelineOf("NOBODY", eventOf("picked_up", "2026-06-09T18:20:00-04:00"))), 404, "OTEP_TRACKING_NOT_FOUND")
	r.refused(r.do("POST", ingest, r.provider(), timelineOf("SR2", eventOf("picked_up", "2026-06-09T18:20:00-04:00"))), 403, "OTEP_PROVIDER_FORBIDDEN")
	g := r.do("POST", ingest, r.provider(), timelineOf("SR123456789", `{"status_code":"not_a_code","source":{"type":"bogus"}}`))
	r.refused(g, 422, "OTEP_NOT_CONFORMANT")
	require.Len(t, g.json["errors"], 3)
	require.Len(t, g.json["warnings"], 0)
	r.refused(r.do("POST", ingest, r.provider(), `{"otep_version":"0.1"}`), 422, "OTEP_NOT_CONFORMANT")
	r.refused(r.do("POST", ingest, r.provider(), `[]`), 422, "OTEP_NOT_CONFORMANT")
	r.refused(r.do("POST", ingest, r.provider(), `{"timelines":7}`), 422, "OTEP_INVALID_REQUEST")
	r.refused(r.do("POST", ingest, r.provider(), `{"timelines":[]}`), 422, "OTEP_INVALID_REQUEST")
	r.refused(r.do("POST", ingest, r.provider(), `{"timelines":[`+strings.Repeat("{},", 100)+"{}]}"), 413, "OTEP_PAYLOAD_TOO_LARGE")
	many := make([]string, 1001)
	for i := range many {
		many[i] = "{}"
	}
	r.refused(r.do("POST", ingest, r.provider(), timelineOf("SR123456789", many...)), 413, "OTEP_PAYLOAD_TOO_LARGE")
	require.Nil(t, r.current("SR123456789"), "nothing of all that was stored")
}

// An event over a limit is rejected, and no other event for it: by both ways in.
func TestAnEventOverALimitIsRejectedAlone(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	for member, value := range map[string]string{
		"message": `"` + strings.Repeat("x", 501) + `"`, "extensions": `{"x":"` + strings.Repeat("x", 8<<10) + `"}`,
		"telemetry": `[` + strings.Repeat(`{"type":"t","value":1},`, 100) + `{"type":"t","value":1}]`,
	} {
		over := eventOf("picked_up", "2026-06-09T18:20:00-04:00", `,"`+member+`":`+value)
		g := r.do("POST", ingest, r.provider(), timelineOf("SR123456789", over))
		r.refused(g, 422, "OTEP_NOT_CONFORMANT")
		require.Equal(t, "V37", dig(g.json, "errors", 0, "code"), member)
		require.Nil(t, r.current("SR123456789"), member)
	}
	over := eventOf("picked_up", "2026-06-09T18:20:00-04:00", `,"message":"`+strings.Repeat("x", 501)+`"`)
	g := r.do("POST", ingest, r.provider(), `{"timelines":[`+timelineOf("SR123456789", over, eventOf("in_transit", "2026-06-09T19:20:00-04:00"))+`]}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, []any{1.0, 1.0}, []any{g.json["accepted"], g.json["rejected"]})
	require.Equal(t, "timelines[0].events[0].message", dig(g.json, "timelines", 0, "errors", 0, "path"))
	require.Equal(t, "in_transit", r.current("SR123456789"))

	capturedEvent := func(id, at, more string) string {
		return fmt.Sprintf(`{"type":"ObjectEvent","eventID":%q,"action":"OBSERVE","bizStep":"arriving","eventTime":%q,"eventTimeZoneOffset":"-04:00","epcList":["urn:epc:id:sscc:0614141.1234567890"]%s}`, id, at, more)
	}
	reading := `{"sensorReport":[` + strings.Repeat(`{"type":"Temperature","value":1,"uom":"CEL"},`, 100) + `{"type":"Temperature","value":1,"uom":"CEL"}]}`
	g = r.do("POST", capture, r.provider(), `[`+capturedEvent("a", "2026-06-10T10:00:00-04:00", `,"sensorElementList":[`+reading+`]`)+`,`+capturedEvent("b", "2026-06-10T11:00:00-04:00", "")+`]`)
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, []any{1.0, 1.0}, []any{g.json["accepted"], g.json["rejected"]})
}

// An id stands for one event: the same event again is a duplicate, another one with its id a
// conflict, which changes nothing and says what is stored.
func TestAnIDWithOtherContentIsAConflict(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	at := "2026-06-09T18:20:00-04:00"
	first := eventOf("arrival_scan", at, `,"event_id":"e-1","message":"in","location":{"city":"Oslo","country":"no"},"extensions":{"n":1.50,"o":{"b":1,"a":2}}`)
	require.Equal(t, 200, r.do("POST", ingest, r.provider(), timelineOf("SR123456789", first)).status)
	same := eventOf("otep:parcel:arrival_scan", "2026-06-09T22:20:00Z", `,"event_id":"e-1","recorded_at":"2026-06-09T23:00:00Z","extensions":{"o":{"a":2,"b":1},"n":1.50},"location":{"country":"NO","city":"Oslo"},"message":"in"`)
	g := r.do("POST", ingest, r.provider(), timelineOf("SR123456789", same))
	require.Equal(t, []any{200, 1.0}, []any{g.status, g.json["duplicates"]}, "%s", g.body)
	less := eventOf("arrival_scan", at, `,"event_id":"e-1","location":{"city":"Oslo"}`)
	require.Equal(t, 1.0, r.do("POST", ingest, r.provider(), timelineOf("SR123456789", less)).json["duplicates"], "nothing of it is new")
	for _, other := range []string{
		strings.Replace(less, `"Oslo"`, `"Oslo","region":"03"`, 1), strings.Replace(first, `"n":1.50`, `"n":1.50,"m":null`, 1),
		eventOf("in_transit", at, `,"event_id":"e-1","message":"in","location":{"city":"Oslo","country":"no"},"extensions":{"n":1.50,"o":{"b":1,"a":2}}`),
		strings.Replace(first, "18:20:00", "18:20:01", 1), strings.Replace(first, `"in"`, `"out"`, 1), strings.Replace(first, "Oslo", "Bergen", 1), strings.Replace(first, `"a":2`, `"a":3`, 1),
	} {
		g = r.do("POST", ingest, r.provider(), timelineOf("SR123456789", other))
		r.refused(g, 409, "OTEP_EVENT_CONFLICT")
		e := dig(g.json, "timelines", 0, "events", 0).(map[string]any)
		require.Equal(t, []any{"conflict", "arrival_scan"}, []any{e["outcome"], dig(e, "stored", "status_code")})
		require.Equal(t, []any{"I05", "events[0].event_id"}, []any{dig(g.json, "errors", 0, "code"), dig(g.json, "errors", 0, "path")})
	}
	g = r.do("POST", ingest, r.provider(), timelineOf("SR123456789", strings.Replace(first, `"in"`, `"out"`, 1), eventOf("in_transit", "2026-06-09T19:20:00-04:00")))
	require.Equal(t, []any{200, 1.0, 1.0, 0.0}, []any{g.status, g.json["accepted"], g.json["conflicts"], g.json["rejected"]}, "%s", g.body)
	events := dig(r.do("GET", otepBase+"/trackings/SR123456789", r.provider(), "").json, "data", "events").([]any)
	require.Len(t, events, 2)
	require.Equal(t, "in", dig(events[0], "message"))

	// As EPCIS: what a business step was read as stays, however much is known by then.
	step := func(id, bizStep, at, more string) string {
		return fmt.Sprintf(`{"type":"ObjectEvent","eventID":%q,"action":"OBSERVE","bizStep":%q,"eventTime":%q,"eventTimeZoneOffset":"-04:00","epcList":["urn:epc:id:sscc:0614141.1234567890"]%s}`, id, bizStep, at, more)
	}
	r = otepRig(t)
	received := step("urn:x:1", "receiving", "2026-06-10T10:00:00-04:00", `,"recordTime":"2026-06-10T10:00:01-04:00"`)
	require.Equal(t, 1.0, r.do("POST", capture, r.provider(), received).json["accepted"])
	require.Equal(t, "picked_up", r.current("SR123456789"))
	require.Equal(t, 1.0, r.do("POST", capture, r.provider(), step("urn:x:2", "departing", "2026-06-10T09:00:00-04:00", `,"otep:status_code":"in_transit"`)).json["accepted"])
	again := step("urn:x:1", "receiving", "2026-06-10T10:00:00-04:00", `,"recordTime":"2026-06-11T10:00:01-04:00"`)
	g = r.do("POST", capture, r.provider(), again)
	require.Equal(t, []any{200, 1.0}, []any{g.status, g.json["duplicates"]}, "%s", g.body)
	r.refused(r.do("POST", capture, r.provider(), step("urn:x:1", "receiving", "2026-06-10T10:00:30-04:00", "")), 409, "OTEP_EVENT_CONFLICT")
}

// A provider takes back what it sent, or puts another event in its place: both or none. All
// formats follow; owners see what was withdrawn, why and by whom, and no one else does.
func TestWithdrawalsAndCorrections(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{{ID: 17, BusinessID: 42, Code: "swiftparcel", Name: "Swift Parcel", SourceType: "carrier", Scope: cloud.ScopeAll}}}})
	const number = "SR123456789"
	send := func(events, withdrawals string) got {
		return r.do("POST", ingest, r.provider(), fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[%s],"withdrawals":[%s]}`, number, events, withdrawals))
	}
	codes := func(query, token string) (out []string) {
		for _, e := range dig(r.do("GET", otepBase+"/trackings/"+number+"/events"+query, token, "").json, "data").([]any) {
			word := dig(e, "status_code").(string)
			if w := dig(e, "withdrawn"); w != nil {
				word = fmt.Sprint("-", word, " ", dig(w, "reason"), " ", dig(w, "by"), " ", dig(w, "corrected_by"))
				require.NotNil(t, dig(w, "at"))
			}
			out = append(out, word)
		}
		return out
	}
	event := func(id, code, at, more string) string {
		return eventOf(code, "2026-06-09T"+at+":00Z", fmt.Sprintf(`,"event_id":%q%s`, id, more))
	}
	require.Equal(t, 200, send(event("a", "picked_up", "08:00", "")+","+event("b", "in_transit", "09:00", "")+","+event("c", "delivered", "10:00", ""), "").status)
	require.Equal(t, "delivered", r.current(number))

	// It did not happen.
	g := send("", `{"event_id":"c","reason":"did_not_occur"}`)
	require.Equal(t, []any{200, 1.0, "withdrawn"}, []any{g.status, g.json["withdrawn"], dig(g.json, "timelines", 0, "withdrawals", 0, "outcome")}, "%s", g.body)
	require.Equal(t, "in_transit", r.current(number))
	g = send("", `{"event_id":"c","reason":"incorrect_data"}`)
	require.Equal(t, []any{200, 1.0, "duplicate"}, []any{g.status, g.json["duplicates"], dig(g.json, "timelines", 0, "withdrawals", 0, "outcome")}, "%s", g.body)
	require.Equal(t, 1.0, send(event("c", "delivered", "10:00", ""), "").json["duplicates"], "what was withdrawn does not come again")

	// It was another thing.
	g = send(event("d", "arrival_scan", "09:30", `,"corrects":"b"`), "")
	require.Equal(t, []any{200, 1.0}, []any{g.status, g.json["accepted"]}, "%s", g.body)
	require.Equal(t, []string{"picked_up", "arrival_scan"}, codes("", ""))
	require.Equal(t, 1.0, send(event("d", "arrival_scan", "09:30", `,"corrects":"b"`), "").json["duplicates"])
	g = send(event("f", "delivered", "11:00", `,"corrects":"e"`)+","+event("e", "out_for_delivery", "12:00", ""), "")
	require.Equal(t, []any{200, 2.0}, []any{g.status, g.json["accepted"]}, "what is corrected may come with it: %s", g.body)

	// What was sent without an id is named by the one that it got, and may differ in its place alone.
	g = send(eventOf("picked_up", "2026-06-08T08:00:00Z", `,"location":{"city":"Oslo"}`), "")
	id := dig(g.json, "timelines", 0, "events", 0, "event_id").(string)
	g = send(eventOf("picked_up", "2026-06-08T08:00:00Z", `,"location":{"city":"Bergen"},"event_id":"g","corrects":"`+id+`"`), "")
	require.Equal(t, []any{200, 1.0}, []any{g.status, g.json["accepted"]}, "%s", g.body)
	g = send("", `{"event_id":"g","reason":"did_not_occur"}`)
	require.Equal(t, 1.0, g.json["withdrawn"], "%s", g.body)

	// Both or none.
	for _, bad := range []string{event("x", "delivered", "13:00", `,"corrects":"nothing"`), event("x", "delivered", "13:00", `,"corrects":"x"`), event("x", "not_a_code", "13:00", `,"corrects":"a"`), eventOf("delivered", "2062-06-09T13:00:00Z", `,"corrects":"a"`)} {
		g = send(bad, "")
		r.refused(g, 422, "OTEP_NOT_CONFORMANT")
	}
	r.refused(send("", `{"event_id":"nothing","reason":"did_not_occur"}`), 422, "OTEP_NOT_CONFORMANT")
	g = send("", `{"event_id":"a","reason":"changed_my_mind"}`)
	r.refused(g, 422, "OTEP_NOT_CONFORMANT")
	require.Equal(t, "withdrawals[0].reason", dig(g.json, "errors", 0, "path"))
	require.Equal(t, []string{"picked_up", "arrival_scan", "delivered"}, codes("", ""))
	for _, f := range projection.Formats() {
		require.NotContains(t, string(r.do("GET", otepBase+"/trackings/"+number+"?format="+f.Name, r.provider(), "").body), "out_for_delivery", f.Name)
	}

	// Another's event stays.
	r.w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{ShipmentID: 101, BusinessID: 42, Event: otep.Event{EventID: "own", OccurredAt: otep.Time{Time: time.Date(2026, 6, 9, 7, 0, 0, 0, time.UTC)},
		RecordedAt: otep.Time{Time: time.Date(2026, 6, 9, 7, 0, 0, 0, time.UTC)}, StatusCode: otep.InformationSubmitted, Source: &otep.Source{Type: otep.System}}.Fill("parcel")}}}})
	r.refused(send("", `{"event_id":"own","reason":"did_not_occur"}`), 422, "OTEP_NOT_CONFORMANT")
	r.refused(send(event("y", "cancelled", "13:00", `,"corrects":"own"`), ""), 422, "OTEP_NOT_CONFORMANT")

	require.Equal(t, []string{"information_submitted", "-picked_up incorrect_data swiftparcel g", "-picked_up did_not_occur swiftparcel <nil>", "picked_up", "-in_transit incorrect_data swiftparcel d", "arrival_scan", "-delivered did_not_occur swiftparcel <nil>", "delivered", "-out_for_delivery incorrect_data swiftparcel f"},
		codes("?include=withdrawn", r.w.Tokens[cloud.ClientAdmin]))
	r.refused(r.do("GET", otepBase+"/trackings/"+number+"/events?include=withdrawn", "", ""), 401, "OTEP_CREDENTIALS_REQUIRED")
	r.refused(r.do("GET", otepBase+"/trackings/"+number+"/events?include=withdrawn", r.w.Tokens[cloud.Customer], ""), 403, "OTEP_PROVIDER_FORBIDDEN")
	r.refused(r.do("GET", otepBase+"/trackings/"+number+"/events?include=withdrawn&format=epcis", r.w.Tokens[cloud.Customer], ""), 403, "OTEP_PROVIDER_FORBIDDEN")
	r.refused(r.do("GET", otepBase+"/trackings/"+number+"/events?include=withdrawn&format=onerecord", r.w.Tokens[cloud.ClientAdmin], ""), 422, "OTEP_INVALID_REQUEST")

	// EPCIS lists the original and its declaration, and another deployment makes the same of them.
	told := r.do("GET", otepBase+"/trackings/"+number+"/events?include=withdrawn&format=epcis", r.w.Tokens[cloud.ClientAdmin], "").json["data"].([]any)
	require.Len(t, told, 9+5)
	for i, e := range told {
		if d := dig(e, "errorDeclaration"); d != nil {
			require.Equal(t, dig(told[i-1], "eventID"), dig(e, "eventID"), "a declaration stands behind its original")
			require.NotEmpty(t, dig(d, "declarationTime"))
		}
	}
	document, err := json.Marshal(map[string]any{"type": "EPCISDocument", "schemaVersion": "2.0", "creationDate": "2026-06-10T00:00:00Z", "epcisBody": map[string]any{"eventList": told[1:]}})
	require.NoError(t, err)
	here := codes("?include=withdrawn", r.w.Tokens[cloud.ClientAdmin])[1:]
	r = otepRig(t)
	g = r.do("POST", capture, r.provider(), string(document))
	require.Equal(t, []any{200, 8.0, 5.0, 0.0}, []any{g.status, g.json["accepted"], g.json["withdrawn"], g.json["rejected"]}, "%s", g.body)
	there := codes("?include=withdrawn", r.w.Tokens[cloud.ClientAdmin])
	for i := range here { // what corrected it has no place there
		here[i] = strings.Join(strings.Fields(here[i])[:min(2, len(strings.Fields(here[i])))], " ")
		there[i] = strings.Join(strings.Fields(there[i])[:min(2, len(strings.Fields(there[i])))], " ")
	}
	require.Equal(t, here, there)
	require.Equal(t, 13.0, r.do("POST", capture, r.provider(), string(document)).json["duplicates"], "and none twice")
	r.refused(r.do("GET", otepBase+"/trackings/"+number+"/events?include=all", r.w.Tokens[cloud.ClientAdmin], ""), 422, "OTEP_INVALID_REQUEST")
}

// A body that is no JSON is answered with the place of what is wrong.
func TestWhatIsNoJSONIsFoundAtItsPlace(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	bad := timelineOf("SR123456789", eventOf("in_transit", "2026-06-09T19:20:00-04:00", `,"source":{"type":"iot"}`))
	for path, body := range map[string]string{otepBase + "/validate": "{\"a\":1,\n\"b\":x}", ingest: "{\"a\":1,\n\"b\":x}", capture: "{\"a\":1,\n\"b\":x}", otepBase + "/trackings/batch": "{\"a\":1,\n\"b\":x}"} {
		g := r.do("POST", path, r.provider(), body)
		r.refused(g, 400, "OTEP_INVALID_JSON")
		require.Equal(t, map[string]any{"offset": 12.0, "line": 2.0, "column": 5.0, "problem": "invalid character 'x' looking for beginning of value"}, g.json["details"], path)
	}
	for _, list := range []string{bad, `{"timelines":[` + "\n" + bad + `]}`} {
		g := r.do("POST", ingest, r.provider(), list)
		r.refused(g, 400, "OTEP_INVALID_JSON")
		require.Equal(t, float64(strings.LastIndex(list, `"source"`)), dig(g.json, "details", "offset"))
		require.Equal(t, `member "source" is given twice`, dig(g.json, "details", "problem"))
	}
}

// The schema, the validator and ingest agree about every event of a faulty document.
func TestSchemaValidatorAndIngestAgree(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	var r *rig
	taken, refused := 0, 0
	for seed := range uint64(ring.Among(300, 10000, 30000)) {
		if seed%1000 == 0 { // a timeline fills
			r = otepRig(t)
			r.month = ""
		}
		doc := oteptest.Mutate(rand.New(rand.NewPCG(seed, 37)), []byte(strings.ReplaceAll(oteptest.Full, `"SR1"`, `"SR123456789"`)))
		verdict := r.do("POST", otepBase+"/validate", "", string(doc))
		require.Equal(t, 200, verdict.status, "%s", doc)
		answer := r.do("POST", ingest, r.provider(), string(doc))
		whole, wrong, ahead, blind := false, map[int]bool{}, map[int]bool{}, false
		for _, f := range dig(verdict.json, "errors").([]any) {
			rule, path := dig(f, "code").(string), dig(f, "path").(string)
			if rule >= "V40" { // ingest warns of them, as real sources skip
				blind = blind || rule >= "V44" // of which the schema sees a part
				continue
			}
			var i int
			if _, err := fmt.Sscanf(path, "events[%d]", &i); err == nil {
				ahead[i] = ahead[i] || rule == "V13" // staff see it before it is taken
				wrong[i] = wrong[i] || rule != "V13"
			} else {
				whole = true
			}
			blind = blind || rule == "V16" || rule == "V34" || path == "subject.gs1_sscc" || strings.HasSuffix(path, ".extensions")
		}
		if ok := schema(doc); !blind {
			require.Equal(t, !whole && !slices.Contains(slices.Collect(maps.Values(wrong)), true) && !slices.Contains(slices.Collect(maps.Values(ahead)), true), ok, "seed %d: %s", seed, doc)
		}
		list, ok := dig(answer.json, "timelines").([]any)
		if !ok || len(list) != 1 {
			require.Contains(t, []int{403, 404, 422}, answer.status, "seed %d: %s", seed, doc) // another's parcel, or not one event
			continue
		}
		events := dig(list[0], "events").([]any)
		known, other := dig(list[0], "tracking_number") != nil, map[int]bool{}
		for _, f := range dig(list[0], "errors").([]any) {
			var i int
			if _, err := fmt.Sscanf(dig(f, "path").(string), "events[%d].corrects", &i); err == nil && dig(f, "code") == "I02" {
				other[i] = true // no document says what was sent before
			}
			if _, err := fmt.Sscanf(dig(f, "path").(string), "events[%d].occurred_at", &i); err == nil && dig(f, "code") == "V13" {
				other[i] = true // a correction does not wait for staff
			}
		}
		for _, e := range events {
			i := int(dig(e, "index").(float64))
			rejected := dig(e, "outcome") == "rejected"
			if known && ahead[i] && !whole && !wrong[i] && !strings.Contains(string(doc), `"corrects"`) {
				require.Contains(t, []any{"quarantined", "duplicate"}, dig(e, "outcome"), "seed %d: event %d of %s: %s", seed, i, doc, answer.body)
			}
			if known && !other[i] {
				require.Equal(t, whole || wrong[i], rejected, "seed %d: event %d of %s: %s", seed, i, doc, answer.body)
			}
			if rejected {
				refused++
			} else {
				taken++
			}
		}
	}
	require.NotZero(t, taken)
	require.NotZero(t, refused)
}

// compiledSchema is the published schema, asked whether it takes a document.
func compiledSchema(t *testing.T) func(doc []byte) bool {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(otep.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("otep.json", parsed))
	s, err := c.Compile("otep.json")
	require.NoError(t, err)
	return func(doc []byte) bool {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		require.NoError(t, err)
		return s.Validate(v) == nil
	}
}

// A source that only knows the present gives one event per change.
func TestASourceWithOnlyACurrentStatus(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	tell := func(status, at string) map[string]any {
		body := fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR123456789"},"current_status":%q,"last_event_at":%q,"events":[]}`, status, at)
		return r.do("POST", ingest, r.provider(), body).json
	}
	require.Equal(t, 1.0, tell("in_transit", "2026-06-09T10:00:00+02:00")["accepted"])
	require.Equal(t, 1.0, tell("in_transit", "2026-06-09T11:00:00+02:00")["duplicates"], "no change, no event")
	require.Equal(t, 1.0, tell("delivered", "2026-06-10T10:00:00+02:00")["accepted"])
	require.Equal(t, "OTEP_NOT_CONFORMANT", tell("Somewhere", "")["code"])
	require.Equal(t, 1.0, tell("returned", "2026-06-11T10:00:00+02:00")["accepted"], "an accepted spelling")
	events := dig(r.do("GET", otepBase+"/trackings/SR123456789", r.provider(), "").json, "data", "events").([]any)
	require.Len(t, events, 3)
	require.Equal(t, "2026-06-09T10:00:00+02:00", dig(events[0], "occurred_at"))
	require.Equal(t, true, dig(events[0], "source", "synthesized"))
	require.Equal(t, "returned", dig(events[2], "source", "raw_status"))
	require.Equal(t, "return_to_sender", dig(events[2], "status_code"))
}

func TestEveryFormatOverHTTP(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	raw, err := os.ReadFile(filepath.Join("..", "projection", "testdata", "otep.json"))
	require.NoError(t, err)
	require.Equal(t, 200, r.do("POST", ingest, r.provider(), string(raw)).status)
	path := otepBase + "/trackings/SR123456789"
	for _, f := range projection.Formats() {
		g := r.do("GET", path+"?format="+strings.ToUpper(f.Name), "", "")
		require.Equal(t, 200, g.status, f.Name)
		require.Equal(t, f.Name, g.json["format"])
		require.Equal(t, "application/json; charset=utf-8", g.header("Content-Type"))
		require.Equal(t, "public, max-age=30", g.header("Cache-Control"))
		require.Equal(t, "Accept, Accept-Language, Authorization, X-Tracking-Key", g.header("Vary"))
		bare := r.do("GET", path+"?envelope=0", "", "", "Accept", `application/json;profile="`+f.Name+`"`)
		require.Equal(t, f.MediaType, bare.header("Content-Type"), f.Name)
		want, err := json.Marshal(g.json["data"])
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(bare.body))
		require.Equal(t, 304, r.do("GET", path+"?envelope=0&format="+f.Name, "", "", "If-None-Match", bare.header("ETag")).status, "the same timeline is the same document")
		list := r.do("GET", path+"/events?format="+f.Name, "", "")
		require.Equal(t, "SR123456789", list.json["tracking_number"])
		if f.Coarse {
			require.Len(t, list.json["data"], 1)
			require.Equal(t, true, dig(list.json["data"], 0, "approximate"))
			continue
		}
		require.Len(t, list.json["data"], 3, f.Name)
		require.Equal(t, 3.0, list.json["total"])
		turned := r.do("GET", path+"/events?order=desc&format="+f.Name, "", "")
		require.Equal(t, dig(list.json["data"], 0), dig(turned.json["data"], 2))
	}
	require.Contains(t, string(r.do("GET", path+"?format=epcis", "", "").body), "https://track.example/api/v1/otep/trackings/SR123456789?format=epcis")
	all := r.do("GET", path+"/events", "", "")
	first := dig(all.json["data"], 0, "recorded_at").(string)
	require.Len(t, r.do("GET", path+"/events?since="+strings.ReplaceAll(first, "+", "%2B"), "", "").json["data"], 0, "recorded at once, none after")
	require.Len(t, r.do("GET", path+"/events?since=2020-01-01T00:00:00Z", "", "").json["data"], 3)
	r.refused(r.do("GET", path+"/events?since=yesterday", "", ""), 422, "OTEP_INVALID_REQUEST")
	r.refused(r.do("GET", path+"/events?order=up", "", ""), 422, "OTEP_INVALID_REQUEST")
	r.refused(r.do("GET", otepBase+"/trackings/NOBODY/events", "", ""), 404, "OTEP_TRACKING_NOT_FOUND")
	require.Equal(t, "otep", r.do("GET", path, "", "", "Accept", `application/json;profile="unknown"`).json["format"])
}

func TestBatch(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	g := r.do("POST", otepBase+"/trackings/batch?format=epcis", "", `{"tracking_numbers":["`+webtest.Waiting+`","NOBODY"," `+strings.ToLower(webtest.Waiting)+`","SR2"],"format":"amazon"}`)
	require.Equal(t, 200, g.status, string(g.body))
	require.Equal(t, "amazon", g.json["format"])
	require.Equal(t, 3.0, g.json["total"])
	require.Equal(t, 2.0, g.json["found"])
	require.Equal(t, []any{"NOBODY"}, g.json["not_found"])
	require.Equal(t, "OTEP_TRACKING_NOT_FOUND", dig(g.json, "data", 1, "code"))
	r.refused(r.do("POST", otepBase+"/trackings/batch", "", `{"tracking_numbers":[]}`), 422, "OTEP_INVALID_REQUEST")
	r.refused(r.do("POST", otepBase+"/trackings/batch", "", `{"tracking_numbers":["`+strings.Repeat(`A","`, 100)+`B"]}`), 413, "OTEP_PAYLOAD_TOO_LARGE")
	r.refused(r.do("POST", otepBase+"/trackings/batch", "", `{"tracking_numbers":["A"],"format":"pdf"}`), 400, "OTEP_UNSUPPORTED_FORMAT")
	r.refused(r.do("POST", otepBase+"/trackings/batch", "", `{`), 400, "OTEP_INVALID_JSON")
	r.refused(r.do("POST", otepBase+"/trackings/batch", "", `{"tracking_numbers":"A"}`), 422, "OTEP_INVALID_REQUEST")
}

func TestValidator(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	sample := `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"X1"},"events":[{"status_code":"not_a_code","source":{"type":"bogus"}}]}`
	g := r.do("POST", otepBase+"/validate", "", sample, "Accept-Language", "de")
	require.Equal(t, 200, g.status)
	require.Equal(t, false, g.json["conformant"])
	require.Equal(t, 0.0, g.json["level"])
	require.Len(t, g.json["errors"], 3)
	require.Len(t, g.json["warnings"], 0)
	require.Equal(t, "Bitte angeben, wann es geschah, zum Beispiel \"2026-06-10T11:30:00-04:00\".", dig(g.json, "errors", 0, "hint"))
	require.Equal(t, true, r.do("POST", otepBase+"/validate", "", timelineOf("X1", eventOf("in_transit", "2026-06-10T00:00:00Z"))).json["conformant"])
	require.Equal(t, "V01", dig(r.do("POST", otepBase+"/validate", "", `7`).json, "errors", 0, "code"))
	r.refused(r.do("POST", otepBase+"/validate", "", `{`), 400, "OTEP_INVALID_JSON")
	r.refused(r.do("POST", otepBase+"/validate", "", ""), 400, "OTEP_INVALID_JSON")
	r.refused(r.do("POST", otepBase+"/validate", "", `"`+strings.Repeat("x", 1<<20)+`"`), 413, "OTEP_PAYLOAD_TOO_LARGE")
}

// An event that comes as EPCIS is on the timeline, each event once; a wrong one is
// taken back by its sender and by no other account.
func TestIngestOfEPCIS(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	event := func(id, step, disp, at, more string) string {
		return fmt.Sprintf(`{"type":"ObjectEvent","eventID":%q,"action":"OBSERVE","bizStep":%q,"disposition":%q,"eventTime":%q,"eventTimeZoneOffset":"-04:00","epcList":["urn:epc:id:sscc:0614141.1234567890"]%s}`, id, step, disp, at, more)
	}
	doc := func(events ...string) string {
		return `{"@context":["https://evil.example/never-fetched.jsonld"],"type":"EPCISDocument","schemaVersion":"2.0","creationDate":"2026-06-10T00:00:00Z","epcisBody":{"eventList":[` + strings.Join(events, ",") + `]}}`
	}
	g := r.do("POST", capture, r.provider(), doc(
		event("urn:uuid:3", "urn:epcglobal:cbv:bizstep:receiving", "in_progress", "2026-06-10T14:00:00Z", ""),
		event("urn:uuid:1", "commissioning", "active", "2026-06-10T12:00:00Z", `,"readPoint":{"id":"urn:epc:id:sgln:0614141.00777.0"}`),
		event("urn:uuid:2", "collecting", "damaged", "2026-06-10T13:00:00Z", `,"sensorElementList":[{"sensorReport":[{"type":"gs1:Temperature","value":4.5,"uom":"CEL"},{"type":"Humidity"}]}]`),
		`{"type":"AggregationEvent"}`,
		event("urn:uuid:9", "inspecting", "conformant", "2026-06-10T15:00:00Z", ""),
		event("urn:uuid:8", "shipping", "in_transit", "later", "")), "Content-Type", "application/ld+json")
	require.Equal(t, 200, g.status, string(g.body))
	require.Equal(t, 3.0, g.json["accepted"])
	require.Equal(t, 1.0, g.json["rejected"])
	require.Len(t, g.json["skipped"], 2)
	require.Equal(t, "eventList[5].eventTime", dig(g.json, "timelines", 1, "errors", 0, "path"))
	require.Contains(t, dig(g.json, "timelines", 0, "warnings", 0, "message"), "sensorReport[1]")
	events := dig(r.do("GET", otepBase+"/trackings/SR123456789", r.provider(), "").json, "data", "events").([]any)
	require.Len(t, events, 3)
	require.Equal(t, "information_submitted", dig(events[0], "status_code"))
	require.Equal(t, "2026-06-10T08:00:00-04:00", dig(events[0], "occurred_at"), "in the offset that stands beside it")
	require.Equal(t, "0614141007776", dig(events[0], "location", "gln"))
	require.Equal(t, "picked_up", dig(events[1], "status_code"))
	require.Equal(t, "damaged", dig(events[1], "incident_reason"))
	require.Equal(t, 4.5, dig(events[1], "telemetry", 0, "value"))
	require.Equal(t, "received", dig(events[2], "status_code"), "receiving after a pickup, though it came first")
	require.Equal(t, 3.0, r.do("POST", capture, r.provider(), doc(event("urn:uuid:1", "commissioning", "active", "2026-06-10T12:00:00Z", ""),
		event("urn:uuid:2", "collecting", "damaged", "2026-06-10T13:00:00Z", ""), event("urn:uuid:3", "receiving", "in_progress", "2026-06-10T14:00:00Z", ""))).json["duplicates"])

	wrong := event("urn:uuid:2", "collecting", "damaged", "2026-06-10T13:00:00Z", `,"errorDeclaration":{"declarationTime":"2026-06-11T00:00:00Z","reason":"did_not_occur"}`)
	g = r.do("POST", capture, r.provider(), wrong)
	require.Equal(t, 200, g.status, string(g.body))
	require.Equal(t, 1.0, g.json["withdrawn"])
	require.Len(t, dig(r.do("GET", otepBase+"/trackings/SR123456789", "", "").json, "data", "events"), 2)
	require.Len(t, r.do("GET", "/api/v1/tracking/SR123456789", "", "").json["events"], 2, "nor is it in the public answer")
	require.Len(t, r.do("GET", otepBase+"/trackings/SR123456789/events", "", "").json["data"], 2)
	require.Equal(t, 1.0, r.do("POST", capture, r.provider(), wrong).json["duplicates"], "a repeat is harmless")
	require.Equal(t, 1.0, r.do("POST", capture, r.provider(), event("urn:uuid:2", "collecting", "damaged", "2026-06-10T13:00:00Z", "")).json["duplicates"], "it does not come back")

	// Events of one parcel are judged together: what is wrong stays with its own.
	g = r.do("POST", capture, r.provider(), doc(event("urn:uuid:20", "shipping", "in_transit", "2026-06-10T16:00:00Z", ""),
		event("urn:uuid:21", "shipping", "in_transit", "2026-06-10T17:00:00Z", `,"otep:incident_reason":"nonsense"`),
		event("urn:uuid:20", "shipping", "in_transit", "2026-06-10T16:00:00Z", ""),
		event("urn:uuid:22", "shipping", "in_transit", "2026-06-10T18:00:00Z", "")))
	require.Equal(t, 200, g.status, string(g.body))
	require.Equal(t, []any{2.0, 1.0, 1.0}, []any{g.json["accepted"], g.json["duplicates"], g.json["rejected"]})
	require.Equal(t, "eventList[1].incident_reason", dig(g.json, "timelines", 0, "errors", 0, "path"))
	for i, outcome := range []string{"accepted", "rejected", "duplicate", "accepted"} {
		require.Equal(t, outcome, dig(g.json, "timelines", 0, "events", i, "outcome"))
	}

	// The cabinet's own event is not the partner's to take back.
	own := fmt.Sprintf(`{"type":"ObjectEvent","eventID":%q,"eventTime":"2026-06-10T13:00:00Z","epcList":["https://track.example/api/v1/otep/trackings/%s"],"errorDeclaration":{}}`,
		dig(r.do("GET", otepBase+"/trackings/"+webtest.Waiting+"?format=epcis", "", "").json, "data", "epcisBody", "eventList", 0, "eventID"), webtest.Waiting)
	r.refused(r.do("POST", capture, r.provider(), own), 422, "OTEP_NOT_CONFORMANT")
	r.refused(r.do("POST", capture, r.provider(), `{"hello":1}`), 422, "OTEP_INVALID_REQUEST")
	r.refused(r.do("POST", capture, r.provider(), event("x", "shipping", "in_transit", "2026-06-10T13:00:00Z", `,"otep:status_code":"otep:parcel:nonsense"`)), 422, "OTEP_NOT_CONFORMANT")
}

// The official examples go in without a crash. Their parcels are made known
// first, so that what they say is on a timeline.
func TestOfficialEPCISExamplesGoIn(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	files, err := filepath.Glob("../projection/testdata/reference/epcis/examples/*.jsonld")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	known := map[string]bool{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		captured, _, err := projection.ReadEPCIS(raw)
		require.NoError(t, err)
		for _, c := range captured {
			if n := c.Subject.ExternalTrackingNumber; n != "" && !known[n] {
				known[n] = true
				r.w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: cloud.ShipmentID(1000 + len(known)), BusinessID: 42, Number: "N-" + n, External: n, ProviderID: 17, Profile: "parcel"}}}})
			}
		}
		g := r.do("POST", capture, r.provider(), string(raw))
		require.Contains(t, []int{200, 422}, g.status, "%s %s", f, g.body)
		t.Logf("%s: %d, accepted %v, skipped %v", filepath.Base(f), g.status, g.json["accepted"], g.json["skipped"])
	}
	require.Equal(t, "received", r.current("0614141.107346.2018"))
}

func TestEPCISClientsPull(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	for i := range 25 {
		require.Equal(t, 200, r.do("POST", ingest, r.provider(), timelineOf("SR123456789", eventOf([]string{"in_transit", "arrival_scan"}[i%2], fmt.Sprintf("2020-06-10T10:%02d:00Z", i)))).status)
	}
	pull := otepBase + "/epcis/events"
	ids := func(path, token string, perPage int) (out []string) {
		for pages := 0; path != ""; pages++ {
			require.Less(t, pages, 60)
			g := r.do("GET", path, token, "")
			require.Equal(t, 200, g.status, string(g.body))
			require.Equal(t, "2.0.0", g.header("GS1-EPCIS-Version"))
			require.Equal(t, "2.0.0", g.header("GS1-CBV-Version"))
			require.Equal(t, "application/ld+json", g.header("Content-Type"))
			require.Equal(t, "EPCISQueryDocument", g.json["type"])
			list := dig(g.json, "epcisBody", "queryResults", "resultsBody", "eventList").([]any)
			require.LessOrEqual(t, len(list), perPage)
			for _, e := range list {
				out = append(out, dig(e, "eventID").(string))
			}
			path = ""
			if link := g.header("Link"); link != "" {
				address, rel, _ := strings.Cut(link, ">; ")
				require.Equal(t, `rel="next"`, rel)
				path = strings.TrimPrefix(address, "<https://track.example")
			}
		}
		return out
	}
	all := ids(pull+"?perPage=1000", r.provider(), 1000)
	require.Equal(t, all, ids(pull+"?perPage=3", r.provider(), 3), "pages without a hole or repeat")
	require.Equal(t, all, ids(pull, r.provider(), 30))
	require.Len(t, ids(pull+"?EQ_bizStep=https%3A%2F%2Fref.gs1.org%2Fcbv%2FBizStep-arriving&LT_eventTime=2021-01-01T00:00:00Z&perPage=5", r.provider(), 5), 12)
	require.Len(t, ids(pull+"?EQ_bizStep=arriving%7Cdeparting&EQ_disposition=in_transit&GE_eventTime=2020-06-10T10:20:00Z&LT_eventTime=2021-01-01T00:00:00Z", r.provider(), 30), 5)
	require.Len(t, ids(pull+"?MATCH_epc=urn:epc:id:sscc:0614141.1234567890", r.provider(), 30), 25)
	require.Len(t, ids(pull+"?MATCH_epc=https%3A%2F%2Ftrack.example%2Fapi%2Fv1%2Fotep%2Ftrackings%2F"+webtest.Waiting+"%7Curn:x:1Z999", r.w.Tokens[cloud.ClientAdmin], 30), 28)
	require.Empty(t, ids(pull, r.w.Stranger, 30), "nothing of another tenant")
	r.refused(r.do("GET", pull, "", ""), 401, "OTEP_CREDENTIALS_REQUIRED")
	r.refused(r.do("GET", pull, r.w.Tokens[cloud.Customer], ""), 403, "OTEP_PROVIDER_FORBIDDEN")
	for _, bad := range []string{"EQ_nonsense=1", "perPage=0", "perPage=1001", "perPage=x", "GE_eventTime=now", "nextPageToken=abc", "nextPageToken=e30"} {
		r.refused(r.do("GET", pull+"?"+bad, r.provider(), ""), 422, "OTEP_INVALID_REQUEST")
	}
	next := r.do("GET", pull+"?perPage=3", r.provider(), "").header("Link")
	next = strings.TrimPrefix(next[:strings.Index(next, ">")], "<https://track.example")
	r.refused(r.do("GET", next+"&EQ_bizStep=arriving", r.provider(), ""), 422, "OTEP_INVALID_REQUEST")
}

// Events that came in any order and in any cuts are the same timeline.
func TestArrivalOrderOverHTTPNeverMatters(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var events []string
	for i := range 40 {
		v := otep.Vocabulary()[rnd.IntN(20)]
		events = append(events, eventOf(string(v.Code), time.Date(2026, 6, 1, 0, rnd.IntN(2000), i, 0, time.UTC).Format(time.RFC3339)))
	}
	var want any
	for n := range 3 {
		number := fmt.Sprintf("ORDER-%d", n)
		r.w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: cloud.ShipmentID(200 + n), BusinessID: 42, Number: number, ProviderID: 17, Profile: "parcel"}}}})
		rnd.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for rest := events; len(rest) > 0; {
			k := min(len(rest), 1+rnd.IntN(9))
			require.Equal(t, 200, r.do("POST", ingest, r.provider(), timelineOf(number, rest[:k]...)).status)
			rest = rest[k:]
		}
		var codes []any
		for _, e := range dig(r.do("GET", otepBase+"/trackings/"+number, "", "").json, "data", "events").([]any) {
			codes = append(codes, dig(e, "status_code"), dig(e, "occurred_at"))
		}
		if want == nil {
			want = codes
		}
		require.Equal(t, want, codes)
	}
}

// A timeline of 1,203 events shows the newest 500 in every format that has events, says so, and leads to the others.
func TestALongTimelineOverHTTP(t *testing.T) {
	t.Parallel()
	r := otepRig(t)
	const number, count = "LONG-1", 1203
	r.w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 104, BusinessID: 42, Number: number, ProviderID: 17, Profile: "parcel"}}}})
	base := time.Now().Add(-72 * time.Hour).UTC().Truncate(time.Second)
	for from := 0; from < count; from += 200 {
		var events []string
		for i := from; i < min(from+200, count); i++ {
			code := "in_transit"
			if i == count-1 {
				code = "delivered"
			}
			events = append(events, eventOf(code, base.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), fmt.Sprintf(`,"event_id":"long-%04d"`, i)))
		}
		g := r.do("POST", ingest, r.provider(), timelineOf(number, events...))
		require.Equal(t, 200, g.status, string(g.body))
	}
	path := otepBase + "/trackings/" + number
	for _, token := range []string{"", r.provider()} {
		whole := r.do("GET", path, token, "")
		require.Equal(t, 200, whole.status)
		require.Equal(t, "delivered", dig(whole.json, "data", "current_status"))
		require.Len(t, dig(whole.json, "data", "events"), 500)
		require.Equal(t, true, whole.json["truncated"])
		listed := r.do("GET", path+"/events?cursor="+whole.json["next"].(string), token, "")
		require.Equal(t, 200, listed.status, string(listed.body))
		require.Equal(t, fmt.Sprintf("long-%04d", count-1000), dig(listed.json, "data", 0, "event_id"))
		var got []string
		for next, pages := path+"/events?order=desc&limit=250", 0; next != ""; pages++ {
			g := r.do("GET", next, token, "")
			require.Equal(t, 200, g.status, string(g.body))
			list := g.json["data"].([]any)
			require.LessOrEqual(t, len(list), 250)
			for _, e := range list {
				got = append(got, dig(e, "event_id").(string))
			}
			address, rel, _ := strings.Cut(g.header("Link"), ">; ")
			require.Equal(t, g.json["next"] != nil, rel == `rel="next"`)
			require.Equal(t, g.json["next"] != nil, g.json["truncated"] == true)
			next = strings.TrimPrefix(address, "<https://track.example")
		}
		require.Len(t, got, count)
		for i, id := range got {
			require.Equal(t, fmt.Sprintf("long-%04d", count-1-i), id)
		}
		for _, format := range projection.Names() {
			g := r.do("GET", path+"?envelope=0&format="+format, token, "")
			require.Equal(t, 200, g.status)
			next := g.header("Link")
			require.Contains(t, next, `rel="next"`, format)
			require.Contains(t, next, "format="+format)
			g = r.do("GET", strings.TrimPrefix(next[:strings.Index(next, ">")], "<https://track.example"), token, "")
			require.Equal(t, 200, g.status, string(g.body))
			require.NotEmpty(t, g.json["data"])
		}
	}
	public := r.do("GET", "/api/v1/tracking/"+number, "", "")
	require.Equal(t, "delivered", public.json["otep_status"])
	require.Len(t, public.json["events"], 500)
	other := r.do("GET", path, "", "").json["next"].(string)
	for _, bad := range []string{"limit=0", "limit=501", "limit=x"} {
		r.refused(r.do("GET", path+"/events?"+bad, "", ""), 422, "VALIDATION_FAILED")
	}
	for _, bad := range []string{"cursor=abc", "cursor=e30"} {
		r.refused(r.do("GET", path+"/events?"+bad, "", ""), 422, "OTEP_INVALID_REQUEST")
	}
	r.refused(r.do("GET", otepBase+"/trackings/"+webtest.Waiting+"/events?cursor="+other, "", ""), 422, "OTEP_INVALID_REQUEST")
}
