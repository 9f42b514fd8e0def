package cloud

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryMistypedNumberIsFound(t *testing.T) {
	t.Parallel()
	for range 50 {
		n := NewTrackingNumber()
		require.Equal(t, RandomNumber, FormOf(n), n)
		for i := 2; i < len(n); i++ {
			for _, c := range numberSymbols {
				if wrong := n[:i] + string(c) + n[i+1:]; wrong != n {
					require.Equal(t, MistypedNumber, FormOf(wrong), "%s for %s", wrong, n)
				}
			}
			for j := i + 1; j < len(n); j++ {
				if n[i] != n[j] {
					b := []byte(n)
					b[i], b[j] = b[j], b[i]
					require.Equal(t, MistypedNumber, FormOf(string(b)), "%s for %s", b, n)
				}
			}
		}
	}
}

// A hundred thousand numbers differ, and every symbol is as frequent as another
// at every place.
func TestNumbersAreUniform(t *testing.T) {
	t.Parallel()
	const count = 100_000
	seen := make(map[string]bool, count)
	var at [numberLength][len(numberSymbols)]int
	for range count {
		n := NewTrackingNumber()
		require.False(t, seen[n])
		seen[n] = true
		for i, c := range n[2:] {
			at[i][strings.IndexRune(numberSymbols, c)]++
		}
	}
	for i, counts := range at {
		chi, want := 0.0, float64(count)/float64(len(numberSymbols))
		for _, c := range counts {
			chi += (float64(c) - want) * (float64(c) - want) / want
		}
		require.Less(t, chi, 90.0, "place %d: 28 degrees of freedom, p < 1e-8", i)
	}
}

func TestNumbersAreTheSameHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"sr 7kq4 m2xd 9htb": "SR7KQ4M2XD9HTB", "SR-7KQ4-M2XD-9HTB": "SR7KQ4M2XD9HTB", " SR7KQ4M2XD9HTB ": "SR7KQ4M2XD9HTB",
		"sr 7kq4 m2xd 9htb-2": "SR7KQ4M2XD9HTB-2", "SR-7KQ4-M2XD-9HTB-12": "SR7KQ4M2XD9HTB-12", "SR223456789-234": "SR223456789-234",
		"SR204518837": "SR204518837", "sr204518837-1": "SR204518837-1", "1z 999-aa": "1Z 999-AA", "SR7KQ4M2XD9HTB-X": "SR7KQ4M2XD9HTB-X", "": "",
		"SR-1": "SR-1", "PK-SR7KQ4M2XD9HTB": "PK-SR7KQ4M2XD9HTB", "SR7KQ4M2XD9HTBC": "SR7KQ4M2XD9HTBC",
	} {
		require.Equal(t, want, NumberKey(given), given)
	}
	for given, want := range map[string]NumberForm{"SR204518837": LegacyNumber, "sr204518837-3": LegacyNumber, "SWP100": ForeignNumber, "SR": ForeignNumber, "": ForeignNumber,
		"SR20451883": ForeignNumber, "SR 204": ForeignNumber} {
		require.Equal(t, want, FormOf(given), given)
	}
}

func FuzzNumberKey(f *testing.F) {
	for _, s := range []string{"SR 7KQ4 M2XD 9HTB-1", "sr204518837", "\xff-", "SR-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key := NumberKey(s)
		if again := NumberKey(key); again != key {
			t.Fatalf("the key of %q is %q, and of that %q", s, key, again)
		}
		FormOf(s)
	})
}
