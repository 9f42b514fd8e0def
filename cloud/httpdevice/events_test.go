package httpdevice_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

type tookEvents struct {
	Accepted int
	Rejected []struct {
		Index int
		Code  string
	}
}

func (b *box) event(id, number, status string, more ...any) map[string]any {
	e := map[string]any{"event_id": id, "tracking_number": number, "status_code": status}
	for i := 0; i < len(more); i += 2 {
		e[more[i].(string)] = more[i+1]
	}
	return e
}

func (b *box) say(events ...map[string]any) (out tookEvents) {
	b.t.Helper()
	require.NoError(b.t, b.call("POST", "/events", "", map[string]any{"events": events}, &out))
	return out
}

func (b *box) timeline(number string) []cloud.TimelineEvent {
	b.t.Helper()
	var events []cloud.TimelineEvent
	require.NoError(b.t, b.Store.Look(context.Background(), func(v cloud.View) error {
		sh, err := v.ShipmentByNumber(number)
		if err == nil {
			events, err = v.Timeline(sh.ID)
		}
		return err
	}))
	return events
}

// What a device says of parcels stands on their timelines, each event once, at its own time.
func TestEventsOfADevice(t *testing.T) {
	try(t, func(b *box) {
		b.create("1")
		before := len(b.timeline("PK-1"))
		at := time.Now().Add(-time.Hour).Truncate(time.Second)
		arrived := b.event("e-1", "PK-1", "otep:parcel:arrival_scan", "occurred_at", at.UTC().Format(time.RFC3339), "location", "Counter", "extensions", map[string]string{"lane": "4"})
		require.Equal(t, 2, b.say(arrived, b.event("e-2", "PK-1", "in_transit")).Accepted)
		for range 2 { // also of a call that was not answered, from another start of the program
			require.Equal(t, 1, b.say(arrived).Accepted)
			b.instance = "second"
		}
		out := b.say(b.event("e-1", "PK-1", "received"), b.event("e-3", "PK-404", "received"), b.event("e-4", "PK-1", "received"), b.event("e-4", "PK-1", "received"))
		require.Equal(t, 3, out.Accepted)
		require.Len(t, out.Rejected, 1)
		require.Equal(t, 1, out.Rejected[0].Index)
		require.Equal(t, "TRACKING_NOT_FOUND", out.Rejected[0].Code)
		events := b.timeline("PK-1")
		require.Len(t, events, before+3)
		for _, e := range events {
			if e.Event.StatusCode == otep.ArrivalScan {
				require.True(t, e.Event.OccurredAt.Equal(at))
				require.Equal(t, "Counter", e.Event.Location.Name)
				require.Equal(t, "BOX-1", e.Event.Location.FacilityID)
				require.Equal(t, "4", e.Event.Extensions["lane"])
			}
		}
	})
}

// Parcels of another business are not known, whatever a device names; bad input says what is
// allowed and takes nothing; a timeline that is full takes no more.
func TestEventsThatAreRefused(t *testing.T) {
	try(t, func(b *box) {
		b.create("1")
		before := len(b.timeline("PK-1"))
		many := make([]map[string]any, 51)
		for i := range many {
			many[i] = b.event(fmt.Sprint(i), "PK-1", "received")
		}
		for want, in := range map[string][]map[string]any{
			"events.1.status_code": {b.event("a", "PK-1", "received"), b.event("b", "PK-1", "lost in space")},
			"events.0.occurred_at": {b.event("a", "PK-1", "received", "occurred_at", time.Now().Add(time.Hour).Format(time.RFC3339))},
			"events.2.occurred_at": {b.event("a", "PK-1", "received"), b.event("b", "PK-1", "received"), b.event("c", "PK-1", "received", "occurred_at", "0001-01-01T00:00:00Z")},
			"events.1.occurred_at": {b.event("a", "PK-1", "received"), b.event("b", "PK-1", "received", "occurred_at", "1990-01-01T00:00:00Z")},
			"events.0.event_id":    {b.event("", "PK-1", "received")},
			"events.0.location":    {b.event("a", "PK-1", "received", "location", strings.Repeat("x", 101))},
			"events":               many,
		} {
			err := b.call("POST", "/events", "", map[string]any{"events": in}, &struct{}{})
			var e *cloud.Error
			require.ErrorAs(t, err, &e, want)
			require.Equal(t, "VALIDATION_FAILED", e.Code, want)
			require.Contains(t, e.Fields, want)
		}
		require.Len(t, b.timeline("PK-1"), before)
		require.NoError(t, b.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			s, err := v.ShipmentByNumber("PK-1")
			s.BusinessID++
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}}, err
		}))
		require.Equal(t, "TRACKING_NOT_FOUND", b.say(b.event("z", "PK-1", "received")).Rejected[0].Code)
	})
}

func TestAFullTimeline(t *testing.T) {
	try(t, func(b *box) {
		b.create("1")
		for n := len(b.timeline("PK-1")); n < 2000; n += 50 {
			var events []map[string]any
			for i := range min(50, 2000-n) {
				events = append(events, b.event(fmt.Sprint(n, "-", i), "PK-1", "in_transit"))
			}
			require.Empty(t, b.say(events...).Rejected)
			time.Sleep(time.Second)
		}
		out := b.say(b.event("more", "PK-1", "in_transit"))
		require.Equal(t, "OTEP_TIMELINE_FULL", out.Rejected[0].Code)
		require.Len(t, b.timeline("PK-1"), 2000)
	})
}
