package signature

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	secret   = "0123456789abcdef0123456789abcdef"
	next     = "fedcba9876543210fedcba9876543210"
	delivery = "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e"
	body     = `{"event_id":"OCR-120045","event":"order.created","test":true}`
)

var at = time.Unix(1795216320, 999)

func TestVectors(t *testing.T) {
	t.Parallel()
	f := func(want, got string) { t.Helper(); require.Equal(t, want, got) }
	b := []byte(body)
	f("07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d", Legacy([]byte(secret), b))
	f("14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd", V2(at, b, []byte(secret)))
	f("SRnSBr6c3NpiCyS3Dxkb2LUvsmwTKNQ6Z4zr9WCUi18=", Provider([]byte(secret), at, delivery, b))
	f("a05b3296580ab6e8d09482964bc3400aae849f8b27fb5250e3e4d11ce47a868f", Digest(b))
	f("v1=14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd", Handoff([]byte(secret), at, b))
	f("v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0=", Standard("OCR-120045", at, b, []byte(secret)))

	f("5daf9c637ba9d4abbfee939dd7d48cd95e3c37e80614a13ac2b58eadb104a7f9,14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd",
		V2(at, b, []byte(next), []byte(secret)))
	f("v1,yIo1Ftd86SAURYXiR6wGSEKvkJbNn9/Ya2GYScDVZ0E= v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0=",
		Standard("OCR-120045", at, b, []byte(next), []byte(secret)))
	f("nYK8MNYSo29LSH9pz6LGjZuW1kEylmxaRTvt7eG3hEQ=", Provider([]byte(next), at, delivery, b))
	f("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", StandardForm(secret))
	const whsec = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
	key, err := StandardKey(whsec)
	require.NoError(t, err)
	f("v1,RZh+oQoFTYtndg51DkgQUsepxugTx78mGHEESPU3Bqk=", Standard("OCR-120045", at, b, key))
	f("186655ba28cccbaa83f3784af02aeda6a9d74a3abd54b5370a252dba362df74d", Legacy([]byte(whsec), b))
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	f("v1a,SsjOrY8IUU8OdrDaebutbUKqeFYkJxDvmzdP7c4RXv/Uwcr0hR7yR1PLKN8M0IlbFVxUY9LA6j8CL+x6F67qAg==",
		StandardAsymmetric(ed25519.NewKeyFromSeed(seed), "OCR-120045", at, b))
}

func TestStandardKeyRefusesBadSecrets(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"whsec_", "whsec_!!!!", "whsec_AAECAwQFBgcICQoLDA0O", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"} {
		_, err := StandardKey(s)
		require.Error(t, err, s)
		require.NotContains(t, err.Error(), strings.TrimPrefix(s, "whsec_")+"x")
	}
	k, err := StandardKey(StandardForm(secret))
	require.NoError(t, err)
	require.Equal(t, secret, string(k))
}

// all is a request signed in every scheme, with a rotation on.
func all(b []byte) map[string]string {
	old, new := []byte(secret), []byte(next)
	return map[string]string{
		HeaderTimestamp: unix(at), HeaderDeliveryID: delivery, HeaderDigest: Digest(b),
		HeaderLegacy: Legacy(old, b), HeaderLegacyNext: Legacy(new, b), HeaderV2: V2(at, b, new, old),
		HeaderProvider: Provider(old, at, delivery, b), HeaderProviderNext: Provider(new, at, delivery, b),
		HeaderHandoff: Handoff(old, at, b), HeaderHandoffNext: Handoff(new, at, b), HeaderHandoffTimestamp: unix(at),
		HeaderStandardID: "OCR-120045", HeaderStandardTimestamp: unix(at), HeaderStandard: "v9,x " + Standard("OCR-120045", at, b, new, old),
	}
}

func get(m map[string]string) Header { return func(n string) string { return m[n] } }

// schemes are the verifiers with the headers they depend on.
var schemes = map[string]func(Header, []byte, time.Time, ...[]byte) error{
	HeaderProvider: VerifyProvider, HeaderV2: VerifyV2, HeaderHandoff: VerifyHandoff, HeaderStandard: VerifyStandard,
	HeaderLegacy: func(h Header, b []byte, _ time.Time, s ...[]byte) error { return VerifyLegacy(h, b, s...) },
}

func TestVerify(t *testing.T) {
	t.Parallel()
	bodies := [][]byte{[]byte(body), {}, []byte(`{"n":"包裹 ü"}`), bytes.Repeat([]byte("x"), 64<<10)}
	for name, verify := range schemes {
		for _, b := range bodies {
			m := all(b)
			require.NoError(t, verify(get(m), b, at, []byte(secret)), name)
			require.NoError(t, verify(get(m), b, at, []byte("other"), []byte(secret)), name)
			require.ErrorIs(t, verify(get(m), append([]byte("!"), b...), at, []byte(secret)), ErrMismatch, name)
			require.ErrorIs(t, verify(get(m), b, at, []byte("other")), ErrMismatch, name)
			require.ErrorIs(t, verify(get(m), b, at, nil), ErrMismatch, "an empty secret is nobody's")
			require.ErrorIs(t, verify(get(map[string]string{}), b, at, []byte(secret)), ErrMissing, name)
			require.NoError(t, verify(get(m), b, at, []byte(next)), "%s in a rotation", name)
			if name == HeaderLegacy {
				continue
			}
			for off, want := range map[time.Duration]error{300: nil, -300: nil, 301: ErrStale, -301: ErrStale} {
				require.ErrorIs(t, verify(get(m), b, at.Add(off*time.Second), []byte(secret)), want, "%s %d", name, off)
			}
		}
	}
	for _, bad := range []string{"", "x", "-1", "+1795216320", "01795216320", "9223372036854775807", "-9223372036854775808", "1795216320.0"} {
		m := all([]byte(body))
		m[HeaderTimestamp] = bad
		require.Error(t, VerifyProvider(get(m), []byte(body), at, []byte(secret)), bad)
	}
	m := all([]byte(body))
	m[HeaderDigest] = Digest([]byte("other"))
	require.ErrorIs(t, VerifyProvider(get(m), []byte(body), at, []byte(secret)), ErrMismatch)
	m = all([]byte(body))
	m[HeaderDeliveryID] = "a\nb"
	require.ErrorIs(t, VerifyProvider(get(m), []byte(body), at, []byte(secret)), ErrMissing, "a separator in the id")
}

func TestVerifyNamesTheScheme(t *testing.T) {
	t.Parallel()
	m := all([]byte(body))
	for _, name := range []string{HeaderStandard, HeaderProvider, HeaderV2, HeaderHandoff, HeaderLegacy} {
		got, err := Verify(get(m), []byte(body), at, secret)
		require.NoError(t, err)
		require.Equal(t, name, got)
		delete(m, name)
	}
	_, err := Verify(get(m), []byte(body), at, secret)
	require.ErrorIs(t, err, ErrMissing)
	_, err = Verify(get(all([]byte(body))), []byte(body), at.Add(time.Hour), secret)
	require.ErrorIs(t, err, ErrStale, "Signature alone must not let an old request in")
}

func TestVerifyAsymmetric(t *testing.T) {
	t.Parallel()
	pub, priv, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	m := all([]byte(body))
	require.ErrorIs(t, VerifyStandardAsymmetric(get(m), []byte(body), at, pub), ErrMismatch)
	m[HeaderStandard] += " " + StandardAsymmetric(priv, "OCR-120045", at, []byte(body))
	require.NoError(t, VerifyStandardAsymmetric(get(m), []byte(body), at, pub))
	require.NoError(t, VerifyStandard(get(m), []byte(body), at, []byte(secret)), "both in one header")
	require.ErrorIs(t, VerifyStandardAsymmetric(get(m), []byte(body+" "), at, pub), ErrMismatch)
}

// No single changed character of a signed request passes.
func TestAnyChangeIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := all([]byte(body))
		delete(m, HeaderProviderNext)
		name := rapid.SampledFrom([]string{HeaderTimestamp, HeaderDeliveryID, HeaderProvider, HeaderDigest}).Draw(rt, "header")
		i := rapid.IntRange(0, len(m[name])-1).Draw(rt, "at")
		c := rapid.SampledFrom([]byte("0aZ/=\n ")).Draw(rt, "to")
		if m[name][i] == c {
			return
		}
		changed := m[name][:i] + string(c) + m[name][i+1:]
		if name == HeaderProvider && strings.TrimSpace(changed) == m[name] {
			return
		}
		m[name] = changed
		require.Error(rt, VerifyProvider(get(m), []byte(body), at, []byte(secret)), "%s: %q", name, changed)
	})
}

func FuzzVerify(f *testing.F) {
	m := all([]byte(body))
	f.Add(m[HeaderTimestamp], m[HeaderDeliveryID], m[HeaderProvider], m[HeaderV2], m[HeaderStandard], m[HeaderHandoff], []byte(body))
	f.Add("", "", "==", ",,,", "v1, v1", "v1=", []byte{})
	f.Fuzz(func(t *testing.T, ts, id, provider, v2, standard, handoff string, b []byte) {
		h := get(map[string]string{HeaderTimestamp: ts, HeaderDeliveryID: id, HeaderProvider: provider, HeaderV2: v2, HeaderStandard: standard,
			HeaderStandardID: id, HeaderStandardTimestamp: ts, HeaderHandoff: handoff, HeaderHandoffTimestamp: ts})
		const unknown = "a key that nobody has signed anything with"
		if scheme, err := Verify(h, b, at, unknown); err == nil {
			t.Fatalf("%s let a stranger in", scheme)
		}
	})
}

func ExampleVerifyProvider() {
	body := []byte(`{"event_id":"PLE-810200"}`)
	now := time.Unix(1795216320, 0)
	header := map[string]string{
		"X-Webhook-Timestamp":   "1795216320",
		"X-Webhook-Delivery-Id": "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e",
		"X-Webhook-Signature":   Provider([]byte("0123456789abcdef"), now, "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e", body),
	}
	get := func(name string) string { return header[name] }
	fmt.Println(VerifyProvider(get, body, now, []byte("0123456789abcdef")))
	fmt.Println(VerifyProvider(get, append(body, ' '), now, []byte("0123456789abcdef")))
	// Output:
	// <nil>
	// no signature matches: X-Webhook-Signature
}
