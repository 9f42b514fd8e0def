package check

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, message string }{
		"of as many characters":  {strings.Repeat("ß", 8), ""},
		"one more":               {strings.Repeat("ß", 9), "x must have at most 8 characters; it has 9."},
		"two lines":              {"a\nb", "x must be one line, without control characters."},
		"bytes that are no text": {"\xff", "x must be valid UTF-8."},
	} {
		f := Fields{}
		f.Line("x", c.text, 8)
		if c.message == "" {
			require.NoError(t, f.Err(), name)
			continue
		}
		var e *cloud.Error
		require.True(t, errors.As(f.Err(), &e), name)
		require.Equal(t, []any{cloud.Invalid, Code}, []any{e.Kind, e.Code})
		require.Equal(t, map[string][]string{"x": {c.message}}, e.Fields, name)
	}
}

// Details name so many things and count the rest.
func TestListedDetailsAreBounded(t *testing.T) {
	t.Parallel()
	list := make([]int, MaxFields+7)
	require.Equal(t, map[string]any{"x": list[:MaxFields], "more_x": 7}, Listed("x", list))
	require.Equal(t, map[string]any{"x": list[:MaxFields]}, Listed("x", list[:MaxFields]))
}
