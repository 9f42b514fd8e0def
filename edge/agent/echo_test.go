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

// The cloud's challenge is repeated in every status from then on, when it came in
// the answer to the newest nonce: one that answers another status, which a broker
// may have recorded, would make that one pass for new.
func TestAStatusRepeatsTheChallengeOfItsOwnTimeAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		answer := func(challenge []byte, named, asked string) []byte {
			t.Helper()
			env, err := b.old.Sign(signed.ForTime, wire.Time{DeviceCode: "CAB-1", Nonce: []byte(named), ServerTime: time.Now().UnixNano(), Challenge: challenge})
			require.NoError(t, err)
			(*handler)(b.agent).Time(uplink.TimeAnswer{Envelope: env, Nonce: []byte(asked), SentAt: time.Now(), ReceivedAt: time.Now()})
			return b.agent.status().Echo
		}
		require.Nil(t, answer(nil, "n1", "n1"))
		require.Nil(t, answer([]byte("of another"), "recorded", "n2"))
		require.Equal(t, []byte("one"), answer([]byte("one"), "n2", "n2"))
		require.Equal(t, []byte("one"), answer(nil, "n3", "n3"), "it stands")
		require.Equal(t, []byte("one"), answer([]byte("again"), "n3", "n3"), "once an answer")
		require.Equal(t, []byte("one"), answer(make([]byte, maxChallenge+1), "n4", "n4"))
		require.Equal(t, []byte("two"), answer([]byte("two"), "n5", "n5"))
		b.halt()
		b.start()
		require.Nil(t, b.agent.status().Echo)
	})
}
