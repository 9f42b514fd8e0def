package otep

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func encoded(t require.TestingT, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// some draws text of every kind that an encoder treats in its own way.
var some = rapid.OneOf(rapid.Just(""), rapid.StringN(0, 8, -1), rapid.SampledFrom([]string{"in_transit", "包裹 <42> & \u2028", "a\"b\\c", "\xff", "\x00\x1f\x7f", "Zürich"}))

func drawTime(t *rapid.T) Time {
	zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "zone"))
	return Time{time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, "s"), rapid.SampledFrom([]int64{0, 1, 123e6, 999999999}).Draw(t, "ns")).In(zone)}
}

func drawEvent(t *rapid.T) Event {
	text := func(name string) string { return some.Draw(t, name) }
	e := Event{EventID: text("id"), Version: text("v"), OccurredAt: drawTime(t), RecordedAt: drawTime(t), StatusCode: Code(text("code")), StatusURI: text("uri"), StatusLabel: text("label"),
		Phase: text("phase"), PhaseURI: text("puri"), TimeType: text("tt"), IncidentReason: text("r"), Message: text("m")}
	maybe := rapid.Bool()
	number := func(name string) *float64 {
		if maybe.Draw(t, name) {
			return nil
		}
		f := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 43.6426, -79.3871, 1e-7, 1e21, 1e20, 90, -0.5})).Draw(t, name)
		return &f
	}
	if maybe.Draw(t, "location") {
		e.Location = &Location{Name: text("n"), Address: text("a"), City: text("c"), Region: text("rg"), PostalCode: text("pc"), Country: text("co"), Latitude: number("lat"), Longitude: number("lon"),
			UNLocode: text("un"), GLN: text("gln"), FacilityID: text("f"), Type: text("lt")}
	}
	if maybe.Draw(t, "source") {
		e.Source = &Source{Type: text("st"), Provider: text("p"), ProviderName: text("pn"), RawStatus: text("rs"), RawMessage: text("rm"), Reference: text("ref"), Synthesized: maybe.Draw(t, "syn")}
	}
	if maybe.Draw(t, "corrects") {
		e.Corrects = text("corrected")
	}
	if maybe.Draw(t, "rest") {
		e.PoD, e.Telemetry, e.Extensions = &Proof{Recipient: text("who")}, []Reading{{Type: text("kind"), Value: 4.2}}, Extensions{text("k"): text("x")}
	}
	return e
}

func TestEventsAreWrittenAsByTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		b, err := AppendEvent(nil, &e)
		require.NoError(t, err)
		require.Equal(t, string(encoded(t, e)), string(b))
		agree(t, b)

		s := Subject{TrackingNumber: some.Draw(t, "number"), OrderID: rapid.Int64().Draw(t, "order")}
		line := Fold("parcel", s, []Event{e, drawEvent(t)})
		if rapid.Bool().Draw(t, "estimate") {
			at := drawTime(t)
			line.EstimatedDeliveryAt = &at
		}
		for _, line := range []Timeline{line, Fold("", s, nil), {}, {Withdrawals: []Withdrawal{{some.Draw(t, "withdrawn"), DidNotOccur}}}} {
			b, err = line.AppendJSON([]byte("x"))
			require.NoError(t, err)
			require.Equal(t, "x"+string(encoded(t, line)), string(b))
		}
	})
	nan := math.NaN()
	_, err := AppendEvent(nil, &Event{Location: &Location{Latitude: &nan}})
	require.Error(t, err)
}

// agree checks that DecodeEvent and encoding/json make the same of b.
func agree(t require.TestingT, b []byte) {
	got, err := DecodeEvent(string(b))
	var want Event
	if bad := json.Unmarshal(b, &want); bad != nil {
		require.Error(t, err, "%q", b)
		return
	}
	require.NoError(t, err, "%q", b)
	require.Equal(t, want, got, "%q", b)
}

func TestOwnEventsAreReadWithoutTheLibrary(t *testing.T) {
	t.Parallel()
	lat := 43.5
	e := Event{EventID: "evt_1", OccurredAt: Time{time.Unix(1, 0).UTC()}, RecordedAt: Time{time.Unix(2, 5).UTC()}, StatusCode: InTransit, Location: &Location{Name: "包裹", Latitude: &lat, Longitude: &lat},
		Source: &Source{Type: Carrier, Synthesized: true}, Message: "moved"}.Fill("parcel")
	b, err := AppendEvent(nil, &e)
	require.NoError(t, err)
	got, ok := quickEvent(string(b))
	require.True(t, ok)
	require.Equal(t, e, got)
}

func FuzzDecodeEvent(f *testing.F) {
	lat := -0.25
	for _, e := range []Event{{}, {EventID: "x", Location: &Location{Latitude: &lat}, Source: &Source{Synthesized: true}}, {PoD: &Proof{}, Extensions: Extensions{"a": 1}}} {
		b, _ := AppendEvent(nil, &e)
		f.Add(b)
	}
	const times = `"occurred_at":"2026-06-10T12:00:00Z","recorded_at":"2026-06-10T12:00:00-04:00"`
	for _, s := range []string{`{` + times + `}`, `{"event_id":"a",` + times + `,"location":{"latitude":-01},"phase":"x"}`, `{` + times + `,"location":{},"location":{"name":"a"}}`, `{` + times + `} `,
		`{` + times + `,"location":{"latitude":1.}}`, `{` + times + `,"location":{"latitude":-}}`, `{` + times + `,"source":{"synthesized":truex}}`, `{"event_id":,` + times + `}`, `{,` + times + `}`, `{` + times + `,}`, `{` + times} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, b) })
}
