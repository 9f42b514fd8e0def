package order

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Who drove an order stands in it for a day after it was taken away, and not
// while they have it again.
func TestFormerDrivers(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	o := cloud.Order{}
	give := func(driver cloud.AccountID, after time.Duration) (list []cloud.AccountID) {
		d := &Decision{Now: start.Add(after), Was: o, Order: o}
		d.Order.DriverID = driver
		d.keepFormerDriver()
		o = d.Order
		for _, f := range o.Drove {
			list = append(list, f.ID)
		}
		return list
	}
	require.Empty(t, give(4, 0))
	require.Equal(t, []cloud.AccountID{4}, give(0, time.Hour))
	require.Equal(t, []cloud.AccountID{4}, give(5, 2*time.Hour))
	require.Equal(t, []cloud.AccountID{5}, give(4, 3*time.Hour))
	require.Equal(t, []cloud.AccountID{5, 4}, give(6, 4*time.Hour))
	require.Equal(t, start.Add(4*time.Hour), o.Drove[1].Until)
	require.Equal(t, []cloud.AccountID{4}, give(6, 27*time.Hour))
	require.Empty(t, give(6, 28*time.Hour))
	require.Nil(t, o.Drove)
}
