package device

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/protocol/wire"
)

func TestPlaceOfARecord(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	received, last := base.Add(time.Hour), base.Add(10*time.Minute)
	at := func(d time.Duration) int64 { return base.Add(d).UnixNano() }
	const sec = int64(time.Second)
	synced := wire.Sample{Boot: 3, Mono: 100 * sec, Wall: at(30 * time.Minute), Clock: wire.ClockSynced}
	f := func(name string, b wire.Batch, r wire.Record, last time.Time, want time.Time, approximate bool) {
		t.Helper()
		got, approx := place(&b, r, last, received)
		require.Equal(t, want, got, name)
		require.Equal(t, approximate, approx, name)
	}
	f("this boot, synchronised since", wire.Batch{Sent: synced}, wire.Record{Boot: 3, Mono: 90 * sec, At: at(-99 * time.Hour)}, last, base.Add(30*time.Minute-10*time.Second), false)
	f("an earlier boot that was synchronised", wire.Batch{Sent: synced, Boots: map[uint64]wire.BootSync{2: {Mono: 50 * sec, Wall: at(0)}}},
		wire.Record{Boot: 2, Mono: 40 * sec, At: at(time.Minute), Clock: wire.ClockCarried}, last, base.Add(-10*time.Second), false)
	f("an earlier boot without a sample, by its own synchronised clock", wire.Batch{Sent: synced}, wire.Record{Boot: 2, At: at(time.Minute), Clock: wire.ClockSynced}, last, base.Add(time.Minute), false)
	f("carried over", wire.Batch{Sent: synced}, wire.Record{Boot: 2, At: at(11 * time.Minute), Clock: wire.ClockCarried}, last, base.Add(11*time.Minute), true)
	f("this boot, not synchronised, carried over", wire.Batch{Sent: wire.Sample{Boot: 3, Clock: wire.ClockCarried, Wall: at(0)}}, wire.Record{Boot: 3, At: at(12 * time.Minute), Clock: wire.ClockCarried}, last, base.Add(12*time.Minute), true)
	f("carried over, and behind what was placed before", wire.Batch{Sent: synced}, wire.Record{Boot: 2, At: at(-400 * 24 * time.Hour), Clock: wire.ClockCarried}, last, last.Add(time.Millisecond), true)
	f("measurements carried over have no order with records", wire.Batch{Lane: wire.Telemetry, Sent: synced}, wire.Record{Boot: 2, At: at(time.Minute), Clock: wire.ClockCarried}, last, base.Add(time.Minute), true)
	f("never set", wire.Batch{Sent: wire.Sample{Boot: 3}}, wire.Record{Boot: 3, At: 5}, last, last.Add(time.Millisecond), true)
	f("never set, and nothing before it", wire.Batch{Sent: wire.Sample{Boot: 3}}, wire.Record{Boot: 3, At: 5}, time.Time{}, received, true)
	f("after receipt", wire.Batch{Sent: synced}, wire.Record{Boot: 3, Mono: 100*sec + 3600*sec}, last, received, false)
	f("a clock that runs ahead", wire.Batch{Sent: wire.Sample{Boot: 2}}, wire.Record{Boot: 2, At: at(48 * time.Hour), Clock: wire.ClockCarried}, last, received, true)
	f("a clock that ran ahead in an earlier boot", wire.Batch{Sent: synced}, wire.Record{Boot: 2, At: at(48 * time.Hour), Clock: wire.ClockCarried}, last, base.Add(30*time.Minute-100*time.Second), true)
	f("never set, right after a record that was placed at receipt", wire.Batch{Sent: wire.Sample{Boot: 3}}, wire.Record{Boot: 3}, received, received, true)
}

func TestNoRecordIsPlacedAfterItsReceipt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		received := time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "received")).UTC()
		last := time.Unix(0, rapid.Int64().Draw(t, "last"))
		boot := func(name string) uint64 { return rapid.Uint64Range(1, 3).Draw(t, name) }
		clock := func(name string) wire.Clock { return wire.Clock(rapid.IntRange(0, 3).Draw(t, name)) }
		b := wire.Batch{Sent: wire.Sample{Boot: boot("sent boot"), Mono: rapid.Int64().Draw(t, "m"), Wall: rapid.Int64().Draw(t, "w"), Clock: clock("c")},
			Boots: map[uint64]wire.BootSync{boot("synced"): {Mono: rapid.Int64().Draw(t, "bm"), Wall: rapid.Int64().Draw(t, "bw")}}}
		at, _ := place(&b, wire.Record{Boot: boot("boot"), Mono: rapid.Int64().Draw(t, "mono"), At: rapid.Int64().Draw(t, "at"), Clock: clock("rc")}, last, received)
		require.False(t, at.After(received))
	})
}

func TestDoorAndItemAsTheyAreShown(t *testing.T) {
	t.Parallel()
	require.Equal(t, "closed", doorStatus(wire.DoorLocked))
	require.Equal(t, "closed", doorStatus(wire.DoorSettling))
	require.Equal(t, "open", doorStatus(wire.DoorOpen))
	require.Equal(t, "unknown", doorStatus(wire.DoorUnknown), "never shown as locked")
	require.Equal(t, "unknown", doorStatus("of a newer agent"))
	require.Nil(t, occupied(wire.ItemUnknown))
	require.True(t, *occupied(wire.ItemPresent))
	require.False(t, *occupied(wire.ItemAbsent))
}
