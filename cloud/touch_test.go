package cloud_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Each member of changes that a page may show says whose it is, or which cabinet's: a
// page of another business is not read because of it.
func TestTouchesSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	c := &cloud.Changes{}
	c.Orders = []cloud.Order{{ID: 7, BusinessID: 42, DeliveryID: 3}, {ID: 7, BusinessID: 42, DeliveryID: 3}}
	c.Doors = []cloud.DoorPresent{{DeviceID: 88, Door: 1}, {DeviceID: 88, Door: 2}}
	c.Drivers = []cloud.Driver{{Account: cloud.Account{ID: 5, BusinessID: 42}}}
	c.Events = []cloud.TimelineEvent{{ShipmentID: 9, BusinessID: 43}}
	c.Outbox = []cloud.OutboxWrite{{Event: cloud.OutboxEvent{BusinessID: 44}}}
	c.Shelves = map[cloud.DeviceID][]cloud.Shelf{89: nil}
	c.Rows = []cloud.Row{cloud.WorkMark{Kept: cloud.Kept[cloud.WorkMarkID]{BusinessID: 45}}}
	c.Tokens = []cloud.Token{{AccountID: 6}}
	c.Seen = []cloud.DeviceSeen{{DeviceID: 90}}
	c.LimitLogins = []cloud.BusinessID{46}
	got := c.Touches()
	for _, want := range []cloud.Touch{{Kind: "Orders", Business: 42, Order: 7, Delivery: 3}, {Kind: "Doors", Device: 88}, {Kind: "Drivers", Business: 42, Account: 5}, {Kind: "Events", Business: 43, Shipment: 9},
		{Kind: "Outbox", Business: 44}, {Kind: "Shelves", Device: 89}, {Kind: string(cloud.WorkMarkIDs), Business: 45}, {Kind: "Tokens", Account: 6}, {Kind: "LimitLogins", Business: 46}} {
		if want.Kind == "Orders" || want.Kind == "Drivers" { // they name further accounts
			i := slices.IndexFunc(got, func(x cloud.Touch) bool { return x.Kind == want.Kind })
			require.GreaterOrEqual(t, i, 0, want.Kind)
			want.Account = got[i].Account
		}
		require.Contains(t, got, want)
	}
	require.Len(t, got, 9, "each once, and what no page shows not at all")
	require.Empty(t, (&cloud.Changes{}).Touches())
}

func BenchmarkTouches(b *testing.B) {
	c := &cloud.Changes{}
	c.Orders = []cloud.Order{{ID: 7, BusinessID: 42}}
	c.Events = []cloud.TimelineEvent{{ShipmentID: 9, BusinessID: 42}}
	for b.Loop() {
		c.Touches()
	}
}
