package rest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
)

// Text that a database refuses, or that readers take differently, is the
// sender's error wherever it stands, on either database.
func TestTextThatNoDatabaseTakes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		hostileText(t, newRig(t, nil))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		hostileText(t, rigOn(t, webtest.NewOn(t, storetest.OpenPostgres(t)), nil))
	})
}

func hostileText(t *testing.T, r *rig) {
	native := func(subject, event, rest string) string {
		return fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"%s"%s},"events":[{"occurred_at":"2026-06-10T12:00:00Z","status_code":"in_transit"%s}]}`,
			webtest.Announced, subject, event) + rest
	}
	epcis := func(epc, members string) string {
		return fmt.Sprintf(`{"type":"ObjectEvent","eventTime":"2026-06-10T12:00:00Z","eventTimeZoneOffset":"+00:00","bizStep":"shipping","disposition":"in_transit","epcList":["%s"]%s}`, epc, members)
	}
	own := "https://track.example/api/v1/otep/trackings/" + webtest.Announced
	for _, bad := range []string{`\u0000`, `x\u0000y`, `\ud83d`, `\udc00\ud83d`, `\ud83dx`, `\\\ud83d`, "\xff"} {
		for _, member := range []string{`,"event_id":"%s"`, `,"message":"%s"`, `,"source":{"type":"partner","raw_status":"%s"}`, `,"source":{"type":"partner","provider":"%s"}`,
			`,"location":{"name":"%s"}`, `,"extensions":{"k":"%s"}`, `,"extensions":{"%s":1}`, `,"unknown":"%s"`, `,"status_code":"%s"`} {
			for _, body := range []string{native("", fmt.Sprintf(member, bad), ""), `{"timelines":[` + native("", fmt.Sprintf(member, bad), "") + `]}`} {
				r.refused(r.do("POST", otepBase+"/ingest", r.provider(), body), 400, "OTEP_INVALID_JSON")
			}
		}
		r.refused(r.do("POST", otepBase+"/ingest", r.provider(), native(fmt.Sprintf(`,"external_tracking_number":"%s"`, bad), "", "")), 400, "OTEP_INVALID_JSON")
		r.refused(r.do("POST", otepBase+"/ingest", r.provider(), fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":"%s"},"events":[],"current_status":"%s"}`, webtest.Announced, bad)), 400, "OTEP_INVALID_JSON")
		for _, member := range []string{`,"eventID":"%s"`, `,"otep:event_id":"%s"`, `,"otep:incident_reason":"%s"`, `,"readPoint":{"id":"%s"}`, `,"recordTime":"%s"`} {
			r.refused(r.do("POST", otepBase+"/ingest/epcis", r.provider(), epcis(own, fmt.Sprintf(member, bad))), 400, "OTEP_INVALID_JSON")
		}
		r.refused(r.do("POST", otepBase+"/ingest/epcis", r.provider(), epcis(bad, "")), 400, "OTEP_INVALID_JSON")
		r.refused(r.do("POST", otepBase+"/trackings/batch", "", fmt.Sprintf(`{"tracking_numbers":["%s"]}`, bad)), 400, "OTEP_INVALID_JSON")
		r.refused(r.do("POST", otepBase+"/validate", "", native("", fmt.Sprintf(`,"message":"%s"`, bad), "")), 400, "OTEP_INVALID_JSON")
		status, code := 422, "VALIDATION_FAILED"
		if bad == "\xff" {
			status, code = 400, "MALFORMED_JSON"
		}
		r.refused(r.do("POST", base+"/deliveries", r.provider(),
			fmt.Sprintf(`{"reference_number":"%s","device_id":88,"packages":[{"tracking_number":"NEW1"}],"recipient":{"name":"X","phone":"+14165550100"}}`, bad)), status, code)
	}

	// An address may hide the same behind percent signs.
	for _, epc := range []string{"https://x.example/%00", "https://x.example/a%00b", own + "%00", "otep:subject:%00", "otep:subject:PIECE:%00", "https://x.example/%ff", "https://x.example/%ed%a0%80"} {
		for _, members := range []string{"", `,"eventID":"e","errorDeclaration":{}`} {
			g := r.do("POST", otepBase+"/ingest/epcis", r.provider(), epcis(epc, members))
			require.Contains(t, []int{404, 422}, g.status, "%s: %s", epc, g.body)
		}
	}
	g := r.do("POST", otepBase+"/ingest/epcis", r.provider(), epcis(own, `,"eventID":"e-1","readPoint":{"id":"otep:location:a%00b%ff"},
		"sensorElementList":[{"sensorMetadata":{"deviceID":"otep:device:%00"},"sensorReport":[{"type":"Temperature","value":4,"uom":"CEL"}]}]`))
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, "a%00b%ff", dig(r.do("GET", otepBase+"/trackings/"+webtest.Announced, r.provider(), "").json, "data", "events", 0, "location", "name"), "left as it came")

	// Invalid ids are replaced, and a warning says so.
	for i, id := range []string{strings.Repeat("x", 65), strings.Repeat("é", 65), `a\u0001`, `a\nb`, `\u0085`} {
		at := fmt.Sprintf(`,"occurred_at":"2026-06-11T12:0%d:00Z","status_code":"in_transit","event_id":"%s"`, i, id)
		body := fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[{%s}]}`, webtest.Announced, at[1:])
		g := r.do("POST", otepBase+"/ingest", r.provider(), body)
		require.Equal(t, 200, g.status, "%s", g.body)
		require.Regexp(t, "^evt_[0-9a-f]{20}$", dig(g.json, "timelines", 0, "events", 0, "event_id"))
		require.Contains(t, fmt.Sprint(dig(g.json, "timelines", 0, "warnings")), "events[0].event_id", id)
	}
	g = r.do("POST", otepBase+"/ingest/epcis", r.provider(), epcis(own, `,"eventID":"a\u0001","otep:status_code":"arrival_scan"`))
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Contains(t, fmt.Sprint(dig(g.json, "timelines", 0, "warnings")), "eventList[0].eventID")
	require.Equal(t, 1.0, r.do("POST", otepBase+"/ingest", r.provider(), native("", `,"event_id":"`+strings.Repeat("é", 64)+`"`, "")).json["accepted"], "characters, not bytes")

	// What stands in a path, a query or a header.
	for _, path := range []string{otepBase + "/trackings/a%00b", otepBase + "/trackings/%ff", "/api/v1/tracking/%00", "/api/v1/tracking/X?verify=%00", otepBase + "/trackings/X?format=%00",
		otepBase + "/trackings/X/events?since=%00", otepBase + "/epcis/events?MATCH_epc=%00", otepBase + "/epcis/events?nextPageToken=%ff", base + "/deliveries/%00",
		base + "/webhook-deliveries?status=%00"} {
		g := r.do("GET", path, r.provider(), "")
		require.Contains(t, []int{400, 404, 422}, g.status, "%s: %s", path, g.body)
	}
	status, _ := r.raw("GET " + otepBase + "/trackings/" + webtest.Waiting + " HTTP/1.1\r\nHost: cloud.test\r\nAccept: a\x00b\r\nConnection: close\r\n\r\n")
	require.Contains(t, []int{0, 200, 400}, status)
	g = r.do("GET", otepBase+"/trackings/"+webtest.Waiting, "", "", "Accept", "\xff", "Accept-Language", "\xff\xfe")
	require.Contains(t, []int{200, 400}, g.status, "%s", g.body)
}
