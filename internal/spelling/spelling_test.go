package spelling

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"occurred_at", "recorded_at", "pod", "location"}
	for name, want := range map[string]string{"occured_at": "occurred_at", "recorded": "recorded_at", "locatoin": "location", "po": "pod", "p": "", "": "", "telemetry": "", strings.Repeat("o", 65): ""} {
		require.Equal(t, want, Nearest(name, known), name)
	}
	require.Empty(t, Nearest("pod", nil))
}

// The distance is the least number of single changes, as a search over all of them finds it.
func TestDistance(t *testing.T) {
	t.Parallel()
	var slow func(a, b string) int
	slow = func(a, b string) int {
		switch {
		case a == "" || b == "":
			return len(a) + len(b)
		case a[0] == b[0]:
			return slow(a[1:], b[1:])
		}
		return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
	}
	words := []string{"", "a", "b", "ab", "ba", "abc", "acb", "abcab", "bcabc", "aaa"}
	for _, a := range words {
		for _, b := range words {
			require.Equal(t, slow(a, b), distance(a, b), "%q %q", a, b)
		}
	}
}
