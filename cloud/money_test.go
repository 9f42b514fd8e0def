package cloud

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		m   Money
		out string
	}{
		"0": {0, "0"}, "1": {100, "1"}, "19.99": {1999, "19.99"}, "19.90": {1990, "19.9"}, "0.05": {5, "0.05"}, "-3.5": {-350, "-3.5"}, "-0.01": {-1, "-0.01"},
		"1.005": {101, "1.01"}, "1.0049": {100, "1"}, "-1.005": {-101, "-1.01"}, "1e2": {10000, "100"}, "1e-400": {0, "0"}, "999999999999.99": {99999999999999, "999999999999.99"},
	} {
		var m Money
		require.NoError(t, json.Unmarshal([]byte(in), &m), in)
		require.Equal(t, want.m, m, in)
		b, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, want.out, string(b), in)
	}
	for _, bad := range []string{`"1"`, `1e400`, `1e13`, `true`, `{}`, `0.` + string(make([]byte, 80))} {
		var m Money
		require.Error(t, json.Unmarshal([]byte(bad), &m), bad)
	}
}

func FuzzMoney(f *testing.F) {
	for _, s := range []string{"1.005", "-0.01", "1e2", "1E-7", "999999999999.99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var m, again Money
		if json.Unmarshal([]byte(s), &m) != nil {
			return
		}
		b, err := json.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &again))
		require.Equal(t, m, again)
	})
}
