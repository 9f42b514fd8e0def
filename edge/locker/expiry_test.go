package locker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A code opens at both edges of its time and not a nanosecond beyond; the clock's
// error is taken off, so a code is not refused before its time has certainly run
// out, and a staff code does not open before its time has certainly begun.
func TestCodesOpenWithinTheirTimeAlone(t *testing.T) {
	t.Parallel()
	const err = 5 * milli
	at := 1_800_000_000*second + second // wall clock of newWorld
	for name, c := range map[string]struct {
		clock  wire.Clock
		errMS  uint32
		floor  int64
		before int64
		after  int64
		want   string
	}{
		"no error, at the end":              {wire.ClockSynced, 0, 0, 0, at, wire.CodeOK},
		"no error, past the end":            {wire.ClockSynced, 0, 0, 0, at - 1, wire.CodeExpired},
		"with an error, maybe past the end": {wire.ClockSynced, 5, 0, 0, at - err, wire.CodeOK},
		"with an error, past the end":       {wire.ClockSynced, 5, 0, 0, at - err - 1, wire.CodeExpired},
		"no error, at the beginning":        {wire.ClockSynced, 0, 0, at, 0, wire.CodeOK},
		"no error, before the beginning":    {wire.ClockSynced, 0, 0, at + 1, 0, wire.CodeNotActive},
		"with an error, maybe begun":        {wire.ClockSynced, 5, 0, at, 0, wire.CodeNotActive},
		"with an error, begun":              {wire.ClockSynced, 5, 0, at - err, 0, wire.CodeOK},

		"a carried clock is no proof":                       {wire.ClockCarried, 0, 0, 0, at - hour, wire.CodeOK},
		"nor is one that was never set":                     {wire.ClockUnset, 0, 0, 0, at - hour, wire.CodeOK},
		"the floor at the end":                              {wire.ClockCarried, 0, at - hour, 0, at - hour, wire.CodeOK},
		"the floor past the end":                            {wire.ClockCarried, 0, at - hour + 1, 0, at - hour, wire.CodeExpired},
		"the floor past the end, no clock":                  {wire.ClockUnset, 0, at - hour + 1, 0, at - hour, wire.CodeExpired},
		"a synchronised clock corrects a floor":             {wire.ClockSynced, 0, at + hour, 0, at, wire.CodeOK},
		"what the list names has begun, without a clock":    {wire.ClockUnset, 0, at - hour, at + hour, 0, wire.CodeOK},
		"what the list names has begun, by a carried clock": {wire.ClockCarried, 0, at - hour, at + hour, 0, wire.CodeOK},
	} {
		for _, kind := range []string{wire.CodeStaff, wire.CodeDelivery} {
			w := newWorld(t, 1)
			w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: kind, Verifier: verifier(8), DeliveryRef: "LD-1", Doors: []uint{1}, NotBefore: c.before, NotAfter: c.after})
			w.now.Clock, w.now.ErrMS, w.now.Floor = c.clock, c.errMS, c.floor
			require.Equal(t, at, w.now.Wall(w.now.Mono))
			a := w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Doors: []edge.DoorNumber{1}}).Answer
			require.Equal(t, c.want, a.Outcome, "%s: %s", kind, name)
		}
	}
}
