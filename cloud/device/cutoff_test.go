package device_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
)

// kicked notes the connections that a node was asked to close.
type kicked struct {
	nobody
	codes chan string
}

func (k kicked) Kick(code string) { k.codes <- code }

// A stolen cabinet that stays connected to another node than the one that took the
// report: that node closes the connection when it looks at the sessions next.
func TestStolenCabinetIsDisconnectedByEveryNode(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		k := kicked{codes: make(chan string, 8)}
		peer := device.New(device.Config{Store: w.Store, Signer: w.Signer, ServerKey: w.Keys.Server, Node: "two", Living: both(w)})
		peer.SetSender(k)
		go func() { _ = peer.Run(ctx) }()
		_, err := peer.Login(ctx, "CAB-2", w.Box.Devices[1].Secret)
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Empty(t, k.codes)

		staff := employee(w)
		for _, x := range w.Box.Devices[:2] {
			_, err = w.Lockers.ReportStolen(ctx, staff, locker.StolenInput{Device: x.DeviceID, Reason: "gone"})
			require.NoError(t, err)
		}
		synctest.Wait()
		select {
		case <-d.Closed:
		default:
			t.Fatal("the node that took the report closes the connection at once")
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Len(t, k.codes, 1)
		require.Equal(t, "CAB-2", <-k.codes)
		require.False(t, peer.Online("CAB-2"))
		time.Sleep(time.Minute)
		require.Empty(t, k.codes, "once")
	})
}
