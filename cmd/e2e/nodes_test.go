package e2e

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/protocol/wire"
)

// A cabinet is connected to one node, and everything is asked of another: doors open,
// codes and configuration arrive, and hardware that is cut off is let go.
func TestOrdersReachACabinetAtAnotherNode(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"with notices": false, "by looking every second": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, dir := storetest.MigratedPostgresURL(t), t.TempDir()
			node := func(name string) (*server.Server, net.Listener) {
				mqtt, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				s, err := server.New(t.Context(), server.Config{Dir: dir, Database: database, Node: name, NoNotices: polls, Brokers: []string{"tcp://" + mqtt.Addr().String()}})
				require.NoError(t, err)
				runs(t, name, func(ctx context.Context) error { return s.Run(ctx, server.Listeners{MQTT: mqtt}) })
				return s, mqtt
			}
			near, _ := node("near")
			far, _ := node("far")
			box, err := near.Sandbox(t.Context(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Times: quickTimes,
				Devices: []server.SandboxDevice{{Code: "CAB-1", Name: "Cabinet", Type: "smart_locker", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}}}})
			require.NoError(t, err)
			sim, cabinet := oneDoor(t, access.Secrets(box.Devices[0].Enrolled))
			takesDeliveries(t, near, box.Devices[0].DeviceID, cabinet)
			require.False(t, far.Devices.Online("CAB-1"))
			staff := cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: box.ProviderCaller.Account.BusinessID, Type: cloud.ClientAdmin}}

			// Configuration.
			began := time.Now()
			before := cabinet.Loop().State().Config.Version
			shown, err := far.Lockers.FindDevice(t.Context(), staff, box.Devices[0].DeviceID)
			require.NoError(t, err)
			in := locker.LayoutInput{Device: box.Devices[0].DeviceID, Version: new(int64(shown.Device.ConfigVersion)), Shelves: []locker.LayoutShelf{{Code: "A"}}}
			for _, g := range shown.Device.Grids {
				in.Shelves[0].Grids = append(in.Shelves[0].Grids, locker.LayoutGrid{Door: int(g.Door), Column: g.Column + 1, Row: g.Row, Size: g.Size, PickupEnabled: &g.PickupEnabled})
			}
			_, err = far.Lockers.SetLayout(t.Context(), staff, in)
			require.NoError(t, err)
			soon(t, "configuration", func() bool { return cabinet.Loop().State().Config.Version > before })
			t.Logf("configuration after %s", time.Since(began).Round(time.Millisecond))

			// Codes.
			began = time.Now()
			_, err = far.Lockers.Create(t.Context(), box.ProviderCaller, locker.CreateInput{ReferenceNumber: "REF-1", DeviceID: box.Devices[0].DeviceID,
				Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-1", Size: "M"}}})
			require.NoError(t, err)
			soon(t, "codes", func() bool { return cabinet.Loop().State().Meta.CodeList == 2 })
			t.Logf("codes after %s", time.Since(began).Round(time.Millisecond))

			// A command.
			began = time.Now()
			out, err := far.Lockers.OpenDoors(t.Context(), box.ProviderCaller, locker.OpenInput{Delivery: "ref:REF-1"})
			require.NoError(t, err)
			require.False(t, out.Pending)
			require.True(t, sim.OpenAt(1, time.Now()))
			t.Logf("door open and told after %s", time.Since(began).Round(time.Millisecond))
			require.NoError(t, sim.CloseDoor(1))
			soon(t, "delivered", func() bool {
				d, err := far.Lockers.Find(t.Context(), box.ProviderCaller, "ref:REF-1")
				return err == nil && d.Delivery.Status == cloud.DeliveryDelivered
			})

			// Cut off.
			began = time.Now()
			_, err = far.Lockers.ReportStolen(t.Context(), staff, locker.StolenInput{Device: box.Devices[0].DeviceID, Reason: "gone"})
			require.NoError(t, err)
			soon(t, "cut off", func() bool { return !near.Devices.Online("CAB-1") })
			t.Logf("cut off after %s", time.Since(began).Round(time.Millisecond))
		})
	}
}
