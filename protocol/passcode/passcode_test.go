package passcode

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// Both sides hold lists of these bytes: they may never change.
func TestVerifierGoldenBytes(t *testing.T) {
	t.Parallel()
	v := Verifier("482913", bytes.Repeat([]byte{1}, SaltSize), bytes.Repeat([]byte{2}, KeySize), wire.CodeParams{MemoryKiB: 64, Passes: 2})
	require.Equal(t, "fc174955704100b86ec152ff122bbde0f2b4505d88256ad085108b6db033320e", hex.EncodeToString(v))
}

func TestDrawnCodesAreValid(t *testing.T) {
	t.Parallel()
	for range 2000 {
		for _, n := range []int{PickupDigits, DeliveryDigits, StaffDigits} {
			c := Draw(n)
			require.Len(t, c, n)
			require.True(t, Valid(c))
			require.False(t, strings.HasPrefix(c, "0000"))
		}
	}
}

func TestQRIsForOneDevice(t *testing.T) {
	t.Parallel()
	code, ok := ParseQR("A-1", QR("A-1", "482913"))
	require.True(t, ok)
	require.Equal(t, "482913", code)
	for _, bad := range []string{"PU:A-2:482913", "PU:A-1:48291", "PU:A-1", "482913", "PU:A-1:48291x", ""} {
		_, ok := ParseQR("A-1", bad)
		require.False(t, ok, bad)
	}
}

func FuzzParseQR(f *testing.F) {
	f.Add("PU:A-1:482913")
	f.Fuzz(func(t *testing.T, s string) {
		if code, ok := ParseQR("A-1", s); ok {
			require.Equal(t, strings.TrimSpace(s), QR("A-1", code))
		}
	})
}
