package otep

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tangle makes events that tie in time, rank and recording, some of them not
// actual, withdrawn or of unregistered codes.
func tangle(r *rand.Rand, n int) []Event {
	all := Vocabulary()
	start := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	events := make([]Event, n)
	for i := range events {
		when := start.Add(time.Duration(r.IntN(n/4)) * time.Second)
		e := Event{EventID: fmt.Sprintf("e%04d", i), OccurredAt: Time{when.In(time.FixedZone("", 3600*r.IntN(12)))}, RecordedAt: Time{when.Add(time.Duration(r.IntN(2)) * time.Second)}}
		e.StatusCode = all[r.IntN(len(all))].Code
		switch r.IntN(8) {
		case 0:
			e.TimeType = []string{Estimated, Planned}[r.IntN(2)]
		case 1:
			e.Withdrawn = true
		case 2:
			e.StatusCode, e.Phase = "x-unheard_of", phases[r.IntN(len(phases))]
		}
		events[i] = e
	}
	return events
}

func TestArrivalOrderNeverMatters(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 1))
	events := tangle(r, 500)
	subject := Subject{TrackingNumber: "SR1"}
	want := Fold("locker", subject, events)
	for shuffle := range 1000 {
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		require.Equal(t, want, Fold("locker", subject, events), "shuffle %d", shuffle)
	}
	require.Less(t, len(want.Events), 500, "withdrawn events are left out")
}

// A plain reading of the rules: try every event as the latest.
func TestFoldAgainstAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		events := tangle(r, 4+r.IntN(30))
		var last *Event
		for i := range events {
			e := &events[i]
			if e.Withdrawn || e.TimeType != "" {
				continue
			}
			if last == nil || later(*e, *last) {
				last = e
			}
		}
		got := Fold("", Subject{TrackingNumber: "SR1"}, events)
		require.Equal(t, "parcel", got.Profile)
		if last == nil {
			require.Nil(t, got.Current)
			continue
		}
		require.Equal(t, last.StatusCode, *got.Current, "seed %d", seed)
		require.Equal(t, last.OccurredAt, *got.LastEventAt)
		require.Equal(t, Project(last.StatusCode, last.Phase).Phase, *got.CurrentPhase)
		require.Equal(t, *got.Current == Delivered, got.Delivered)
		require.Equal(t, slices.Contains([]Code{Delivered, ReturnToSender, RejectedByRecipient, Cancelled}, *got.Current), got.Terminal)
	}
}

// later spells the order out.
func later(a, b Event) bool {
	if !a.OccurredAt.Equal(b.OccurredAt.Time) {
		return a.OccurredAt.After(b.OccurredAt.Time)
	}
	if x, y := Project(a.StatusCode, a.Phase).Rank, Project(b.StatusCode, b.Phase).Rank; x != y {
		return x > y
	}
	if !a.RecordedAt.Equal(b.RecordedAt.Time) {
		return a.RecordedAt.After(b.RecordedAt.Time)
	}
	return a.EventID > b.EventID
}

func TestFoldFillsEvents(t *testing.T) {
	t.Parallel()
	when := at(t, "2026-06-10T01:00:00+02:00")
	tl := Fold("parcel", Subject{TrackingNumber: "SR1"}, []Event{
		{EventID: "a", OccurredAt: when, StatusCode: AvailableForPickup, Phase: PhaseReturn, TimeType: Actual},
		{EventID: "b", OccurredAt: when, StatusCode: "x-lost_in_space", Phase: PhaseException, TimeType: Planned},
	})
	require.Equal(t, "otep:locker:x-available_for_pickup", tl.Events[0].StatusURI)
	require.Equal(t, PhaseOutForDelivery, tl.Events[0].Phase, "a code decides its phase")
	require.Empty(t, tl.Events[0].TimeType, "actual is not written")
	require.Equal(t, "2026-06-10T01:00:00+02:00", tl.Events[0].OccurredAt.String(), "the given offset is kept")
	require.Equal(t, "otep:parcel:x-lost_in_space", tl.Events[1].StatusURI)
	require.Equal(t, "otep:phase:exception", tl.Events[1].PhaseURI)
	require.Equal(t, Planned, tl.Events[1].TimeType)
}

func TestEmptyTimeline(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Fold("parcel", Subject{TrackingNumber: "X"}, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"X"},"current_status":null,"current_phase":null,"delivered":false,"terminal":false,"last_event_at":null,"events":[]}`, string(b))
}

func TestReachedAndCollected(t *testing.T) {
	t.Parallel()
	f := func(reached, collected bool, events ...Event) {
		t.Helper()
		require.Equal(t, reached, Reached(events))
		require.Equal(t, collected, Collected(events))
	}
	f(false, false)
	f(false, false, Event{StatusCode: InformationSubmitted}, Event{StatusCode: DeliveryFailed}, Event{StatusCode: ReturnToSender})
	f(true, true, Event{StatusCode: OutForPickup})
	f(false, true, Event{StatusCode: Stored})
	f(false, true, Event{StatusCode: "x-unheard_of", Phase: PhaseTransit})
	f(false, false, Event{StatusCode: "x-unheard_of", Phase: PhaseException}, Event{StatusCode: InTransit, TimeType: Planned}, Event{StatusCode: InTransit, Withdrawn: true})
}

func TestBadMoves(t *testing.T) {
	t.Parallel()
	f := func(want []Move, events ...Event) {
		t.Helper()
		require.Equal(t, want, BadMoves(events))
	}
	f(nil, Event{StatusCode: Delivered}, Event{StatusCode: Delivered}, Event{StatusCode: ReturnToSender})
	f(nil, Event{StatusCode: Received}, Event{StatusCode: PickupOverdue}, Event{StatusCode: OutForDelivery})
	f([]Move{{Index: 2, From: Received, To: BookingConfirmed}}, Event{StatusCode: Received}, Event{StatusCode: AvailableForPickup}, Event{StatusCode: BookingConfirmed}, Event{StatusCode: InTransit})
	f([]Move{{Index: 3, From: Cancelled, To: InTransit, Ended: true}}, Event{StatusCode: Cancelled}, Event{StatusCode: Received, Withdrawn: true}, Event{StatusCode: PickedUp, TimeType: Estimated}, Event{StatusCode: InTransit})
}
