package order

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Each event has a body of its own in full, and together they are heard by every
// setting that there is.
func TestEventsAreWhole(t *testing.T) {
	t.Parallel()
	heard := map[string]bool{}
	var names []string
	for _, e := range Events() {
		var body struct{ Event string }
		require.NoError(t, json.Unmarshal(e.Sample, &body), e.Name)
		require.Equal(t, e.Name, body.Event)
		require.NotRegexp(t, `<(n|time|date|id)>`, string(e.Sample))
		for _, s := range e.Settings {
			heard[s] = true
		}
		names = append(names, e.Name)
	}
	for _, s := range cloud.HookSettings() {
		elsewhere := s == cloud.HookDeviceOrder || s == cloud.HookDriverPlace // in cloud/locker and cloud/route
		require.Equal(t, !elsewhere, heard[s], s)
	}
	require.Len(t, heard, len(cloud.HookSettings())-2)
	require.Len(t, names, 32)
	for _, status := range entered {
		require.True(t, slices.Contains(names, eventLifecycle+status), status)
	}
}
