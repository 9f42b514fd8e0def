package uplink

import (
	"bytes"
	"crypto/ed25519"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// keyed gives the device a key and the cloud its own; it returns the device's
// public half, the cloud's signer, and how many acknowledgements were forged.
func keyed(t *testing.T, r *rig) (public []byte, cloud *signed.Signer, forged *atomic.Int32) {
	seed, public := signed.NewSeed()
	key, err := signed.NewDeviceKey("CAB-1", seed)
	require.NoError(t, err)
	cloud, err = signed.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.NoError(t, err)
	keys := signed.PinnedKeys([]wire.PinnedKey{cloud.Pinned()})
	forged = &atomic.Int32{}
	r.u.cfg.Key = key
	r.u.cfg.Receipt = func(envelope []byte) (a wire.Ack, err error) {
		return a, keys.Open(signed.ForReceipt, envelope, &a)
	}
	r.u.cfg.Forged = func(error) { forged.Add(1) }
	r.c.receipt = func(a wire.Ack) []byte {
		b, err := cloud.Sign(signed.ForReceipt, a)
		require.NoError(t, err)
		return b
	}
	return public, cloud, forged
}

func TestADeviceWithAKeySignsEverythingItSays(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		public, _, _ := keyed(t, r)
		statuses, batches := 0, 0
		r.c.publish = func(p *packets.PublishPacket) {
			if st, err := wire.DecodeStatus(p.Payload); err == nil {
				statuses++
				require.True(t, signed.VerifyStatus(public, "CAB-1", p.Payload, st), st.State)
				return
			}
			b, err := wire.DecodeBatch(p.Payload)
			require.NoError(t, err)
			batches++
			require.True(t, signed.VerifyBatch(public, "CAB-1", p.Payload), "lane %d", b.Lane)
		}
		r.add(wire.KindScan, "s", 1, 3, 10)
		r.add(wire.KindOpeningStarted, "o", 1, 2, 10)
		r.run()
		r.until(time.Second, func() bool { return r.s.Backlog() == [2]uint64{} })
		will := r.c.newest().will.WillMessage
		st, err := wire.DecodeStatus(will)
		require.NoError(t, err)
		require.True(t, signed.VerifyStatus(public, "CAB-1", will, st), "the last will")
		r.end()
		require.GreaterOrEqual(t, statuses, 2, "the last one on a clean stop included")
		require.Equal(t, 2, batches)
	})
}

// A broker acknowledges records that the cloud never saw: the
// cabinet would drop them for good.
func TestADeviceWithAKeyTakesNoPlainAcknowledgement(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, _, forged := keyed(t, r)
		genuine := r.c.receipt
		r.add(wire.KindOpeningStarted, "o", 1, 2, 10)
		for name, seal := range map[string]func(a wire.Ack) []byte{
			"plain": nil,
			"of another purpose": func(a wire.Ack) []byte {
				s, err := signed.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)))
				require.NoError(t, err)
				b, err := s.Sign(signed.ForCommand, a)
				require.NoError(t, err)
				return b
			},
			"of another key": func(a wire.Ack) []byte {
				s, err := signed.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)))
				require.NoError(t, err)
				b, err := s.Sign(signed.ForReceipt, a)
				require.NoError(t, err)
				return b
			},
		} {
			r.c.mu.Lock()
			r.c.receipt = seal
			r.c.mu.Unlock()
			if r.stop == nil {
				r.run()
			}
			before, counted := forged.Load(), r.u.Counters().Forged
			time.Sleep(15 * time.Second)
			require.NotZero(t, r.s.Backlog()[0], name)
			require.Greater(t, forged.Load(), before, name)
			require.Greater(t, r.u.Counters().Forged, counted, name)
		}
		r.c.mu.Lock()
		r.c.receipt = genuine
		r.c.mu.Unlock()
		r.until(time.Minute, func() bool { return r.s.Backlog() == [2]uint64{} })
	})
}

// (boot, count) of statuses only rises, over sessions as well, and the last will
// of a session lies between it and the next: a status that was kept and sent again
// is found to be old.
func TestStatusesAreNumbered(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		last := uint64(0)
		check := func() {
			t.Helper()
			for _, e := range r.c.seen("status") {
				require.Greater(t, e.status.Count, last)
				last = e.status.Count
			}
			r.c.forget()
		}
		r.run()
		time.Sleep(25 * time.Minute)
		require.EqualValues(t, 1, r.c.seen("status")[0].status.Count)
		for range 3 {
			check()
			will, err := wire.DecodeStatus(r.c.newest().will.WillMessage)
			require.NoError(t, err)
			require.Greater(t, will.Count, last)
			last = will.Count
			r.c.cut()
			time.Sleep(25 * time.Minute)
		}
		check()
	})
}

func TestANonceGoesOutWhenAWholeListIsNeeded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.run()
		time.Sleep(time.Minute)
		first := r.c.seen("status")[0].status.Nonce
		r.u.AskList()
		r.u.AskList()
		time.Sleep(time.Second)
		seen := r.c.seen("status")
		require.Len(t, seen, 2)
		require.Len(t, seen[1].status.Nonce, 16)
		r.u.AskList()
		time.Sleep(2 * time.Second)
		require.Len(t, r.c.seen("status"), 2, "not more often than every 5 s")
		time.Sleep(3 * time.Second)
		seen = r.c.seen("status")
		require.Len(t, seen, 3)
		r.c.newest().down(wire.DownCodes, wire.MustEncode("list"))
		time.Sleep(time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Len(t, r.list, 1)
		require.Equal(t, seen[2].status.Nonce, r.list[0].Nonce)
		require.Equal(t, [][]byte{seen[1].status.Nonce, first}, r.list[0].Earlier)
	})
}

// A nonce too many would make a late answer to the one before useless, and the
// cloud sends a whole list again by itself.
func TestALostMemoryAsksWithANonceEveryMinute(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.lost.Store(true)
		r.run()
		for range 20 { // a busy cabinet
			time.Sleep(10 * time.Second)
			r.u.StatusChanged()
		}
		time.Sleep(time.Second)
		nonces := 0
		for _, e := range r.c.seen("status") {
			require.True(t, e.status.Lost)
			if e.status.Nonce != nil {
				nonces++
			}
		}
		require.Equal(t, 4, nonces, "on connect, and after one, two and three minutes")
		r.lost.Store(false)
		r.c.forget()
		time.Sleep(2 * time.Minute)
		r.u.StatusChanged()
		time.Sleep(time.Second)
		require.Nil(t, r.c.seen("status")[0].status.Nonce)
	})
}
