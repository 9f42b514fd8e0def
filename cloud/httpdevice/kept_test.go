package httpdevice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/protocol/wire"
)

// What was kept before starts lost their times is read as it was.
func TestFormerStartsWithTimesAreRead(t *testing.T) {
	t.Parallel()
	type timed struct {
		Instance string
		At       int64
	}
	b := wire.MustEncode(struct {
		hosted.Kept
		Instance string
		Former   []timed
		Taken    uint64
	}{hosted.Kept{Form: form, Start: 5}, "third", []timed{{"first", 1}, {"second", 2}}, 7})
	var k kept
	require.NoError(t, wire.DecodeKept(b, &k))
	require.Equal(t, kept{Kept: hosted.Kept{Form: form, Start: 5}, Instance: "third", Former: []start{{"first"}, {"second"}}, Taken: 7}, k)
}
