package locker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A provider sees null, as staff do, while it is not known where a cabinet stands.
func TestLockersWithoutAPlaceHaveNull(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]cloud.Device{`"latitude":null,"longitude":null`: {}, `"latitude":43.6,"longitude":0`: {Latitude: 43.6}} {
		raw, err := json.Marshal(deviceFacts{device: d, zone: time.UTC}.lockerRow(""))
		require.NoError(t, err)
		require.Contains(t, string(raw), want)
	}
}
