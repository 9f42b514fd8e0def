package device_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/wire"
)

// A database that went back continues above what a device says that it holds: its door, its
// configuration, and the orders that wait. Numbers that only a hostile device can hold are not
// continued from, and what one has spent stops no other in its place after another way back.
func TestNumbersContinueAboveWhatADeviceHolds(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Status(nil)
		drain(d)
		set := func(version uint64, orders ...uint64) {
			require.NoError(t, w.Store.Decide(t.Context(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
				cells, err := v.Compartments(d.ID)
				cells[0].Version = version
				ch := &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: cells[:1]}}
				for _, n := range orders {
					ch.Commands = append(ch.Commands, cloud.Command{ID: uuid.Must(uuid.NewV7()).String(), DeviceID: d.ID, Kind: wire.CmdBlock, Body: wire.MustEncode(wire.DoorReason{Door: cells[0].Door}),
						Versions: map[uint]uint64{cells[0].Door: n}, IssuedAt: time.Now().UTC(), ExpiresAt: time.Now().Add(3 * time.Second).UTC(), State: cloud.CommandQueued})
				}
				return ch, err
			}))
		}
		read := func() (door, config uint64, orders []uint64) {
			require.NoError(t, w.Store.Look(t.Context(), func(v cloud.View) error {
				cells, err := v.Compartments(d.ID)
				require.NoError(t, err)
				dev, err := v.Device(d.ID)
				require.NoError(t, err)
				open, err := v.OpenCommands(d.ID)
				for _, c := range open {
					orders = append(orders, c.Versions[cells[0].Door])
				}
				door, config = cells[0].Version, dev.ConfigVersion
				return err
			}))
			return door, config, orders
		}
		says := func(door, config uint64) {
			d.Status(func(s *wire.Status) { s.Doors[0].Version, s.ConfigVersion = door, config })
			time.Sleep(time.Second)
			drain(d)
		}
		_, config, _ := read()
		set(2, 1, 2)
		says(40, config+7)
		door, raised, orders := read()
		require.Equal(t, []uint64{41, 42}, orders, "orders that wait are not overtaken")
		require.EqualValues(t, 42, door)
		require.Equal(t, config+8, raised)

		spent := uint64(time.Now().Unix()) + 1<<32
		says(spent+1000, spent+1000)
		door, now, _ := read()
		require.EqualValues(t, 42, door, "no cabinet of ours can hold it")
		require.Equal(t, raised, now)
		says(spent, spent) // all that there is
		door, _, _ = read()
		require.Greater(t, door, spent)
		held := door + 3 // of the one in its place, after three orders
		time.Sleep(10 * time.Second)
		set(5)
		says(held, spent+3)
		door, now, _ = read()
		require.GreaterOrEqual(t, door, held)
		require.Greater(t, now, spent+3)
	})
}
