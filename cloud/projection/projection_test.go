package projection

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

var update = flag.Bool("update", false, "rewrite the golden files that are ours")

func projector() *Projector {
	return New(Config{BaseURL: "https://api.example.com", Label: func(c otep.Code) string { return locale.Status("en", c) }})
}

var answered = time.Date(2026, 6, 10, 15, 30, 5, 0, time.UTC)

// sample is the timeline of the published example.
func sample(t testing.TB) otep.Timeline {
	t.Helper()
	raw, err := os.ReadFile("testdata/otep.json")
	require.NoError(t, err)
	var tl otep.Timeline
	require.NoError(t, json.Unmarshal(raw, &tl))
	return otep.Fold(tl.Profile, tl.Subject, tl.Events)
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return b.Bytes()
}

// Every format of the published example, value for value and with the members
// in the published order. Shopify's shows the first and the last event only.
func TestPublishedExamples(t *testing.T) {
	tl := sample(t)
	for _, f := range Formats() {
		t.Run(f.Name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", f.Name+".json"))
			require.NoError(t, err)
			got := projector().Document(f, tl, answered)
			if f.Name == "shopify" {
				d := got.(shopifyDocument)
				require.Len(t, d.Events, 3)
				require.Len(t, d.Fulfillment.Events.Nodes, 3)
				d.Events, d.Fulfillment.Events.Nodes = slices.Delete(d.Events, 1, 2), slices.Delete(d.Fulfillment.Events.Nodes, 1, 2)
				got = d
			}
			raw := encode(t, got)
			require.JSONEq(t, string(want), string(raw))
			var a, b bytes.Buffer
			require.NoError(t, json.Compact(&a, want))
			require.NoError(t, json.Compact(&b, raw))
			require.Equal(t, a.String(), b.String(), "members stand in the published order")
		})
	}
}

// A timeline without events has a document in every format.
func TestNoEvents(t *testing.T) {
	tl := otep.Fold("parcel", otep.Subject{TrackingNumber: "SR1"}, nil)
	p := projector()
	golden := map[string]json.RawMessage{}
	for _, f := range Formats() {
		golden[f.Name] = encode(t, p.Document(f, tl, answered))
		list := encode(t, p.Events(f, tl, answered))
		if !f.Coarse {
			require.JSONEq(t, "[]", string(list), f.Name)
		}
	}
	equalGolden(t, "no-events.json", golden)
}

// A journey through a locker, with everything a timeline can hold.
func TestWholeVocabulary(t *testing.T) {
	tl := everything()
	p := projector()
	for _, f := range Formats() {
		equalGolden(t, "everything-"+f.Name+".json", p.Document(f, tl, answered))
	}
}

func equalGolden(t *testing.T, name string, v any) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	got = append(got, '\n')
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update to write it")
	require.Equal(t, string(want), string(got), name)
}

// everything has one event per registered code, an unregistered one, planned
// and estimated ones, and every kind of place, reason and reading in turn.
func everything() otep.Timeline {
	r := rand.New(rand.NewPCG(1, 2))
	s := otep.Subject{ExternalTrackingNumber: "1Z 999/AA", OrderID: 7, PieceID: "https://pieces.example/7"}
	at := time.Date(2026, 6, 1, 8, 0, 0, 0, time.FixedZone("", 2*3600))
	var events []otep.Event
	for i, c := range otep.Vocabulary() {
		e := randomEvent(r, at.Add(time.Duration(i)*time.Hour))
		e.StatusCode, e.Phase = c.Code, c.Phase
		events = append(events, e)
	}
	odd := randomEvent(r, at.Add(100*time.Hour))
	odd.StatusCode, odd.Phase, odd.IncidentReason = "x-in_a_tree", otep.PhaseException, "x-cat"
	planned, estimated := randomEvent(r, at.Add(200*time.Hour)), randomEvent(r, at.Add(201*time.Hour))
	planned.TimeType, estimated.TimeType = otep.Planned, otep.Estimated
	t := otep.Fold("parcel", s, withIDs(s, append(events, odd, planned, estimated)))
	t.EstimatedDeliveryAt = &otep.Time{Time: at.Add(300 * time.Hour)}
	return t
}

func withIDs(s otep.Subject, events []otep.Event) []otep.Event {
	for i := range events {
		events[i].EventID = otep.ID(s, events[i])
	}
	return events
}

// randomEvent is an event at a time, otherwise drawn.
func randomEvent(r *rand.Rand, at time.Time) otep.Event {
	codes := otep.Vocabulary()
	c := codes[r.IntN(len(codes))]
	e := otep.Event{OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: at.Add(time.Second)}, StatusCode: c.Code, Phase: c.Phase,
		Source: &otep.Source{Type: otep.SourceTypes()[r.IntN(8)].Type}}
	if r.IntN(2) == 0 {
		e.Source.Provider = "ups"
	}
	if r.IntN(3) > 0 {
		e.IncidentReason = otep.Reasons()[r.IntN(33)].Code
	}
	lat, lon := float64(r.IntN(180))-90+0.25, float64(r.IntN(360))-180+0.125
	switch r.IntN(6) {
	case 0:
		e.Location = &otep.Location{Name: "Toronto Hub", City: "Toronto", Region: "ON", Country: "CA", PostalCode: "M5V 2T6", Latitude: &lat, Longitude: &lon, UNLocode: "CATOR"}
	case 1:
		e.Location = &otep.Location{GLN: "4012345000009", City: "Köln", Country: "DE"}
	case 2:
		e.Location = &otep.Location{FacilityID: "gate 7/b", Country: "??"}
	case 3:
		e.Location = &otep.Location{Name: "包裹柜 42", Type: otep.PlaceLocker}
	case 4:
		e.Location = &otep.Location{Address: "1 Main St", City: "Oslo", Country: "NO", Type: otep.PlaceAddress}
	}
	for range r.IntN(3) {
		kinds := otep.Sensors()
		k := kinds[r.IntN(len(kinds))]
		reading := otep.Reading{Type: k.Type, Value: float64(r.IntN(1000)) / 8, Unit: k.Unit}
		switch r.IntN(3) {
		case 0:
			reading.DeviceID = "probe/1 7"
		case 1:
			reading.Time = &otep.Time{Time: at.Add(-time.Minute)}
			reading.Type, reading.Unit = "shock_count", ""
		}
		e.Telemetry = append(e.Telemetry, reading)
	}
	if c.PoD && r.IntN(2) == 0 {
		e.PoD = &otep.Proof{Recipient: "J. Smith"}
	}
	return e
}

// However the events arrive, the documents are the same.
func TestArrivalOrderNeverMatters(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := otep.Subject{TrackingNumber: "SR9"}
	var events []otep.Event
	for range 500 {
		events = append(events, randomEvent(r, time.Date(2026, 6, 1, 0, r.IntN(5000), 0, 0, time.UTC)))
	}
	events = withIDs(s, events)
	p := projector()
	want := map[string]string{}
	first := otep.Fold("", s, events)
	for _, f := range Formats() {
		want[f.Name] = string(encode(t, p.Document(f, first, answered)))
	}
	for n := range 1000 {
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		again := otep.Fold("", s, events)
		require.Equal(t, first, again)
		f := Formats()[n%len(formats)] // all of them would take a minute
		require.Equal(t, want[f.Name], string(encode(t, p.Document(f, again, answered))), f.Name)
	}
}

func TestFormatSelection(t *testing.T) {
	f := func(name, accept, want string) {
		t.Helper()
		got, ok := Select(name, accept)
		if want == "" {
			require.False(t, ok)
			return
		}
		require.True(t, ok)
		require.Equal(t, want, got.Name)
	}
	f("", "", "otep")
	f("EPCIS", "", "epcis")
	f("epcis", `application/json;profile="otlp"`, "epcis")
	f("nonsense", "", "")
	f("", `application/json;profile="epcis"`, "epcis")
	f("", `application/json;profile=OneRecord`, "onerecord")
	f("", `text/html, application/json; q=0.5; PROFILE="https://ref.gs1.org/standards/epcis/"`, "epcis")
	f("", `application/json;profile="https://ref.gs1.org/standards/epcis"`, "epcis")
	f("", `application/json;profile="https://unknown.example https://opentelemetry.io/"`, "otlp")
	f("", `application/json;profile="unknown",application/json;profile="shopify"`, "shopify")
	f("", `application/json;profile="unknown"`, "otep")
	f("", `application/json;profile="a,b;profile=epcis"`, "otep")
	f("", `application/json;profile="epcis`, "otep")
}

func FuzzAccept(f *testing.F) {
	f.Add("epcis", "")
	f.Add("", `application/json;profile="https://ref.gs1.org/standards/epcis/", */*;q=0.1`)
	f.Add("", `a;profile="\"";;,,"`)
	f.Fuzz(func(t *testing.T, name, accept string) {
		if got, ok := Select(name, accept); ok {
			require.NotEmpty(t, got.Name)
		}
	})
}

// What each projection of a journey of twelve events costs.
func BenchmarkProjection(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	s := otep.Subject{TrackingNumber: "SR12", SSCC: "106141412345678908"}
	var events []otep.Event
	for i := range 12 {
		events = append(events, randomEvent(r, time.Date(2026, 6, 1, i, 0, 0, 0, time.UTC)))
	}
	tl := otep.Fold("", s, withIDs(s, events))
	p := projector()
	for _, f := range Formats() {
		b.Run(f.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				raw, err := json.Marshal(p.Document(f, tl, answered))
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(raw)))
			}
		})
	}
}

// What a source gave in the place of a code stands in its own timeline, and in no standard's
// document.
func TestWhatIsNoCodeIsNotProjected(t *testing.T) {
	t.Parallel()
	at := otep.Time{Time: answered.Add(-time.Hour)}
	e := otep.Event{EventID: "e", OccurredAt: at, RecordedAt: at, StatusCode: otep.InTransit, Phase: otep.PhaseTransit, Source: &otep.Source{Type: otep.Carrier},
		Location:  &otep.Location{City: "Oslo", Country: "Norvegia", UNLocode: "Osloport", GLN: "4012345000008"},
		Telemetry: []otep.Reading{{Type: "temperature", Value: 4.25, Unit: "Celsius"}, {Type: "speed", Value: 7.5, Unit: "KMH"}}}
	tl := otep.Fold("parcel", otep.Subject{TrackingNumber: "SR1"}, []otep.Event{e})
	for _, f := range Formats() {
		for _, doc := range []any{projector().Document(f, tl, answered), projector().Events(f, tl, answered)} {
			text := string(encode(t, doc))
			for _, word := range []string{"Norvegia", "Osloport", "4012345000008", "Celsius", "4.25"} {
				require.Equal(t, f.Name == Native, strings.Contains(text, word), "%s in %s", word, f.Name)
			}
			if f.Name == "epcis" {
				require.Contains(t, text, "7.5", f.Name)
			}
		}
	}
	require.Equal(t, "Norvegia", tl.Events[0].Location.Country)
}
