package agent

import (
	"crypto/ed25519"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

func testAgent(t *testing.T) (*Agent, *signed.Signer) {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.NoError(t, err)
	a, err := New(Config{Dir: filepath.Join(t.TempDir(), "agent"), Secrets: access.Secrets{DeviceCode: "CAB-1", DeviceSecret: "x", CodeSalt: make([]byte, 16), CodeKey: make([]byte, 32),
		Keys: []wire.PinnedKey{s.Pinned()}, Brokers: []string{"tcp://cloud:1883"}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a, s
}

// Only the signed answer to a fresh nonce sets the clock; its bound is half the
// round trip. The same answer once more, one to an older question, and one that
// was held up while the clock was better, change nothing.
func TestOnlyAFreshTimeAnswerSetsTheClock(t *testing.T) {
	t.Parallel()
	a, s := testAgent(t)
	base := time.Now()
	// answer arrives after seconds of local time for a question of before that.
	answer := func(nonce, sealed string, server time.Duration, asked, came time.Duration) {
		env, err := s.Sign(signed.ForTime, wire.Time{DeviceCode: "CAB-1", Nonce: []byte(sealed), ServerTime: int64(server)})
		require.NoError(t, err)
		(*handler)(a).Time(uplink.TimeAnswer{Envelope: env, Nonce: []byte(nonce), SentAt: base.Add(asked), ReceivedAt: base.Add(came)})
	}
	wall := func(at time.Duration) (wire.Sample, time.Duration) {
		x := a.clock.Sample(base.Add(at))
		return x, time.Duration(x.Wall)
	}
	const h, sec = time.Hour, time.Second
	answer("n1", "n0", 900*h, 0, sec)
	answer("", "", 900*h, 0, sec)
	x, _ := wall(sec)
	require.NotEqual(t, wire.ClockSynced, x.Clock, "an answer to another question")

	answer("n1", "n1", 100*h, 0, 12*sec)
	x, now := wall(6 * sec)
	require.Equal(t, wire.ClockSynced, x.Clock)
	require.Equal(t, 100*h, now, "true in the middle of the round trip")
	require.GreaterOrEqual(t, x.ErrMS, uint32(6000), "which is the bound: no command is obeyed")

	answer("n2", "n2", 200*h, 20*sec, 20*sec+100*time.Millisecond)
	_, now = wall(20*sec + 50*time.Millisecond)
	require.Equal(t, 200*h, now, "a better one")
	answer("n2", "n2", 200*h, 20*sec, 600*sec)
	answer("n3", "n3", 300*h, 700*sec, 720*sec)
	x, now = wall(720 * sec)
	require.InDelta(t, float64(200*h+700*sec), float64(now), float64(sec), "replayed, or held up")
	require.Less(t, x.ErrMS, uint32(1000))
	require.Zero(t, a.forged.total.Load())
}

func TestConfigurationCannotCutACabinetOff(t *testing.T) {
	t.Parallel()
	got := brokers([]string{"ssl://new:8883"}, []string{"tcp://cloud:1883", "ssl://new:8883"})
	require.Equal(t, []string{"ssl://new:8883", "tcp://cloud:1883"}, got)
}
