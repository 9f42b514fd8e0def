package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// sign sends a cabinet what is signed with a key, as one who holds it and the broker would.
func (w *world) sign(seed []byte, code string, door uint) {
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(seed))
	require.NoError(w.t, err)
	now := time.Now()
	env, err := s.Sign(signed.ForCommand, wire.Command{CommandID: fmt.Sprintf("stolen-%d", now.UnixNano()), DeviceCode: code, IssuedAt: now.UnixNano(), ExpiresAt: now.Add(time.Minute).UnixNano(), Kind: wire.CmdOpenDoors,
		Body: wire.MustEncode(wire.OpenDoors{OpeningID: fmt.Sprintf("op_%d", now.UnixNano()), Kind: wire.OpenStaff, Doors: []uint{door}, SessionSeconds: 60})})
	require.NoError(w.t, err)
	w.tap.hand(message{code: code, leaf: topic.Down, payload: wire.EncodeDown(wire.DownCommand, env)}, true)
	time.Sleep(5 * time.Second)
}

// signConfig sends a cabinet a configuration with keys that are signed with one of them.
func (w *world) signConfig(seed []byte, code string, version uint64, layout []wire.LayoutDoor) {
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(seed))
	require.NoError(w.t, err)
	env, err := s.Sign(signed.ForConfig, wire.Config{DeviceCode: code, Version: version, Layout: layout, Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Keys: []wire.PinnedKey{s.Pinned()}})
	require.NoError(w.t, err)
	w.tap.hand(message{code: code, leaf: topic.Config, payload: env}, true)
	time.Sleep(5 * time.Second)
}

func (w *world) holders() (codes []string) {
	list, err := server.ListKeyHolders(context.Background(), w.cloud)
	require.NoError(w.t, err)
	for _, h := range list {
		codes = append(codes, h.Code)
	}
	return codes
}

// rotate takes the next key into use, with a restart of the cloud.
func (w *world) rotate() {
	keys := w.cloud.Keys.Rotate(time.Now())
	w.stopCloud()
	require.NoError(w.t, server.ReplaceKeys(filepath.Join(w.dir, "cloud", "keys.json"), keys))
	time.Sleep(time.Second)
	w.startCloud()
}

// The signing key is rotated twice without a visit: a cabinet that was away for a whole
// rotation follows, and is named until it has. From then on the former key opens nothing, and
// neither a configuration by it nor one that is withheld brings it back.
func TestSigningKeyIsRotatedWithoutAVisit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2)
		defer w.close()
		here, away := w.cabinets[0], w.cabinets[1]
		w.ready(here)
		w.ready(away)
		require.Empty(t, w.holders())
		former := w.cloud.Keys.Signing
		pulses := func(c *cabinet, seed []byte, door uint) int {
			before := len(c.coils())
			w.sign(seed, c.code, door)
			return len(c.coils()) - before
		}
		require.Positive(t, pulses(here, former, 4), "who holds the key that is in use opens doors: the attack is one")

		away.cut.Store(true)
		away.drop()
		w.rotate()
		w.ready(here)
		require.ElementsMatch(t, []string{"CAB-1", "CAB-2"}, w.holders(), "the keys are not published")
		w.deposited(here, "R-1") // both keys are good meanwhile
		n, err := server.PublishKeys(context.Background(), w.cloud)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		again, err := server.PublishKeys(context.Background(), w.cloud)
		require.NoError(t, err)
		require.Zero(t, again)
		w.awaits("the keys are taken", 5*time.Minute, func() bool { return len(w.holders()) == 1 })
		require.Equal(t, []string{"CAB-2"}, w.holders(), "the next rotation would lose it")
		time.Sleep(11 * time.Minute) // until a time answer came

		forged := here.forged()
		require.Zero(t, pulses(here, former, 3))
		require.Greater(t, here.forged(), forged)
		held := here.agent.Loop().State().Config
		w.signConfig(former, here.code, held.Version+10, held.Layout)
		require.Equal(t, held.Version, here.agent.Loop().State().Config.Version)
		here.restart(time.Second)
		w.ready(here)
		require.Zero(t, pulses(here, former, 3))

		away.cut.Store(false)
		w.ready(away)
		w.awaits("it follows", 5*time.Minute, func() bool { return len(w.holders()) == 0 })
		time.Sleep(11 * time.Minute)
		require.Zero(t, pulses(away, former, 3))
		require.Positive(t, pulses(away, w.cloud.Keys.Signing, 2))

		second := w.cloud.Keys.Signing
		w.rotate()
		w.ready(here)
		w.ready(away)
		_, err = server.PublishKeys(context.Background(), w.cloud)
		require.NoError(t, err)
		w.awaits("both follow", 5*time.Minute, func() bool { return len(w.holders()) == 0 })
		time.Sleep(11 * time.Minute)
		for _, c := range w.cabinets {
			require.Zero(t, pulses(c, former, 3)+pulses(c, second, 3))
		}
	})
}

// A cabinet that enrols after a rotation, with a configuration of before it, trusts the keys of
// its enrolment and no others.
func TestEnrolmentBringsNoFormerKey(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		former := w.cloud.Keys.Signing
		c.halt()
		w.rotate()
		ctx, d := context.Background(), &w.box.Devices[0]
		_, err := w.cloud.Lockers.ReplaceHardware(ctx, w.staff, locker.ReplaceInput{Device: d.DeviceID, Reason: "broken"})
		require.NoError(t, err)
		made, err := w.cloud.Setup.RenewToken(ctx, w.staff, setup.DeviceInput{ID: d.DeviceID})
		require.NoError(t, err)
		own := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
		got, err := w.cloud.Enrol(ctx, d.DeviceCode, made.Enrolment.Token, own.Public().(ed25519.PublicKey))
		require.NoError(t, err)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		d.Enrolled = device.Enrolled{}
		require.NoError(t, json.Unmarshal(raw, &d.Enrolled))
		d.Enrolled.DeviceKey = own.Seed()
		c.start()
		w.ready(c)
		time.Sleep(11 * time.Minute)
		require.Empty(t, w.holders())
		before := len(c.coils())
		w.sign(former, c.code, 3)
		require.Len(t, c.coils(), before)
	})
}
