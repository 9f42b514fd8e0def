package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// sync answers a question about the time with the bench's own clock.
func (b *bench) sync(nonce string) {
	b.t.Helper()
	env, err := b.old.Sign(signed.ForTime, wire.Time{DeviceCode: "CAB-1", Nonce: []byte(nonce), ServerTime: time.Now().UnixNano()})
	require.NoError(b.t, err)
	(*handler)(b.agent).Time(uplink.TimeAnswer{Envelope: env, Nonce: []byte(nonce), SentAt: time.Now(), ReceivedAt: time.Now()})
	synctest.Wait()
}

// The power goes and comes back without a network; the machine's clock says 1990.
// A code that had run out before works again unless the cabinet remembers how late
// it was.
func TestWhatHasRunOutStaysSoAfterAStartWithoutANetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.sync("n1")
		time.Sleep(5 * time.Hour)
		last := time.Now().UnixNano()
		b.halt()
		time.Sleep(48 * time.Hour)
		b.system = func() time.Time { return time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC) }
		b.start()
		floor := b.agent.Now().Floor
		require.LessOrEqual(t, floor, last)
		require.Greater(t, floor, last-int64(2*time.Minute), "kept every minute, less the clock's error")
		time.Sleep(time.Hour)
		require.InDelta(t, floor+int64(time.Hour), b.agent.Now().Floor, float64(int64(time.Second)), "time goes on")
		require.LessOrEqual(t, b.agent.Now().Floor, floor+int64(time.Hour), "by no more than has certainly passed")
		require.Equal(t, wire.ClockUnset, b.agent.Now().Clock)
		b.halt()
		b.system = func() time.Time { return time.Now().Add(1000 * time.Hour) }
		b.start()
		require.Equal(t, wire.ClockCarried, b.agent.Now().Clock)
		again := b.agent.Now().Floor
		require.Greater(t, again, floor+int64(58*time.Minute), "the hour without a network counts")
		require.LessOrEqual(t, again, last+int64(time.Hour), "a later clock of the machine is no proof")
	})
}
