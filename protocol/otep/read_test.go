package otep

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadNormalises(t *testing.T) {
	t.Parallel()
	tl, report, err := Read([]byte(` {"otep_version":"0.1","subject":{"tracking_number":" sr1 ","order_id":9007199254740993,"package_id":12e1,"gs1_sscc":"00106141412345678908"},
		"estimated_delivery_at":"2026-06-12T09:00:00+02:00","current_status":"cancelled","later":[{}],
		"events" : [ {"occurred_at":"2026-06-09T18:20:00.50-04:00","status_code":"otep:parcel:order_canceled","event_id":"mine","message":"sp\u00e9cial \ud83d\ude9a",
			"source":{"type":"own_fleet","provider":"ups","provider_name":"U","raw_status":"X","raw_message":"y","reference":"r","synthesized":true},
			"location":{"name":"Hub","address":"a","city":"c","region":"r","postal_code":"p","country":"ca","latitude":-1.5,"longitude":2,"unlocode":"CATOR","gln":"1234567890123","facility_id":"f","type":" Address"},
			"pod":{"recipient":"J","signed":true,"signature_url":"s","signed_at":"2026-06-09T18:20:00Z","note":"n","files":[{"file_id":12345678901234567,"type":"photo","url":"u","full_url":"fu"}]},
			"telemetry":[{"type":" Temperature","value":4.20,"unit":"CEL","time":"2026-06-09T18:20:00Z","device_id":"d"}],
			"extensions":{"n":12345678901234567890,"o":{"x":[1.50]}},"status_uri":"otep:evil:x","status_label":"evil","phase_uri":"evil","withdrawn":true} ] } `), noon)
	require.NoError(t, err)
	require.Empty(t, report.Errors)
	when := at(t, "2026-06-12T09:00:00+02:00")
	signed := at(t, "2026-06-09T18:20:00Z")
	require.Equal(t, Timeline{
		Version: "0.1", Profile: "parcel", Subject: Subject{TrackingNumber: "sr1", OrderID: 9007199254740993, PackageID: 120, SSCC: "106141412345678908"}, EstimatedDeliveryAt: &when,
		Events: []Event{{
			EventID: "mine", OccurredAt: at(t, "2026-06-09T18:20:00.5-04:00"), StatusCode: Cancelled, Phase: PhaseCancelled, Message: "spécial 🚚",
			Source:     &Source{Type: SelfDelivery, Provider: "ups", ProviderName: "U", RawStatus: "X", RawMessage: "y", Reference: "r", Synthesized: true},
			Location:   &Location{"Hub", "a", "c", "r", "p", "CA", ptr(-1.5), ptr(2.0), "CATOR", "1234567890123", "f", PlaceAddress},
			PoD:        &Proof{"J", true, "s", &signed, "n", []File{{12345678901234567, "photo", "u", "fu"}}},
			Telemetry:  []Reading{{"temperature", 4.2, "CEL", &signed, "d"}},
			Extensions: Extensions{"n": json.Number("12345678901234567890"), "o": map[string]any{"x": []any{json.Number("1.50")}}},
		}},
	}, tl)
}

// What is refused is read as far as it can be, and the rest of its event with it.
func TestReadTakesWhatItCan(t *testing.T) {
	t.Parallel()
	tl, report, err := Read(edited(t, plain,
		edit{"events.0.message", `5`}, edit{"events.0.extensions", `[1]`}, edit{"events.0.event_id", `5`}, edit{"events.1.event_id", `"` + strings.Repeat("e", 65) + `"`},
		edit{"events.0.location", `{"name":5,"type":"moon"}`}, edit{"events.1.location", `{"latitude":null}`}, edit{"events.0.telemetry", `"hot"`},
		edit{"events.0.source.provider", `{}`}, edit{"events.0.source.synthesized", `"yes"`}, edit{"estimated_delivery_at", `"soon"`}), noon)
	require.NoError(t, err)
	require.Len(t, report.Errors, 8)
	require.Len(t, report.Warnings, 1)
	require.Nil(t, tl.EstimatedDeliveryAt)
	e := tl.Events[0]
	require.Equal(t, Event{OccurredAt: e.OccurredAt, StatusCode: ArrivalScan, Phase: PhaseInbound, Source: &Source{Type: Carrier}, Location: &Location{Type: "other"}}, e)
	require.Empty(t, tl.Events[1].EventID, "an id that is too long is as none")
	require.Nil(t, tl.Events[1].Location)
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	f := func(body string, want error, words string) {
		t.Helper()
		_, _, err := Read([]byte(body), noon)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, words)
	}
	for _, body := range []string{"", " ", "{", `{"a":1}x`, "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", `{'a':1}`, `{"a":01}`, `{"a":1,}`, "nul", `{"a":"` + "\n" + `"}`} {
		f(body, ErrJSON, "not JSON")
	}
	for _, text := range []string{`\u0000`, `\\\u0000`, `\ud800`, `\udc00`, `\udc00\ud800`, `\ud800\u0041`, `\ud800x`, `\ud800\n`, "\xed\xa0\x80"} {
		f(`{"x":["`+text+`"]}`, ErrJSON, "not JSON")
		f(`{"`+text+`":1}`, ErrJSON, "not JSON")
	}
	for _, text := range []string{`\\u0000`, `\ud83d\udce6`, `\u0001\uffff`, `\\\\ud800`, `\"\/`} {
		require.True(t, ValidJSON([]byte(`{"x":["`+text+`"]}`)), text)
	}
	f(`{"a":1,"a":2}`, ErrJSON, `"a" is given twice`)
	f(`{"events":[],"\u0065vents":[1]}`, ErrJSON, `"events" is given twice`)
	f(`{"subject":{"order_id":1,"order_id":2}}`, ErrJSON, `"order_id" is given twice`)
	for _, in := range []string{`"x":1,"x":2`, `"source":{"type":"carrier","type":"iot"}`, `"location":{"a":1,"a":1}`, `"pod":{"a":1,"a":1}`, `"pod":{"files":[{"a":1,"a":1}]}`, `"telemetry":[{"a":1,"a":1}]`, `"extensions":{"b":[{"a":1,"a":1}]}`} {
		f(`{"events":[{`+in+`}]}`, ErrJSON, "is given twice")
	}
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, `"m%d":1,`, i)
	}
	f(`{`+many.String()+`"m3":1}`, ErrJSON, `"m3" is given twice`)
	f(strings.Repeat("[", 65)+strings.Repeat("]", 65), ErrJSON, "64 levels")
	_, _, err := Read([]byte(`{"a":"`+strings.Repeat("[", 100)+`","b":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`), noon)
	require.NoError(t, err)
	f(`{"events":[`+strings.Repeat("{},", MaxEvents)+`{}]}`, ErrTooLarge, "events: over the limit of 1000 items")
}

// What is no JSON is found at its place, whatever stands before it.
func TestErrorsOfJSONHaveAPlace(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]JSONError{
		"":                             {0, 1, 1, "unexpected end of JSON input"},
		"{\"a\":1,\n \"b\":x}":         {13, 2, 6, "invalid character 'x' looking for beginning of value"},
		"{\"é\":1}x":                   {8, 1, 8, "invalid character 'x' after top-level value"},
		"{\"é\":":                      {6, 1, 6, "unexpected end of JSON input"},
		"{\"a\":\"é\xff\"}":            {8, 1, 8, "a byte is not UTF-8"},
		"[\n\n\"a\\n\\u0041\\ud800\"]": {13, 3, 11, "a string holds U+0000 or half of a surrogate pair"},
		"\n" + strings.Repeat("[", 70): {71, 2, 71, "unexpected end of JSON input"},
		" {\"a\":1,\n\n\"a\":2}":       {10, 3, 1, `member "a" is given twice`},
		"{\"events\":[{\"pod\":{\"x\":1,\n \"files\":[{\"k\":1,\"k\":2}]}}]}": {43, 2, 18, `member "k" is given twice`},
		"{\"events\":[{\"extensions\":{\"x\":[{\"k\":1,\"k\":2}]}}]}":         {38, 1, 39, `member "k" is given twice`},
		strings.Repeat("[", 65) + strings.Repeat("]", 65):                     {64, 1, 65, "nested more than 64 levels deep"},
	} {
		for _, spare := range []int{0, 100} { // memory behind the body does not move the place
			b := append(make([]byte, 0, len(body)+spare), body...)
			_, _, err := Read(b, noon)
			var got *JSONError
			require.ErrorAs(t, err, &got, body)
			require.ErrorIs(t, err, ErrJSON)
			require.Equal(t, want, *got, body)
			require.Equal(t, want.Offset+7, got.In([]byte("[true, "+body), 7).Offset)
		}
	}
}

// A full timeline at its limits is read in one go.
func TestReadAtTheLimits(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"otep_version":"0.1","profile":"parcel","subject":{"order_id":1},"events":[`)
	for i := range MaxEvents {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"occurred_at":"%s","status_code":"in_transit","source":{"type":"iot"},"telemetry":[{"type":"speed","value":%d}]}`, noon.Add(time.Duration(i-MaxEvents)*time.Second).Format(time.RFC3339), i)
	}
	b.WriteString(`]}`)
	tl, report, err := Read([]byte(b.String()), noon)
	require.NoError(t, err)
	require.Empty(t, report.Errors)
	require.Empty(t, report.Warnings)
	require.Len(t, tl.Events, MaxEvents)
	require.Equal(t, 999.0, tl.Events[999].Telemetry[0].Value)
}

// Whatever arrives, reading answers; what conforms still does once it is
// folded and written, and is read the same again.
func FuzzTimeline(f *testing.F) {
	f.Add(string(golden(f, "sample.json")))
	f.Add(plain)
	f.Add(`[]`)
	f.Add(`{"events":[{"extensions":{"a":[1,{}]},"location":{"latitude":1e999}}, 5 ,null]}`)
	f.Add(`{"otep_version":"0.1","subject":{"order_id":1},"events":[{"occurred_at":"0000-01-01T00:00:00+23:59","status_code":"x-a","phase":"return","telemetry":[{"type":"t","value":-0}],"pod":{"files":[{}]}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		tl, report, err := Read([]byte(body), noon)
		if err != nil {
			require.True(t, errors.Is(err, ErrJSON) || errors.Is(err, ErrTooLarge))
			return
		}
		require.True(t, json.Valid([]byte(body)))
		if !report.Conformant() {
			require.Zero(t, report.Level)
			return
		}
		for i := range tl.Events {
			e := &tl.Events[i]
			require.False(t, report.Refused(i))
			if e.RecordedAt.IsZero() {
				e.RecordedAt = Time{noon}
			}
			if e.EventID == "" {
				e.EventID = ID(tl.Subject, *e)
			}
		}
		folded := Fold(tl.Profile, tl.Subject, tl.Events)
		b, err := json.Marshal(folded)
		require.NoError(t, err)
		back, report, err := Read(b, noon)
		require.NoError(t, err)
		for _, e := range report.Errors {
			require.Equal(t, "V34", e.Rule, "events that are the same get the same id")
		}
		if len(report.Errors) == 0 {
			again, err := json.Marshal(Fold(back.Profile, back.Subject, back.Events))
			require.NoError(t, err)
			require.Equal(t, string(b), string(again))
		}
	})
}
