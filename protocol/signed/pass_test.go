package signed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/protocol/wire"
)

func samplePass() wire.Pass {
	return wire.Pass{DeviceCode: "CAB-1", ID: bytes.Repeat([]byte{6}, wire.PassIDSize), Kind: wire.OpenDeposit, Doors: []uint{2}, NotBefore: 1_800_000_000_000_000_000,
		NotAfter: 1_800_000_000_000_000_000 + int64(8*time.Hour), DeliveryRef: "LD-1", Packages: map[uint][]string{2: {"PK-1"}}, CodeNumber: 7, Generation: 1}
}

func TestPassesAreReadBackAsAnyScannerSendsThem(t *testing.T) {
	t.Parallel()
	s := testSigner(t, 1)
	keys := PinnedKeys([]wire.PinnedKey{testSigner(t, 2).Pinned(), s.Pinned()})
	text, err := s.SignPass(samplePass())
	require.NoError(t, err)
	require.Regexp(t, `^PX:[A-Z2-7]+$`, text, "a symbol holds it in the alphanumeric mode")
	require.Less(t, len(text), 320)
	sum := sha256.Sum256([]byte(text))
	require.Equal(t, "7aa18628bbb9e679", hex.EncodeToString(sum[:8]), "Ed25519 is deterministic: published bytes never change")
	for _, sent := range []string{text, text + "\r\n", "]Q1" + text, strings.ToLower(text), "\ufeff " + text + " "} {
		require.True(t, IsPass(sent))
		got, err := keys.OpenPass(sent)
		require.NoError(t, err)
		require.Equal(t, samplePass(), got)
	}
	require.False(t, IsPass("PU:CAB-1:481516"))
}

func TestPassesThatAreNotTheCloudsAreNotTrusted(t *testing.T) {
	t.Parallel()
	s := testSigner(t, 1)
	keys := PinnedKeys([]wire.PinnedKey{s.Pinned()})
	foreign, err := testSigner(t, 2).SignPass(samplePass())
	require.NoError(t, err)
	command, err := s.Sign(ForCommand, samplePass())
	require.NoError(t, err)
	for name, text := range map[string]string{"another key": foreign, "another purpose": PassPrefix + passLetters.EncodeToString(command), "nothing": PassPrefix,
		"digits": PassPrefix + "0189", "long": PassPrefix + strings.Repeat("A", MaxPassText+1), "no prefix": "481516"} {
		_, err := keys.OpenPass(text)
		require.ErrorIs(t, err, ErrSignature, name)
		require.NotContains(t, err.Error(), text[min(len(text), 3):min(len(text), 12)]+"x")
	}
	text, err := s.SignPass(samplePass())
	require.NoError(t, err)
	for i := len(PassPrefix); i < len(text); i++ {
		letter := byte('A')
		if text[i] == letter {
			letter = 'B'
		}
		p, err := keys.OpenPass(text[:i] + string(letter) + text[i+1:])
		if err == nil { // letters of the last group have bits that stand for nothing
			require.Equal(t, samplePass(), p)
			require.Equal(t, len(text)-1, i)
		}
	}
	bad := samplePass()
	bad.NotAfter += 1
	_, err = s.SignPass(bad)
	require.ErrorIs(t, err, wire.ErrBad)
	envelope, err := s.Sign(ForQR, bad)
	require.NoError(t, err)
	_, err = keys.OpenPass(PassPrefix + passLetters.EncodeToString(envelope))
	require.ErrorIs(t, err, wire.ErrBad, "a trusted pass that breaks a limit")
	long := samplePass()
	long.Packages[2] = slicesRepeat(strings.Repeat("9", 64), wire.MaxPassPackages)
	_, err = s.SignPass(long)
	require.ErrorIs(t, err, wire.ErrBad)
}

func slicesRepeat(s string, n int) (out []string) {
	for range n {
		out = append(out, s)
	}
	return out
}

func TestEachPassComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s := testSigner(t, 1)
	keys := PinnedKeys([]wire.PinnedKey{s.Pinned()})
	rapid.Check(t, func(rt *rapid.T) {
		p := wire.Pass{DeviceCode: rapid.StringMatching(`[A-Z0-9-]{1,20}`).Draw(rt, "device"), ID: rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "id"), Kind: wire.OpenStaff,
			Doors: rapid.SliceOfNDistinct(rapid.UintRange(1, 500), 1, 10, rapid.ID[uint]).Draw(rt, "doors"), NotBefore: rapid.Int64Range(1, 1<<61).Draw(rt, "from")}
		p.NotAfter = p.NotBefore + rapid.Int64Range(1, int64(wire.MaxStaffPass)).Draw(rt, "for")
		text, err := s.SignPass(p)
		require.NoError(t, err)
		got, err := keys.OpenPass(text)
		require.NoError(t, err)
		require.Equal(t, p, got)
	})
}

func FuzzOpenPass(f *testing.F) {
	s := testSigner(f, 1)
	keys := PinnedKeys([]wire.PinnedKey{s.Pinned()})
	text, err := s.SignPass(samplePass())
	require.NoError(f, err)
	for _, seed := range []string{text, "]Q1" + text, strings.ToLower(text), PassPrefix, text[:len(text)-8], "PU:CAB-1:481516"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := keys.OpenPass(text)
		if err == nil {
			require.NoError(t, p.Check())
			require.Equal(t, samplePass(), p, "nothing else was ever signed")
		}
	})
}
