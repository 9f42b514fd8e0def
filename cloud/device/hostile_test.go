package device_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// Text with NUL or without UTF-8 in any string of any record, in statuses and in
// what a decoder quotes of a batch that it refuses: PostgreSQL takes no such text,
// and one of them would hold its lane up for ever.
func TestTextThatADatabaseRefusesHoldsNothingUp(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		hostileText(t, devicetest.New(t, nil))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		hostileText(t, devicetest.NewOn(t, storetest.MigratedPostgresURL(t), nil))
	})
}

func hostileText(t *testing.T, w *devicetest.World) {
	defer w.Stop()
	d := w.Connect("CAB-1", nil)
	d.Greet(func(s *wire.Status) {
		s.AgentVersion, s.Boards = "1.0\x00", map[string]string{"A\x00": "\x00"}
		s.Doors = []wire.DoorStatus{{Door: 1, State: "\x00", OpeningID: "op\x00"}}
		s.Exceptions = []wire.Exception{{ID: "\x00", Type: "\x00"}}
	})
	create(w, "R-1", "CAB-1", "PK-1")
	o := startOpening(w, d, "R-1")
	const x = "\x00\xffx\x00"
	for kind, b := range map[wire.Kind]any{
		wire.KindOpeningStarted:  wire.OpeningStarted{OpeningID: "op" + x, Kind: x, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: x},
		wire.KindDoorOpened:      wire.DoorOpened{OpeningID: x, Door: 1},
		wire.KindDoorClosed:      wire.DoorClosed{OpeningID: x, Door: 1},
		wire.KindOpeningEnded:    wire.OpeningEnded{OpeningID: "op" + x, Reason: x},
		wire.KindPickupCompleted: wire.PickupCompleted{DeliveryRef: x, OpeningID: x, Doors: []uint{1}, How: x},
		wire.KindCommandOutcome:  wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomePartial, Doors: map[uint]string{1: x}, Reason: x},
		wire.KindExceptionOpened: wire.Exception{ID: x, Type: wire.ExDoorLeftOpen, Severity: x, Door: 1, Evidence: x},
		wire.KindExceptionClosed: wire.Exception{ID: x, Type: wire.ExDoorLeftOpen, Severity: x, Door: 1, Evidence: x},
		wire.KindTrackingEvent:   wire.TrackingEvent{Subject: "PK-1", StatusCode: "in_transit", Location: x, Extensions: map[string]string{"\x00": x, "\uFFFD": x}},
		wire.KindScan:            wire.Scan{Raw: []byte(x), Symbology: x, Identifiers: map[string]string{x: x}},
		wire.KindTelemetry:       wire.Measurement{Type: x, Unit: x},
		wire.KindHealth:          wire.Health{Versions: map[string]string{x: x}},
		wire.KindCodeAttempt:     wire.CodeAttempt{Outcome: x, Input: x},
		wire.KindConfigApplied:   wire.ConfigApplied{Version: 1, Result: x},
		wire.KindGap:             wire.Gap{Epoch: d.Epoch, Lane: 1, First: 90, Last: 99, Reason: x},
		wire.KindRemoval:         wire.Removal{ID: x, DeliveryRef: x, OpeningID: x, Door: 1, Outcome: wire.RemovalTaken, Reason: "relay"},
		wire.KindTamper:          wire.Tamper{What: x, Door: 1},

		wire.KindCompartmentBlocked: wire.CompartmentBlocked{BlockID: x, Door: 1, Reason: x, OpeningID: x, Who: x},

		40: wire.Tamper{What: x},
	} {
		d.Tell(kind, b)
	}
	// Two ids that are one once they can be stored.
	d.Send(0, d.Record(wire.KindExceptionOpened, wire.Exception{ID: "e\x00", Type: wire.ExDoorLeftOpen, Door: 1}),
		d.Record(wire.KindExceptionOpened, wire.Exception{ID: "e\uFFFD", Type: wire.ExDoorLeftOpen, Door: 1}))
	require.Equal(t, d.Next[0], d.Ack().Next)
	// The decoder names the key that came twice.
	twice := append([]byte{0xa2}, 0x62, 'k', 0, 0x01, 0x62, 'k', 0, 0x01)
	d.Up(twice)
	require.Equal(t, wire.RefusedBadBatch, d.Ack().Refused)
	d.Status(func(s *wire.Status) { s.State = x })
	d.Tell(wire.KindTamper, wire.Tamper{What: "sound"})
	require.NotContains(t, d.Faults()[cloud.DevBadBatch].Detail, "\x00")

	// What could be kept of it was kept, and the journal has it as it came.
	timeline, err := w.Store.FindTimeline(t.Context(), "PK-1", nil)
	events := timeline.Events
	require.NoError(t, err)
	found := false
	for _, e := range events {
		found = found || e.Event.StatusCode == "in_transit"
	}
	require.False(t, found, "two keys of its extensions became one: a bad body")
	d.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-1", StatusCode: "in_transit", Location: "dock\x00", Extensions: map[string]string{"scan\x00": x}})
	timeline, err = w.Store.FindTimeline(t.Context(), "PK-1", nil)
	events = timeline.Events
	require.NoError(t, err)
	i := slices.IndexFunc(events, func(e cloud.TimelineEvent) bool { return e.Event.StatusCode == "in_transit" })
	require.GreaterOrEqual(t, i, 0)
	last := events[i].Event
	require.Equal(t, "dock\uFFFD", last.Location.Name)
	require.Contains(t, last.Extensions, "scan\uFFFD")
	rows, err := w.Store.JournalAfter(t.Context(), 0, 1000)
	require.NoError(t, err)
	require.Contains(t, string(rows[len(rows)-1].Bytes), "dock\x00")
}

// Numbers beyond what a database can hold: read back as a negative one, a device's
// row could not be read any more.
func TestNumbersThatADatabaseCannotHoldHoldNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		const huge = 1<<64 - 1
		d.Status(func(s *wire.Status) { s.Ends[1].Last = huge })
		d.Status(func(s *wire.Status) { s.CodeList = huge })
		d.Status(func(s *wire.Status) { s.ConfigVersion = huge })
		d.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: huge, Result: "ok"})
		d.Tell(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 1, First: 5, Last: huge, Reason: wire.GapEvicted})
		d.Tell(wire.KindGap, wire.Gap{Epoch: d.Epoch, Lane: 1, First: huge, Reason: wire.GapEvicted})
		d.Status(nil)
		require.EqualValues(t, 5, d.Tell(wire.KindTamper, wire.Tamper{What: "x"}).Next)
		require.EqualValues(t, 6, d.Faults()[cloud.DevBadBatch].Count)
	})
}

// A device that sends garbage in a loop, under ever new connections, fills
// neither the disk nor a table; the exception counts all of it.
func TestGarbageInALoopIsCountedAndHardlyKept(t *testing.T) {
	ring.SkipUnlessCheck(t, "a few of the same")
	if testing.Short() {
		t.Skip("one device says five hundred things in turn, which takes the race detector minutes")
	}
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		kept := func() int {
			rows, err := w.Store.ListAsides(t.Context(), d.ID, 0, 10_000)
			require.NoError(t, err)
			return len(rows)
		}
		const tries = 300
		for n := range tries {
			if n%50 == 49 {
				d = w.Connect("CAB-1", d.Memory)
				d.Greet(nil)
			}
			d.Up([]byte{0xff, byte(n)})
			require.Equal(t, wire.RefusedBadBatch, d.Ack().Refused)
		}
		require.EqualValues(t, tries, d.Faults()[cloud.DevBadBatch].Count)
		require.Equal(t, 20, kept())
		time.Sleep(5 * time.Minute)
		for range 10 {
			d.Up([]byte{0xff})
			require.Equal(t, wire.RefusedBadBatch, d.Ack().Refused)
		}
		require.Equal(t, 25, kept(), "one a minute after that")
		for range 200 {
			time.Sleep(time.Minute)
			d.Up([]byte{0xff})
			d.Ack()
		}
		require.Equal(t, cloud.MaxAside, kept())
		synctest.Wait()
	})
}
