package cloud

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// present is a View of one device and one order.
type present struct {
	View
	device Device
	order  Order
}

func (p present) Device(DeviceID) (Device, error)          { return p.device, nil }
func (p present) Order(BusinessID, OrderID) (Order, error) { return p.order, nil }

func TestMarksStandForWhatPeopleDecideAbout(t *testing.T) {
	t.Parallel()
	marks := func(v present, c *Changes) string {
		p := &Preview{}
		require.NoError(t, p.Take(v, c))
		return p.Marks().Digest(nil)
	}
	v := present{device: Device{ID: 7, Code: "F-1", Name: "Front"}, order: Order{ID: 1, Number: "A", Note: "x"}}
	renamed, held := &Changes{Devices: []Device{{ID: 7, Code: "F-1", Name: "Back"}}}, &Changes{Orders: []Order{{ID: 1, Number: "A", Note: "y"}}}
	device, order := marks(v, renamed), marks(v, held)
	require.NotEqual(t, device, order)

	v.device.LastSeenAt, v.device.CodesHeld, v.device.Firmware = time.Now(), 9, "2"
	require.Equal(t, device, marks(v, renamed), "a device speaks all the time")
	v.device.Name = "Side"
	require.NotEqual(t, device, marks(v, renamed))
	v.order.Instruction = "Leave it"
	require.NotEqual(t, order, marks(v, held), "any other state of the thing is another one")
	require.Equal(t, Marks(nil).Digest(nil), Marks{}.Digest(nil))
	require.Equal(t, Marks(nil).Digest(nil), marks(v, &Changes{Audits: []Audit{{}}}), "what follows of itself is none")
}
