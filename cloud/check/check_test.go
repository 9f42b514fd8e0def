package check

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestWhatIsWrong(t *testing.T) {
	t.Parallel()
	at := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		check func(f Fields)
		bad   string // member, "" when all is well
	}{
		"text of as many characters":  {func(f Fields) { f.Text("x", strings.Repeat("ß", 8), 8) }, ""},
		"one more":                    {func(f Fields) { f.Text("x", strings.Repeat("ß", 9), 8) }, "x"},
		"lines in a text":             {func(f Fields) { f.Text("x", "a\n\tb\r", 8) }, ""},
		"a bell in a text":            {func(f Fields) { f.Text("x", "a\ab", 8) }, "x"},
		"bytes that are no text":      {func(f Fields) { f.Text("x", "\xff", 8) }, "x"},
		"lines in a line":             {func(f Fields) { f.Line("x", "a\nb", 8) }, "x"},
		"one of them":                 {func(f Fields) { f.OneOf("x", "b", "a", "b") }, ""},
		"none of them":                {func(f Fields) { f.OneOf("x", "", "a", "b") }, "x"},
		"at the ends":                 {func(f Fields) { f.Between("x", 1, 1, 3); f.Between("x", 3, 1, 3) }, ""},
		"below":                       {func(f Fields) { f.Between("x", 0, 1, 3) }, "x"},
		"above":                       {func(f Fields) { f.Between("x", 4, 1, 3) }, "x"},
		"nowhere":                     {func(f Fields) { f.Place("p.", nil, nil) }, ""},
		"the corner of the world":     {func(f Fields) { f.Place("p.", at(-90), at(180)) }, ""},
		"beyond it":                   {func(f Fields) { f.Place("p.", at(90.1), at(0)) }, "p.latitude"},
		"half a place":                {func(f Fields) { f.Place("p.", nil, at(1)) }, "p.latitude"},
		"a place that is no number":   {func(f Fields) { f.Place("p.", at(math.NaN()), at(1)) }, "p.latitude"},
		"an infinitely far longitude": {func(f Fields) { f.Place("p.", at(1), at(math.Inf(-1))) }, "p.latitude"},
	} {
		f := Fields{}
		c.check(f)
		if c.bad == "" {
			require.NoError(t, f.Err(), name)
			continue
		}
		var e *cloud.Error
		require.True(t, errors.As(f.Err(), &e), name)
		require.Equal(t, []any{cloud.Invalid, Code}, []any{e.Kind, e.Code})
		require.Len(t, e.Fields[c.bad], 1, name)
	}
}
