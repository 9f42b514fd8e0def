package edge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The floor is a lower bound of the true time that never sinks.
func TestTheFloorOfTimeDoesNotSink(t *testing.T) {
	t.Parallel()
	known := time.Now()
	c := NewClock(known)
	c.Begin(2, known.UnixNano())
	before := c.Floor(time.Now())
	c.Sync(time.Now().UnixNano(), time.Now(), 290*time.Second) // the broker held the answer back for 9 m 40 s
	require.GreaterOrEqual(t, c.Floor(time.Now()), before)
}
