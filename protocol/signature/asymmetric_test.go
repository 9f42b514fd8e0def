package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysAsText(t *testing.T) {
	t.Parallel()
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	whole := ed25519.NewKeyFromSeed(seed)
	text := func(b []byte) string { return PrivatePrefix + base64.StdEncoding.EncodeToString(b) }
	for _, b := range [][]byte{seed, whole} {
		k, err := ParsePrivateKey(text(b))
		require.NoError(t, err)
		require.Equal(t, whole, k)
	}
	public := PublicKeyText(whole)
	require.Equal(t, "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=", public)
	got, err := ParsePublicKey(public)
	require.NoError(t, err)
	require.Equal(t, whole.Public(), got)

	mixed := append(append([]byte{}, seed...), make([]byte, 32)...)
	for _, bad := range []string{"", text(nil), text(seed[:31]), text(mixed), "whsk_!", "whsec_" + base64.StdEncoding.EncodeToString(seed), public} {
		_, err := ParsePrivateKey(bad)
		require.Error(t, err, bad)
	}
	for _, bad := range []string{"", "whpk_", "whpk_!", text(seed), "whpk_" + base64.StdEncoding.EncodeToString(whole)} {
		_, err := ParsePublicKey(bad)
		require.Error(t, err, bad)
	}
}

// A public key lets in what its private part signed, and nothing that is
// signed with the public key's text as a secret.
func TestVerifyWithAPublicKey(t *testing.T) {
	t.Parallel()
	_, k, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	public := PublicKeyText(k)
	m := all([]byte(body))
	_, err = Verify(get(m), []byte(body), at, public)
	require.ErrorIs(t, err, ErrMismatch)
	m[HeaderStandard] += " " + StandardAsymmetric(k, "OCR-120045", at, []byte(body))
	scheme, err := Verify(get(m), []byte(body), at, public)
	require.NoError(t, err)
	require.Equal(t, HeaderStandard, scheme)
	scheme, err = Verify(get(m), []byte(body), at, secret)
	require.NoError(t, err)
	require.Equal(t, HeaderStandard, scheme)

	forged := map[string]string{HeaderTimestamp: unix(at), HeaderV2: V2(at, []byte(body), []byte(public)), HeaderLegacy: Legacy([]byte(public), []byte(body))}
	_, err = Verify(get(forged), []byte(body), at, public)
	require.Error(t, err)
}
