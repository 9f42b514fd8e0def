package notification

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The figures are those of 3GPP TS 23.038 and 23.040: 160 septets in one message and 153
// in each of several, 70 and 67 units of UCS-2.
func TestHowShortMessagesAreCarried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		encoding string
		segments int
	}{
		{"", GSM7, 1}, {strings.Repeat("é", 160), GSM7, 1}, {strings.Repeat("a", 161), GSM7, 2}, {strings.Repeat("a", 306), GSM7, 2}, {strings.Repeat("a", 307), GSM7, 3},
		{strings.Repeat("€", 80), GSM7, 1}, {strings.Repeat("€", 81), GSM7, 2}, {strings.Repeat("€", 152), GSM7, 2}, {strings.Repeat("€", 153), GSM7, 3},
		{strings.Repeat("ê", 70), UCS2, 1}, {strings.Repeat("ê", 71), UCS2, 2}, {strings.Repeat("码", 134), UCS2, 2}, {strings.Repeat("码", 135), UCS2, 3},
		{strings.Repeat("📦", 35), UCS2, 1}, {strings.Repeat("📦", 66), UCS2, 2}, {strings.Repeat("📦", 67), UCS2, 3},
	} {
		encoding, segments := measure(c.text)
		require.Equal(t, []any{c.encoding, c.segments}, []any{encoding, segments}, c.text)
	}
}
