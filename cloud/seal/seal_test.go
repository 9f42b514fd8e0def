package seal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func box(t require.TestingT, fill byte) *Box {
	b, err := New(bytes.Repeat([]byte{fill}, KeySize))
	require.NoError(t, err)
	return b
}

func TestNewRefusesKeysOfAnotherLength(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 16, 31, 33} {
		_, err := New(make([]byte, n))
		require.Error(t, err, "%d bytes", n)
	}
}

func TestOpenReturnsWhatWasSealed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := box(t, 7)
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		purpose := rapid.String().Draw(t, "purpose")
		sealed := b.Seal(purpose, plain)
		require.NotEqual(t, sealed, b.Seal(purpose, plain), "nonces repeat")
		if len(plain) >= 8 {
			require.False(t, bytes.Contains(sealed, plain), "plain text shows")
		}
		got, err := b.Open(purpose, sealed)
		require.NoError(t, err)
		require.True(t, bytes.Equal(plain, got))
	})
}

func TestOpenRefusesEveryChange(t *testing.T) {
	t.Parallel()
	b := box(t, 7)
	sealed := b.Seal("endpoint/1", []byte("0123456789abcdef"))
	_, err := b.Open("endpoint/2", sealed)
	require.ErrorIs(t, err, ErrOpen, "another purpose")
	_, err = box(t, 8).Open("endpoint/1", sealed)
	require.ErrorIs(t, err, ErrOpen, "another key")
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		_, err := b.Open("endpoint/1", bad)
		require.ErrorIs(t, err, ErrOpen, "byte %d", i)
		_, err = b.Open("endpoint/1", sealed[:i])
		require.ErrorIs(t, err, ErrOpen, "cut at %d", i)
	}
}

func FuzzOpen(f *testing.F) {
	b := box(f, 7)
	f.Add("p", b.Seal("p", []byte("x")))
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, purpose string, sealed []byte) {
		if plain, err := b.Open(purpose, sealed); err == nil && purpose != "p" {
			t.Fatalf("opened %x as %x", sealed, plain)
		}
	})
}
