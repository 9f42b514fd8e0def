package otep

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 6, 11, 12, 0, 0, 0, time.UTC)

// plain is a timeline that nothing can be said against.
const plain = `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR1"},"events":[
 {"occurred_at":"2026-06-09T18:20:00-04:00","status_code":"arrival_scan","source":{"type":"carrier"}},
 {"occurred_at":"2026-06-10T09:50:00-04:00","status_code":"delivery_failed","source":{"type":"carrier"}}]}`

// edit sets the member at a dotted path to a JSON value; "" takes it out.
type edit struct{ path, json string }

func edited(t testing.TB, doc string, edits ...edit) []byte {
	t.Helper()
	var root any
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	require.NoError(t, d.Decode(&root))
	for _, e := range edits {
		root = set(t, root, strings.Split(e.path, "."), e.json)
	}
	b, err := json.Marshal(root)
	require.NoError(t, err)
	return b
}

func set(t testing.TB, at any, path []string, text string) any {
	t.Helper()
	if len(path) == 0 || path[0] == "$" {
		return json.RawMessage(text)
	}
	switch v := at.(type) {
	case map[string]any:
		if len(path) == 1 && text == "" {
			delete(v, path[0])
		} else if v[path[0]] == nil && len(path) > 1 {
			v[path[0]] = set(t, map[string]any{}, path[1:], text)
		} else {
			v[path[0]] = set(t, v[path[0]], path[1:], text)
		}
		return v
	case []any:
		i, err := strconv.Atoi(path[0])
		require.NoError(t, err)
		if i == len(v) {
			v = append(v, map[string]any{})
		}
		v[i] = set(t, v[i], path[1:], text)
		return v
	}
	t.Fatalf("nothing to edit at %v", path)
	return nil
}

// lines writes findings as "V11 path: message".
func lines(entries []Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Rule+" "+e.Path+": "+e.Message)
	}
	return out
}

func TestEveryRule(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	check := func(rule, path, message string, edits ...edit) {
		t.Helper()
		tried[rule] = true
		r, err := Validate(edited(t, plain, edits...), noon)
		require.NoError(t, err)
		want, other := r.Errors, r.Warnings
		if ruleByID[rule].Warning {
			want, other = other, want
		}
		require.Equal(t, []string{rule + " " + path + ": " + message}, lines(want))
		if rule != "V18" && rule != "V28" {
			require.Empty(t, lines(other))
		}
		if ruleByID[rule].Warning {
			require.NotZero(t, r.Level)
		} else {
			require.Zero(t, r.Level)
		}
		require.Equal(t, !ruleByID[rule].Warning, !r.Conformant())
	}
	e := func(path, json string) edit { return edit{path, json} }
	for _, body := range []string{`[]`, `null`, `"timeline"`, `5`, `true`} {
		check("V01", "$", "timeline must be a JSON object", e("$", body))
	}
	for _, v := range []string{``, `null`, `0.1`, `{}`} {
		check("V02", "otep_version", "otep_version is required", e("otep_version", v))
	}
	for _, v := range []string{"1.0", "", "0", "0.1.2.3", "0.x", "v0.1", "0.-1", "0.1 ", "18446744073709551616.0", "1.99", "0..1"} {
		check("V03", "otep_version", "otep_version '"+v+"' is not supported", e("otep_version", strconv.Quote(v)))
	}
	for _, v := range []string{"0.2", "0.10.1", "0.99999999999999999999999"} {
		check("V04", "otep_version", "otep_version '"+v+"' is newer than 0.1", e("otep_version", strconv.Quote(v)))
	}
	for _, v := range []string{``, `null`} {
		check("V05", "profile", "profile is missing, 'parcel' is assumed", e("profile", v))
	}
	for json, shown := range map[string]string{`"Parcel"`: "Parcel", `""`: "", `"phase"`: "phase", `"universal"`: "universal", `5`: "5", `["a", "b"]`: `["a","b"]`, `"a-b"`: "a-b"} {
		check("V06", "profile", "profile '"+shown+"' is not a valid name", e("profile", json))
	}
	check("V07", "profile", "profile 'drones' is not registered", e("profile", `"drones"`))
	check("V07", "profile", "profile 'x-drones' is not registered", e("profile", `"x-drones"`))
	for _, v := range []string{``, `null`, `{}`, `[]`, `"SR1"`, `{"tracking_number":null}`} {
		check("V08", "subject", "subject needs at least one identifier", e("subject", v))
	}
	for field, bad := range map[string][]string{
		"tracking_number": {`5`, `""`, `"  "`, `"a b"`, `"ä"`, `"a/b"`, `"` + strings.Repeat("a", 65) + `"`, `true`, `[]`}, "order_id": {`"5"`, `1.5`, `0`, `-1`, `9223372036854775808`, `1e30`, `true`},
		"package_id": {`{}`, `1e-1`}, "external_tracking_number": {`""`, `5`, `"` + strings.Repeat("包", 65) + `"`, `"a\u0001b"`},
		"gs1_sscc": {`"106141412345678909"`, `"10614141234567890"`, `"11106141412345678908"`, `106141412345678908`, `"10614141234567890x"`, `""`}, "piece_id": {`""`, `7`},
	} {
		for _, v := range bad {
			check("V09", "subject."+field, field+" is not valid", e("subject."+field, v))
		}
	}
	for _, v := range []string{``, `null`, `{}`, `"none"`} {
		check("V10", "events", "events is required (array)", e("events", v))
	}
	for _, v := range []string{``, `null`} {
		check("V11", "events[1].occurred_at", "occurred_at is required (ISO-8601 with offset)", e("events.1.occurred_at", v))
	}
	for _, v := range []string{`5`, `""`, `"2026-06-09"`, `"2026-06-10T09:50:00"`, `"yesterday"`} {
		check("V12", "events[1].occurred_at", "occurred_at must be ISO-8601 with offset", e("events.1.occurred_at", v))
	}
	check("V13", "events[1].occurred_at", "occurred_at is in the future", e("events.1.occurred_at", `"2026-06-11T14:05:01+02:00"`))
	for _, v := range []string{`5`, `""`, `"2026-06-10T09:50:00"`} {
		check("V14", "events[0].recorded_at", "recorded_at must be ISO-8601 with offset", e("events.0.recorded_at", v))
	}
	check("V15", "events[0].recorded_at", "recorded_at is before occurred_at", e("events.0.recorded_at", `"2026-06-09T22:19:59Z"`))
	for _, v := range []string{`"0.2"`, `5`, `"1.0"`, `""`} {
		check("V16", "events[0].otep_version", "otep_version differs from the timeline", e("events.0.otep_version", v))
	}
	for _, v := range []string{``, `null`, `5`, `{}`} {
		check("V17", "events[0].status_code", "status_code is required", e("events.0.status_code", v))
	}
	for _, v := range []string{"not_a_code", "", "Delivered", "x-", "otep:phase:delivered"} {
		check("V18", "events[0].status_code", "status_code '"+v+"' is not an OTEP status code", e("events.0.status_code", strconv.Quote(v)))
	}
	check("V19", "events[1].status_code", "status_code 'canceled' should be 'cancelled'", e("events.1.status_code", `"canceled"`))
	check("V19", "events[1].status_code", "status_code 'otep:parcel:delivered' should be 'delivered'", e("events.1.status_code", `"otep:parcel:delivered"`))
	check("V20", "events[1].status_code", "status_code 'x-stored' is experimental", e("events.1.status_code", `"x-stored"`))
	check("V20", "events[1].status_code", "status_code 'x-new' is experimental", e("events.1.status_code", `"x-new"`), e("events.1.phase", `"transit"`))
	for json, shown := range map[string]string{`"transit"`: "transit", `""`: "", `5`: "5", `"nowhere"`: "nowhere"} {
		check("V21", "events[0].phase", "phase '"+shown+"' disagrees with status_code (expected 'inbound')", e("events.0.phase", json))
	}
	check("V23", "events[0].source", "source is missing", e("events.0.source", ``))
	check("V23", "events[0].source", "source is missing", e("events.0.source", `null`))
	const families = "self_delivery, third_party, carrier, warehouse, locker, partner, iot, system"
	for json, shown := range map[string]string{`{}`: "", `"carrier"`: "", `{"type":null}`: "", `{"type":"bogus"}`: "bogus", `{"type":5}`: "5", `[]`: ""} {
		check("V24", "events[0].source.type", "source.type '"+shown+"' is not one of: "+families, e("events.0.source", json))
	}
	check("V25", "events[0].source.type", "source.type 'hub' should be 'warehouse'", e("events.0.source.type", `"hub"`))
	for _, v := range []string{`"Toronto"`, `[]`, `5`, `{"latitude":1}`, `{"longitude":1}`, `{"latitude":90.1,"longitude":1}`, `{"latitude":1,"longitude":-180.5}`, `{"latitude":"1","longitude":2}`, `{"latitude":1e999,"longitude":2}`} {
		check("V26", "events[0].location", "location is not valid", e("events.0.location", v))
	}
	for _, v := range []string{`"CAN"`, `""`, `"C1"`, `"ÄÖ"`} {
		check("V27", "events[0].location.country", "country should be ISO 3166-1 alpha-2", e("events.0.location.country", v))
	}
	for json, shown := range map[string]string{`"bad_luck"`: "bad_luck", `5`: "5", `""`: "", `"x-"`: "x-", `"otep:reason:weather"`: "otep:reason:weather"} {
		check("V28", "events[1].incident_reason", "incident_reason '"+shown+"' is not an OTEP incident reason", e("events.1.incident_reason", json))
	}
	check("V29", "events[1].incident_reason", "incident_reason 'x-moose' is experimental", e("events.1.incident_reason", `"x-moose"`))
	check("V30", "events[0].incident_reason", "incident_reason is unusual for 'arrival_scan'", e("events.0.incident_reason", `"weather"`))
	check("V31", "events[0].pod", "pod is unusual for 'arrival_scan'", e("events.0.pod", `{"recipient":"J. Smith"}`))
	for _, v := range []string{`{}`, `5`, `{"type":"speed"}`, `{"type":"speed","value":"5"}`, `{"value":5}`, `{"type":"","value":5}`, `{"type":"speed","value":null}`, `{"type":5,"value":5}`, `{"type":"speed","value":1e999}`} {
		check("V32", "events[0].telemetry[1]", "telemetry needs type and numeric value", e("events.0.telemetry", `[{"type":"speed","value":5},`+v+`]`))
	}
	for json, shown := range map[string]string{`"guessed"`: "guessed", `5`: "5", `""`: ""} {
		check("V33", "events[0].time_type", "time_type '"+shown+"' is not valid", e("events.0.time_type", json))
	}
	check("V34", "events[1].event_id", "event_id 'e1' is repeated", e("events.0.event_id", `"e1"`), e("events.1.event_id", `"e1"`))
	for _, v := range []string{`null`, `5`, `[]`, `"delivered"`} {
		check("V35", "events[0]", "event must be an object", e("events.0", v))
	}
	const moment, text, flag = "a date-time with offset", "a string", "true or false"
	for path, values := range map[string]map[string][]string{
		"estimated_delivery_at":       {moment: {`"soon"`, `5`, `"2026-06-12"`}},
		"last_event_at":               {moment: {`""`}},
		"current_status":              {text: {`5`, `[]`}},
		"current_phase":               {"one of: " + strings.Join(phases, ", "): {`5`, `"nowhere"`}},
		"delivered":                   {flag: {`"false"`, `0`}},
		"terminal":                    {flag: {`{}`}},
		"events.0.message":            {text: {`5`, `{}`}},
		"events.0.event_id":           {text: {`5`}},
		"events.0.extensions":         {"an object": {`[1]`, `"x"`}},
		"events.0.telemetry":          {"an array": {`"hot"`, `{}`}},
		"events.0.pod":                {"an object": {`[]`}},
		"events.0.status_label":       {text: {`5`}},
		"events.0.location.name":      {text: {`5`}},
		"events.0.source.provider":    {text: {`{}`}},
		"events.0.source.synthesized": {flag: {`"yes"`}},
	} {
		name := path[strings.LastIndexByte(path, '.')+1:]
		at := strings.Replace(path, "events.0", "events[0]", 1)
		for words, list := range values {
			for _, v := range list {
				if strings.HasSuffix(path, ".pod") {
					r, err := Validate(edited(t, plain, e(path, v)), noon)
					require.NoError(t, err)
					require.Equal(t, []string{"V36 events[0].pod: pod must be an object"}, lines(r.Errors))
					continue
				}
				check("V36", at, name+" must be "+words, e(path, v))
			}
		}
	}
	check("V36", "events[1].pod.files[1]", "files must be an object", e("events.1.status_code", `"delivered"`), e("events.1.pod", `{"files":[{"file_id":1},5]}`))
	check("V36", "events[1].pod.files[0].file_id", "file_id must be an integer", e("events.1.status_code", `"delivered"`), e("events.1.pod", `{"files":[{"file_id":1.5}]}`))
	check("V36", "events[0].telemetry[1].time", "time must be a date-time with offset", e("events.0.telemetry", `[{"type":"speed","value":5},{"type":"speed","value":5,"time":"now"}]`))
	check("V36", "withdrawals[1]", "withdrawals must be an object", e("withdrawals", `[{"event_id":"e","reason":"did_not_occur"},5]`))
	check("V36", "withdrawals[0].reason", "reason must be one of: did_not_occur, incorrect_data", e("withdrawals", `[{"event_id":"e"}]`))
	check("V36", "withdrawals[0].event_id", "event_id must be an event_id of 1 to 64 characters", e("withdrawals", `[{"event_id":null,"reason":"did_not_occur"}]`))
	check("V36", "events[0].corrects", "corrects must be an event_id of 1 to 64 characters", e("events.0.corrects", `""`))
	check("V37", "events[0].message", "message is longer than 500 characters", e("events.0.message", strconv.Quote(strings.Repeat("a", 501))))
	for json, want := range map[string]string{`{"gln":"1234567890123"}`: "gln '1234567890123'", `{"unlocode":"Toronto"}`: "unlocode 'Toronto'"} {
		check("V38", "events[0].location."+want[:strings.IndexByte(want, ' ')], want+" is not well formed", e("events.0.location", json))
	}
	for _, id := range []string{strings.Repeat("é", 65), "a\tb"} {
		check("V38", "events[0].event_id", "event_id '"+id+"' is not well formed", e("events.0.event_id", strconv.Quote(id)))
	}
	check("V38", "events[0].telemetry[0].unit", "unit 'Celsius' is not well formed", e("events.0.telemetry", `[{"type":"temperature","value":5,"unit":"Celsius"}]`))
	check("V39", "events[0].occured_at", "member 'occured_at' is not known: did you mean 'occurred_at'?", e("events.0.occured_at", `5`))
	check("V39", "events[0].telemetry[0].Unit", "member 'Unit' is not known: did you mean 'unit'?", e("events.0.telemetry", `[{"type":"temperature","value":5,"Unit":"CEL"}]`))
	check("V39", "subject.number", "member 'number' is not known: known are tracking_number, order_id, package_id, external_tracking_number, gs1_sscc, piece_id", e("subject.number", `5`))
	check("V39", "events_", "member 'events_' is not known: did you mean 'events'?", e("events_", `[{"a":[1]}]`))
	check("V40", "events", "events is empty", e("events", `[]`))
	check("V41", "events[1].occurred_at", "events are not in order of occurred_at", e("events.1.occurred_at", `"2026-06-09T22:19:59Z"`), e("events.1.status_code", `"in_transit"`))
	check("V42", "events[1].status_code", "transition from 'arrival_scan' to 'awaiting_pickup' is not valid", e("events.1.status_code", `"awaiting_pickup"`))
	check("V43", "events[1].status_code", "'delivery_failed' follows terminal status 'delivered'", e("events.0.status_code", `"delivered"`))
	for json, shown := range map[string]string{`"delivered"`: "delivered", `null`: "null", `"nonsense"`: "nonsense"} {
		check("V44", "current_status", "current_status '"+shown+"' is not the latest event ('delivery_failed')", e("current_status", json))
	}
	check("V45", "delivered", "delivered disagrees with the latest event", e("delivered", `true`))

	tried["V22"] = true // always beside the warning of an experimental code
	for _, v := range []string{``, `null`, `"nowhere"`, `5`} {
		r, err := Validate(edited(t, plain, e("events.1.status_code", `"x-new"`), e("events.1.phase", v)), noon)
		require.NoError(t, err)
		require.Equal(t, []string{"V22 events[1].phase: phase is required for an unregistered status_code"}, lines(r.Errors))
		require.Equal(t, []string{"V20 events[1].status_code: status_code 'x-new' is experimental"}, lines(r.Warnings))
	}
	require.Len(t, Rules(), 45)
	for _, rule := range Rules() {
		require.True(t, tried[rule.ID], rule.ID)
	}
}

// The rules' words are those of the protocol's text.
func TestRulesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	rows := readSheet(t).table(t, "Rule | Level | Path")
	require.Len(t, rows, len(rules))
	values := strings.NewReplacer("<v>", "%s", "<canonical>", "%s", "<phase>", "%s", "<code>", "%s", "<a>", "%s", "<b>", "%s", "<field>", "%s", "<type>", "%s", "<limit>", "%s", "<advice>", "%s")
	for i, row := range rows {
		require.Equal(t, row[0], rules[i].ID)
		require.Equal(t, row[1], map[bool]string{false: "error", true: "warning"}[rules[i].Warning])
		require.Equal(t, values.Replace(row[4]), rules[i].Message)
	}
}

func TestNothingAgainst(t *testing.T) {
	t.Parallel()
	f := func(level int, edits ...edit) {
		t.Helper()
		r, err := Validate(edited(t, plain, edits...), noon)
		require.NoError(t, err)
		require.Empty(t, lines(r.Errors))
		require.Empty(t, lines(r.Warnings))
		require.Equal(t, level, r.Level)
	}
	e := func(path, json string) edit { return edit{path, json} }
	f(1)
	f(1, e("otep_version", `"0.1.7"`))
	f(1, e("events.0.otep_version", `"0.1.0"`))
	f(1, e("subject", `{"order_id":9007199254740993,"gs1_sscc":"00106141412345678908","piece_id":"urn:x"}`))
	f(1, e("subject", `{"package_id":12.0}`))
	f(1, e("subject.tracking_number", `"  SR-1.a_b "`))
	f(1, e("events.1.occurred_at", `"2026-06-11T12:05:00Z"`))
	f(1, e("events.1.occurred_at", `"2027-06-11T12:05:00Z"`), e("events.1.time_type", `"planned"`))
	f(1, e("events.1.recorded_at", `"2026-06-01T12:05:00Z"`), e("events.1.time_type", `"estimated"`))
	f(1, e("events.0.phase", `"inbound"`), e("events.0.time_type", `"actual"`), e("events.0.recorded_at", `null`), e("events.0.location", `null`))
	f(1, e("events.1.incident_reason", `"weather"`), e("events.0.location", `{"country":"ca","latitude":-90,"longitude":180}`))
	f(1, e("events.1.status_code", `"delivered"`), e("events.1.pod", `{}`), e("delivered", `true`), e("current_status", `"delivered"`))
	f(1, e("events.1.time_type", `"planned"`), e("current_status", `"arrival_scan"`), e("delivered", `false`))
	f(1, e("delivered", `null`), e("estimated_delivery_at", `null`), e("current_phase", `null`), e("events.0.pod", `null`), e("events.0.event_id", `null`), e("events.0.extensions", `null`))
	f(1, e("events.0.telemetry", `[{"type":"humus","value":-1e3}]`), e("events.1.telemetry", `[]`), e("events.0.event_id", `""`))
}

func TestThePublicSampleGivesItsThreeErrors(t *testing.T) {
	t.Parallel()
	r, err := Validate([]byte(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR123456789"},"current_status":"not_a_code","delivered":false,
		"events":[{"status_code":"not_a_code","source":{"type":"bogus"}}]}`), noon)
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Zero(t, r.Level)
	var out strings.Builder
	for _, e := range r.Errors {
		fmt.Fprintf(&out, "%s %s: %s\n", e.Rule, e.Path, e.Message)
	}
	same(t, "sample-errors.txt", out.String())
}

func TestFindingsStandInOrder(t *testing.T) {
	t.Parallel()
	r, err := Validate([]byte(`{"otep_version":"1.0","profile":"NO","subject":{"order_id":"x","tracking_number":""},"current_status":"cancelled","delivered":true,"events":[
		{"occurred_at":"2026-06-10T12:00:00Z","recorded_at":"2026-06-10T11:00:00Z","status_code":"returned","incident_reason":"x-why","event_id":"a"},
		7,
		{"event_id":"a","time_type":"when","telemetry":[1],"incident_reason":"why","location":1,"source":1,"status_code":"what","otep_version":"0.2","recorded_at":"","occurred_at":""},
		{"occurred_at":"2026-06-09T12:00:00Z","status_code":"cancelled","source":{"type":"label"},"pod":{},"incident_reason":"weather"},
		{"occurred_at":"2026-06-09T11:00:00Z","status_code":"in_transit","source":{"type":"carrier"},"incident_reason":"weather","phase":"x"},
		{"occurred_at":"2026-06-09T10:00:00Z","status_code":"delivery_failed","source":{"type":"carrier"},"location":{"country":"x"}},
		{"occurred_at":"2026-06-09T10:30:00Z","status_code":"booking_confirmed","source":{"type":"carrier"},"event_id":"a"}]}`), noon)
	require.NoError(t, err)
	short := func(entries []Entry) (out []string) {
		for _, e := range entries {
			out = append(out, e.Rule+" "+e.Path)
		}
		return out
	}
	require.Equal(t, []string{
		"V03 otep_version", "V06 profile", "V09 subject.tracking_number", "V09 subject.order_id", "V35 events[1]",
		"V12 events[2].occurred_at", "V14 events[2].recorded_at", "V16 events[2].otep_version", "V18 events[2].status_code", "V24 events[2].source.type",
		"V26 events[2].location", "V28 events[2].incident_reason", "V32 events[2].telemetry[0]", "V33 events[2].time_type", "V34 events[2].event_id",
		"V21 events[4].phase", "V34 events[6].event_id",
		"V43 events[0].status_code", "V42 events[6].status_code", "V44 current_status", "V45 delivered",
	}, short(r.Errors))
	require.Equal(t, []string{
		"V15 events[0].recorded_at", "V19 events[0].status_code", "V23 events[0].source", "V29 events[0].incident_reason", "V25 events[3].source.type", "V31 events[3].pod",
		"V30 events[4].incident_reason", "V27 events[5].location.country",
		"V41 events[4].occurred_at", "V41 events[5].occurred_at",
	}, short(r.Warnings))

	require.True(t, r.Refused(-1))
	require.False(t, r.Refused(0), "an invalid move refuses nothing")
	require.True(t, r.Refused(1) && r.Refused(2) && r.Refused(4) && r.Refused(6))
	require.False(t, r.Refused(3) || r.Refused(5) || r.Refused(7))
	require.Len(t, r.Tolerant().Errors, len(r.Errors)-4)
	require.Len(t, r.Tolerant().Warnings, len(r.Warnings)+4)
}

func TestLevels(t *testing.T) {
	t.Parallel()
	level := func(edits ...edit) int {
		r, err := Validate(edited(t, plain, edits...), noon)
		require.NoError(t, err)
		return r.Level
	}
	require.Equal(t, 1, level())
	require.Equal(t, 1, level(edit{"events", `[]`}))
	require.Equal(t, 2, level(edit{"events.0.status_code", `"x-stored"`}))
	require.Equal(t, 2, level(edit{"events.0.status_code", `"x-new"`}, edit{"events.0.phase", `"inbound"`}))
	require.Equal(t, 0, level(edit{"events.0.status_code", `"x-stored"`}, edit{"subject", `{}`}))
}

func TestWholeTimeline(t *testing.T) {
	t.Parallel()
	f := func(doc string, want ...string) {
		t.Helper()
		r, err := Validate([]byte(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR1"},`+doc+`}`), noon)
		require.NoError(t, err)
		require.Equal(t, append([]string{}, want...), lines(r.Errors))
	}
	e := func(hour int, code, more string) string {
		return fmt.Sprintf(`{"occurred_at":"2026-06-09T%02d:00:00Z","status_code":"%s","source":{"type":"carrier"}%s}`, hour, code, more)
	}
	list := func(events ...string) string { return `"events":[` + strings.Join(events, ",") + `]` }
	f(`"events":[],"current_status":null,"delivered":false`)
	f(`"events":[],"current_status":"delivered","delivered":true`, "V44 current_status: current_status 'delivered' is not the latest event ('')", "V45 delivered: delivered disagrees with the latest event")
	f(list(e(2, "delivered", ""), e(1, "received", "")) + `,"current_status":"delivered","delivered":true`)
	f(list(e(1, "received", ""), e(2, "x-pickup_overdue", ""), e(3, "awaiting_pickup", "")), "V42 events[2].status_code: transition from 'received' to 'awaiting_pickup' is not valid")
	f(list(e(1, "received", ""), e(2, "awaiting_pickup", `,"time_type":"planned"`)))
	f(list(e(1, "delivered", ""), e(2, "return_to_sender", ""), e(3, "return_to_sender", ""), e(4, "delivered", "")), "V43 events[3].status_code: 'delivered' follows terminal status 'return_to_sender'")
	// An unsound event takes no part: without it the move is not even seen.
	f(list(e(1, "delivered", `,"phase":"transit"`), e(2, "received", ""))+`,"current_status":"received"`, "V21 events[0].phase: phase 'transit' disagrees with status_code (expected 'delivered')")
	// Errors of other members leave it in.
	f(list(e(1, "delivered", `,"time_type":"actual","incident_reason":"bad"`), e(2, "received", "")), "V28 events[0].incident_reason: incident_reason 'bad' is not an OTEP incident reason",
		"V43 events[1].status_code: 'received' follows terminal status 'delivered'")
	// Ties stand by rank, then recording, then id.
	f(list(e(1, "delivered", ""), e(1, "received", "")) + `,"current_status":"delivered"`)
	f(list(e(1, "received", `,"recorded_at":"2026-06-09T03:00:00Z"`), e(1, "arrival_scan", `,"recorded_at":"2026-06-09T02:00:00Z"`)) + `,"current_status":"received"`)
	f(list(e(1, "received", `,"recorded_at":"2026-06-09T03:00:00Z","event_id":"b"`), e(1, "arrival_scan", `,"recorded_at":"2026-06-09T03:00:00Z","event_id":"a"`)) + `,"current_status":"received"`)
	f(list(e(1, "canceled", "")) + `,"current_status":"order_canceled"`)
}
