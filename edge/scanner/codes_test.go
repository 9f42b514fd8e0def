package scanner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What may be a code is not handed on as the text of a label.
func TestCodesAreNoLabels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"PK-12345": true, "1Z999AA10123456784": true, "123456789": true, "00340434161094042557": true,
		"482913": false, "4829136": false, "48291365": false, "PU:CAB-1:482913": false, "pu:CAB-1:482913": false, "xPU:CAB-1:482913": false, "PX:abc": false, "AB1": false, strings.Repeat("A", 81): false} {
		require.Equal(t, want, isLabel(text), text)
	}
}
