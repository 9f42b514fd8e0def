package otep

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func at(t testing.TB, s string) Time {
	t.Helper()
	v, err := ParseTime(s)
	require.NoError(t, err)
	return v
}

// Figures of the protocol's own sample timeline.
func TestEventIDsOfTheSample(t *testing.T) {
	t.Parallel()
	subject := Subject{TrackingNumber: "SR123456789", OrderID: 12345, SSCC: "106141412345678908"}
	for _, c := range []struct{ at, code, want string }{
		{"2026-06-09T18:20:00-04:00", "arrival_scan", "evt_3bb8f382b2d362260118"},
		{"2026-06-10T09:50:00-04:00", "delivery_failed", "evt_7d8cbde140e953577c3e"},
		{"2026-06-10T11:30:00-04:00", "delivered", "evt_6cb4c175967220156199"},
	} {
		e := Event{OccurredAt: at(t, c.at), StatusCode: Code(c.code), Source: &Source{Type: "self_delivery"}}
		require.Equal(t, c.want, ID(subject, e))
	}
}

func TestArrivalOrderNeverMatters(t *testing.T) {
	t.Parallel()
	subject := Subject{TrackingNumber: "SR1"}
	var events []Event
	for i, c := range []Code{InformationSubmitted, AvailableForPickup, Delivered} {
		e := Event{OccurredAt: at(t, []string{"2026-06-09T18:20:00-04:00", "2026-06-10T01:00:00+02:00", "2026-06-09T23:00:01Z"}[i]), StatusCode: c, Source: &Source{Type: "locker"}}
		e.RecordedAt = e.OccurredAt
		e.EventID = ID(subject, e)
		events = append(events, e)
	}
	want, err := json.Marshal(Fold("parcel", subject, events))
	require.NoError(t, err)
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		got, err := json.Marshal(Fold("parcel", subject, events))
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), "seed %d", seed)
	}
	tl := Fold("parcel", subject, events)
	require.Equal(t, Delivered, *tl.Current)
	require.True(t, tl.Delivered)
	require.True(t, tl.Terminal)
	require.Equal(t, "otep:locker:x-available_for_pickup", tl.Events[1].StatusURI)
	require.Equal(t, "2026-06-10T01:00:00+02:00", tl.Events[1].OccurredAt.String(), "the given offset is kept")
}

func TestVocabularyIsWhole(t *testing.T) {
	t.Parallel()
	universal, terminal := 0, 0
	for _, s := range Vocabulary() {
		if s.Profile == "" {
			universal++
		} else {
			_, ok := Lookup(s.Parent)
			require.True(t, ok, s.Code)
		}
		if s.Terminal {
			terminal++
		}
		require.NotEmpty(t, s.Phase, s.Code)
		require.NotZero(t, s.Rank, s.Code)
	}
	require.Equal(t, 20, universal)
	require.Equal(t, 4, terminal)
}

func TestEmptyTimeline(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Fold("parcel", Subject{TrackingNumber: "X"}, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"X"},"current_status":null,"current_phase":null,"delivered":false,"terminal":false,"last_event_at":null,"events":[]}`, string(b))
}
