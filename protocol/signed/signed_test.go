package signed

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

func testSigner(t testing.TB, seed byte) *Signer {
	t.Helper()
	s, err := NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)))
	require.NoError(t, err)
	return s
}

func TestEnvelopeOpensOnlyForItsPurposeAndKey(t *testing.T) {
	t.Parallel()
	s, other := testSigner(t, 1), testSigner(t, 2)
	keys := PinnedKeys([]wire.PinnedKey{s.Pinned()})
	in := wire.Time{DeviceCode: "FRONT-01", Nonce: []byte("nonce"), ServerTime: 42}
	env, err := s.Sign(ForTime, in)
	require.NoError(t, err)

	var out wire.Time
	require.NoError(t, keys.Open(ForTime, env, &out))
	require.Equal(t, in, out)

	for _, p := range []Purpose{ForCommand, ForConfig, ForCodes, ForQR} {
		require.ErrorIs(t, keys.Open(p, env, &out), ErrSignature)
	}
	foreign, err := other.Sign(ForTime, in)
	require.NoError(t, err)
	require.ErrorIs(t, keys.Open(ForTime, foreign, &out), ErrSignature)

	for i := range env {
		bad := bytes.Clone(env)
		bad[i] ^= 0x40
		require.Error(t, keys.Open(ForTime, bad, &out), "byte %d", i)
	}
}

// Ed25519 is deterministic, so the whole envelope is: these bytes may never change.
func TestEnvelopeGoldenBytes(t *testing.T) {
	t.Parallel()
	env, err := testSigner(t, 1).Sign(ForTime, wire.Time{DeviceCode: "A", Nonce: []byte{1}, ServerTime: 7})
	require.NoError(t, err)
	require.Equal(t, byte(0xd2), env[0], "COSE_Sign1 is tag 18")
	again, err := testSigner(t, 1).Sign(ForTime, wire.Time{DeviceCode: "A", Nonce: []byte{1}, ServerTime: 7})
	require.NoError(t, err)
	require.Equal(t, env, again)
}

func FuzzOpen(f *testing.F) {
	s := testSigner(f, 1)
	env, err := s.Sign(ForCommand, wire.Command{CommandID: "c", DeviceCode: "d", Kind: wire.CmdBeep})
	require.NoError(f, err)
	f.Add(env)
	f.Add([]byte{0xd2, 0x84, 0x40, 0xa0, 0x40, 0x40})
	keys := PinnedKeys([]wire.PinnedKey{s.Pinned()})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c wire.Command
		// Unprotected headers are outside the signature, so other bytes may carry the same message.
		if keys.Open(ForCommand, b, &c) == nil && c.CommandID != "c" {
			t.Fatalf("accepted a command nobody signed: %x", b)
		}
	})
}
