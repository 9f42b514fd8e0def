package otep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEventsAreHeldToTheRulesOfReading(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC)
	at := Time{now.Add(-time.Hour)}
	lat := 91.0
	events, report, err := Check(Subject{TrackingNumber: "SR1"}, []Event{
		{OccurredAt: at, StatusCode: "otep:parcel:returned", Source: &Source{Type: "device"}, EventID: "mine", Extensions: Extensions{"k": "v"}},
		{StatusCode: InTransit, Source: &Source{Type: Locker}},
		{OccurredAt: at, StatusCode: "nonsense", Source: &Source{Type: Locker}},
		{OccurredAt: at, StatusCode: InTransit, Location: &Location{Latitude: &lat}},
		{OccurredAt: at, RecordedAt: Time{now}, StatusCode: Delivered, Phase: PhaseReturn},
	}, now)
	require.NoError(t, err)
	require.Len(t, events, 5)
	want := Event{OccurredAt: at, StatusCode: ReturnToSender, Phase: PhaseReturn, Source: &Source{Type: Locker}, EventID: "mine", Extensions: Extensions{"k": "v"}}
	require.Equal(t, want, events[0])
	found := map[string]string{}
	for _, e := range report.Errors {
		found[e.Path] = e.Rule
	}
	require.Equal(t, map[string]string{"events[1].occurred_at": "V11", "events[2].status_code": "V18", "events[3].location": "V26", "events[4].phase": "V21"}, found)
	require.True(t, now.Equal(events[4].RecordedAt.Time))

	_, report, err = Check(Subject{TrackingNumber: "not a number"}, nil, now)
	require.NoError(t, err)
	require.True(t, report.Refused(-1))
	_, _, err = Check(Subject{}, make([]Event, MaxEvents+1), now)
	require.ErrorIs(t, err, ErrTooLarge)
}
