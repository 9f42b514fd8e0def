package otep

import (
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func at(t testing.TB, s string) Time {
	t.Helper()
	v, err := ParseTime(s)
	require.NoError(t, err)
	return v
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return b
}

var update = flag.Bool("update", false, "rewrite the golden files")

// same compares with a golden file, or rewrites it under -update.
func same(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile("testdata/"+name, []byte(got), 0o644))
	}
	require.Equal(t, string(golden(t, name)), got)
}

func ptr[T any](v T) *T { return &v }

// sample is the protocol's own example as a producer knows it: without ids,
// phases, addresses and current status.
func sample(t testing.TB) (Subject, []Event) {
	t.Helper()
	source := &Source{Type: SelfDelivery}
	return Subject{TrackingNumber: "SR123456789", OrderID: 12345, SSCC: "106141412345678908"}, []Event{
		{
			OccurredAt: at(t, "2026-06-09T18:20:00-04:00"), RecordedAt: at(t, "2026-06-09T18:20:04-04:00"), StatusCode: ArrivalScan, Source: source,
			Location:  &Location{Name: "Toronto Hub", City: "Toronto", Region: "ON", Country: "CA", PostalCode: "M5V 2T6", Latitude: ptr(43.6426), Longitude: ptr(-79.3871), UNLocode: "CATOR"},
			Telemetry: []Reading{{Type: "temperature", Value: 4.2, Unit: "CEL", DeviceID: "probe-17"}},
		},
		{
			OccurredAt: at(t, "2026-06-10T09:50:00-04:00"), RecordedAt: at(t, "2026-06-10T09:50:31-04:00"), StatusCode: DeliveryFailed, Source: source,
			IncidentReason: "recipient_unavailable",
		},
		{
			OccurredAt: at(t, "2026-06-10T11:30:00-04:00"), RecordedAt: at(t, "2026-06-10T11:30:02-04:00"), StatusCode: Delivered, Source: source,
			Location: &Location{City: "Toronto", Region: "ON", Country: "CA"}, PoD: &Proof{Recipient: "J. Smith"},
		},
	}
}

func TestTheSampleComesOutAsPublished(t *testing.T) {
	t.Parallel()
	subject, events := sample(t)
	for i := range events {
		events[i].EventID = ID(subject, events[i])
	}
	got, err := json.Marshal(Fold(DefaultProfile, subject, events))
	require.NoError(t, err)
	require.JSONEq(t, string(golden(t, "sample.json")), string(got))

	var back Timeline
	require.NoError(t, json.Unmarshal(got, &back))
	require.Equal(t, Fold(DefaultProfile, subject, events), back)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	s := Subject{TrackingNumber: "sr1"}
	e := Event{OccurredAt: at(t, "2026-06-09T18:20:00.500-04:00"), StatusCode: Delivered, Source: &Source{Type: Carrier, Provider: "ups", RawStatus: "D"}}
	id := ID(s, e)
	require.Regexp(t, `^evt_[0-9a-f]{20}$`, id)
	same := e
	same.OccurredAt = at(t, "2026-06-09T22:20:00.5Z")
	require.Equal(t, id, ID(Subject{TrackingNumber: " SR1 "}, same), "neither offset, nor trailing zeros, nor letter case matter")
	for name, change := range map[string]func(*Event){
		"time": func(e *Event) { e.OccurredAt = at(t, "2026-06-09T18:20:00-04:00") }, "code": func(e *Event) { e.StatusCode = InTransit },
		"type": func(e *Event) { e.Source = &Source{Type: Partner, Provider: "ups", RawStatus: "D"} }, "no source": func(e *Event) { e.Source = nil },
		"provider": func(e *Event) { e.Source = &Source{Type: Carrier, RawStatus: "D"} }, "status": func(e *Event) { e.Source = &Source{Type: Carrier, Provider: "ups"} },
	} {
		other := e
		change(&other)
		require.NotEqual(t, id, ID(s, other), name)
	}
	all := Subject{TrackingNumber: "a", ExternalTrackingNumber: "b", SSCC: "106141412345678908", PackageID: 7, OrderID: 8, PieceID: "https://x/y"}
	for _, want := range []string{"A", "B", "SSCC:106141412345678908", "PACKAGE:7", "ORDER:8", "PIECE:HTTPS://X/Y", ""} {
		require.Equal(t, want, all.IdentityKey())
		switch {
		case all.TrackingNumber != "":
			all.TrackingNumber = ""
		case all.ExternalTrackingNumber != "":
			all.ExternalTrackingNumber = ""
		case all.SSCC != "":
			all.SSCC = ""
		case all.PackageID != 0:
			all.PackageID = 0
		case all.OrderID != 0:
			all.OrderID = 0
		default:
			all.PieceID = ""
		}
	}
}

func TestTimesKeepTheirOffset(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"2026-06-09T18:20:00-04:00": "", "2026-06-09T18:20:00Z": "", "2026-06-09T18:20:00.123456789+05:45": "", "2026-06-09T18:20:00+23:59": "",
		"2026-06-09T18:20:00.120+14:00": "2026-06-09T18:20:00.12+14:00", "2026-06-09t18:20:00z": "2026-06-09T18:20:00Z",
		"2026-06-09T18:20:00+00:00": "2026-06-09T18:20:00Z", "2026-06-09T18:20:00-00:00": "2026-06-09T18:20:00Z", "0000-01-01T00:00:00+01:00": "", "9999-12-31T23:59:59-01:00": "",
	} {
		if want == "" {
			want = given
		}
		v := at(t, given)
		require.Equal(t, want, v.String())
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var back Time
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, v, back)
	}
	for _, bad := range []string{
		"", "2026-06-09", "2026-06-09T18:20:00", "2026-06-09T8:20:00Z", "2026-06-09T18:20Z", "2026-06-09 18:20:00Z", "2026-06-09T18:20:00,5Z", "2026-06-09T18:20:00.Z",
		"2026-06-09T18:20:00.1234567890Z", "2026-02-30T00:00:00Z", "2026-06-09T24:00:00Z", "2026-06-09T18:60:00Z", "2026-06-09T18:20:00+24:00", "2026-06-09T18:20:00+01:60",
		"2026-06-09T18:20:00+0100", "2026-06-09T18:20:00+01", " 2026-06-09T18:20:00Z", "2026-06-09T18:20:00Z ", "26-06-09T18:20:00Z", "+2026-06-09T18:20:00Z", "20260609T182000Z", "1781043600",
	} {
		_, err := ParseTime(bad)
		require.Error(t, err, bad)
	}
}

func TestExtensionsComeOutAsTheyCameIn(t *testing.T) {
	t.Parallel()
	const given = `{"a":12345678901234567890,"b":[1.10,null,{"c":1e400}],"d":"é<&>"}`
	var e Event
	require.NoError(t, json.Unmarshal([]byte(`{"event_id":"","otep_version":"","occurred_at":"2026-06-09T18:20:00Z","recorded_at":"2026-06-09T18:20:00Z","extensions":`+given+`}`), &e))
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(e.Extensions))
	require.Equal(t, given+"\n", out.String())
}

func TestWhatEverybodyMaySee(t *testing.T) {
	t.Parallel()
	p := &Proof{Recipient: "Jane Q. van Smith", Signed: true, SignatureURL: "https://x", SignedAt: ptr(at(t, "2026-06-09T18:20:00Z")), Note: "desk", Files: []File{{ID: 1, URL: "https://y"}}}
	require.Equal(t, &Proof{Recipient: "J. Smith", Signed: true, SignedAt: p.SignedAt}, p.Public())
	require.Equal(t, "", p.Recipients().Note)
	require.Equal(t, p.Files, p.Recipients().Files)
	require.Nil(t, (*Proof)(nil).Recipients())
	for name, want := range map[string]string{"": "", "  ": "", "Jane": "J.", "J. Smith": "J. Smith", "Élodie Roux": "É. Roux", "王 小明": "王. 小明"} {
		require.Equal(t, want, (&Proof{Recipient: name}).Public().Recipient)
	}
	require.Nil(t, (*Proof)(nil).Public())
	l := &Location{Name: "Jane's flat", Type: PlaceAddress, Address: "9 Secret Lane", PostalCode: "M5V 2T6", City: "Toronto", Region: "ON", Country: "CA", Latitude: ptr(1.0), Longitude: ptr(2.0)}
	require.Equal(t, &Location{Type: PlaceAddress, City: "Toronto", Region: "ON", Country: "CA"}, l.Public())
	for _, typ := range []string{"", "vehicle", "other"} {
		l.Type = typ
		require.Equal(t, &Location{Type: typ, City: "Toronto", Region: "ON", Country: "CA"}, l.Public(), "what is not known to be open to all may be an address")
	}
	e := Event{StatusCode: Delivered, Message: "dog", PoD: p, Location: l, Extensions: Extensions{"a": 1}, Source: &Source{Type: Locker, Provider: "x", ProviderName: "X", RawStatus: "raw", RawMessage: "raw", Reference: "raw", Synthesized: true}}
	raw, err := json.Marshal(e.Public())
	require.NoError(t, err)
	for _, hidden := range []string{"dog", "desk", "flat", "raw", "extensions"} {
		require.NotContains(t, string(raw), hidden)
	}
	require.Equal(t, &Source{Type: Locker, Provider: "x", ProviderName: "X", Synthesized: true}, e.Public().Source)
	require.Equal(t, "dog", e.Message, "the event itself stays as it is")
	hub := &Location{Type: "hub", Address: "1 Dock Rd"}
	require.Equal(t, hub, hub.Public())
	require.Nil(t, (*Location)(nil).Public())
}

// An event over a limit is refused, and no other for it.
func TestLimits(t *testing.T) {
	t.Parallel()
	f := func(path, json string, want ...string) {
		t.Helper()
		r, err := Validate(edited(t, plain, edit{path, json}), noon)
		require.NoError(t, err)
		require.Equal(t, append([]string{}, want...), lines(r.Errors))
		require.Equal(t, len(want) > 0, r.Refused(0))
		require.False(t, r.Refused(1) || r.Refused(-1))
	}
	text := func(s string, n int) string { return strconv.Quote(strings.Repeat(s, n)) }
	f("events.0.message", text("包", MaxMessage))
	f("events.0.message", text("a", MaxMessage+1), "V37 events[0].message: message is longer than 500 characters")
	reading := `{"type":"speed","value":1},`
	f("events.0.telemetry", `[`+strings.Repeat(reading, MaxTelemetry-1)+reading[:len(reading)-1]+`]`)
	f("events.0.telemetry", `[`+strings.Repeat(reading, MaxTelemetry)+`5]`, "V37 events[0].telemetry: telemetry is longer than 100 items")
	f("events.0.extensions", `{"a":`+text("x", MaxExtensionsBytes-8)+`}`)
	f("events.0.extensions", `{ "a" : `+text("x", MaxExtensionsBytes-7)+` }`, "V37 events[0].extensions: extensions is longer than 8192 bytes")
}
