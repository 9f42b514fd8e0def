package device_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// newStore lets a device begin a store and says whether the cloud took it.
func newStore(d *devicetest.Device, n uint64) bool {
	prev := d.Epoch
	e := wire.Epoch{0: 0xEE, 14: byte(n >> 8), 15: byte(n)}
	d.NewEpoch(e, &prev)
	b := d.Send(0, d.Record(wire.KindGap, wire.Gap{Epoch: prev, Reason: wire.GapStoreCreated}))
	synctest.Wait()
	return tookEpoch(d, b.Epoch)
}

func tookEpoch(d *devicetest.Device, e wire.Epoch) (taken bool) {
	d.W.Look(func(v cloud.View) error {
		found, err := v.CurrentEpoch(d.ID)
		taken = found.Epoch == e
		return err
	})
	for {
		select {
		case <-d.Acks:
		case <-d.Times:
		default:
			return taken
		}
	}
}

// Who has a cabinet's key announced a new store with every batch: tables of
// epochs, lanes and records grew as fast as the line. It is bounded, staff see it,
// and the cabinet itself works again within the hour.
func TestEpochsWithoutEndAreBounded(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestRecordsOfAgentsLongForgottenForkNothing")
	for _, code := range []string{"CAB-1", devicetest.Signing} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := devicetest.New(t, nil)
				defer w.Stop()
				d := w.Connect(code, nil)
				d.Greet(nil)
				d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
				count := func() (n int) {
					w.Look(func(v cloud.View) (err error) {
						n, err = v.EpochsSince(d.ID, time.Time{}, 100_000)
						return err
					})
					return n
				}
				n := uint64(0)
				for range 30 {
					n++
					newStore(d, n)
				}
				require.Equal(t, 20, count(), "so many within an hour")
				require.Contains(t, d.Faults(), cloud.DevTooManyEpochs)

				time.Sleep(time.Hour + time.Second)
				n++
				require.True(t, newStore(d, n), "an honest device is never locked out: it waits an hour")
				d.Tell(wire.KindTamper, wire.Tamper{What: "it works on"})

				// The rest of a bad day.
				require.NoError(t, w.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
					ch := &cloud.Changes{}
					for i := range 40 {
						at := time.Now().Add(-2*time.Hour - time.Duration(i)*time.Minute)
						ch.Epochs = append(ch.Epochs, cloud.Epoch{DeviceID: d.ID, Epoch: wire.Epoch{0: 0xDD, 15: byte(i)}, OpenedAt: at, ClosedAt: at})
					}
					return ch, nil
				}))
				n++
				require.False(t, newStore(d, n), "the day is used up")
				time.Sleep(time.Hour + time.Second)
				n++
				require.True(t, newStore(d, n), "one an hour is always taken")
				n++
				require.False(t, newStore(d, n))
				require.Equal(t, 62, count())
			})
		})
	}
}

// A cabinet that loses its store now and then is taken at once.
func TestStoresThatAreLostNowAndThen(t *testing.T) {
	ring.SkipUnlessCheck(t, "one store that is lost")
	bubble(t, func(t *testing.T, _ *devicetest.World, d *devicetest.Device) {
		d.Tell(wire.KindTamper, wire.Tamper{What: "x"})
		for n := range uint64(15) {
			require.True(t, newStore(d, n+1))
			time.Sleep(10 * time.Minute)
		}
		require.NotContains(t, d.Faults(), cloud.DevTooManyEpochs)
	})
}
