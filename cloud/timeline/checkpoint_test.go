package timeline_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
)

// What checkpoints keep of the same histories is part of what is stored: where it changes, as when events are
// folded in another way, Version is to be raised, and the digest of the new one put in here.
func TestCheckpointsOfAVersion(t *testing.T) {
	t.Parallel()
	digests := map[int]string{1: "370c68b658672ab9"}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	h, made := sha256.New(), 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 4))
		var packages []cloud.PackageID
		for n := range 1 + r.IntN(3) {
			packages = append(packages, cloud.PackageID(n+1))
		}
		var events []cloud.TimelineEvent
		for len(events) < 40 {
			for _, e := range history(r, packages) {
				e.Event.EventID, e.Event.OccurredAt.Time = fmt.Sprint(len(events)), e.Event.OccurredAt.Add(time.Duration(len(events))*time.Minute)
				events = append(events, e)
			}
		}
		c, ok := timeline.MakeCheckpoint(events, packages, 4, now)
		if ok {
			made++
		}
		fmt.Fprintln(h, ok, c.Upto.UnixMilli(), c.Events, c.Kept)
	}
	require.Greater(t, made, 50)
	require.Equal(t, digests[timeline.Version], fmt.Sprintf("%x", h.Sum(nil)[:8]), "raise Version")
}
