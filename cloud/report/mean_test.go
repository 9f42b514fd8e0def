package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A mean has two digits behind the point, of one wait too, and is absent where there is none.
func TestMeanOfWaits(t *testing.T) {
	t.Parallel()
	require.Nil(t, mean(0, 0))
	for n, want := range map[int]float64{1: 1.67, 2: 0.83, 3: 0.56} {
		require.InDelta(t, want, *mean(100*time.Minute, n), 1e-9, "%d", n)
	}
}
