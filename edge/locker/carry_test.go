package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// A cabinet restarted with its clock set back by twenty minutes: the session's
// end lay by that clock twenty minutes further away, and the session ran three
// times as long as it may.
func TestClockSetBackDoesNotProlongASession(t *testing.T) {
	t.Parallel()
	const minute = int64(time.Minute)
	last := Instant{Boot: 1, Mono: 1 * minute, Wall: 100 * minute, Clock: wire.ClockCarried}
	ends := Instant{Boot: 1, Mono: 11 * minute, Wall: 110 * minute, Clock: wire.ClockCarried}
	f := func(wall int64, clock wire.Clock, left int64, unsure bool) {
		t.Helper()
		d := newStep(&draft{now: Now{Boot: 2, Mono: 5, Offset: wall - 5, Clock: clock}})
		got, u := d.carry(ends, last)
		require.Equal(t, left, got.Mono-5)
		require.Equal(t, unsure, u)
	}
	f(104*minute, wire.ClockCarried, 6*minute, false)
	f(80*minute, wire.ClockCarried, 10*minute, false)
	f(200*minute, wire.ClockCarried, -90*minute, false)
	f(0, wire.ClockUnset, 10*minute, true)
}

// A code was rotated while the doors were open; the settlement put the former
// one, which had come with the command, back on the cabinet's list.
func TestSettlementDoesNotReviveACodeThatWasRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	former := wire.CodeEntry{Number: 7, Op: wire.CodeSet, Kind: wire.CodePickup, DeliveryRef: "LD-1"}
	number := func(held uint64, list ...wire.CodeEntry) (uint64, map[uint64]wire.CodeEntry) {
		s := New(wire.Config{})
		s.Meta.CodeList = held
		for _, e := range list {
			s.Codes[e.Number] = e
		}
		d := newStep(&draft{State: s, touched: map[string]bool{}})
		return d.pickupCode(Opening{DeliveryRef: "LD-1", Code: &former}), d.Codes
	}
	n, codes := number(6)
	require.EqualValues(t, 7, n)
	require.Contains(t, codes, uint64(7), "ahead of the list: it joins")
	n, _ = number(7, former)
	require.EqualValues(t, 7, n)
	renewed := former
	renewed.Number = 9
	n, codes = number(9, renewed)
	require.EqualValues(t, 9, n)
	require.NotContains(t, codes, uint64(7))
	n, codes = number(8)
	require.Zero(t, n)
	require.Empty(t, codes)
}
