package e2e

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// enrol gives a cabinet new secrets for the code parameters of its configuration.
func (w *world) enrol(i int, params wire.CodeParams) {
	w.t.Helper()
	ctx, d := context.Background(), &w.box.Devices[i]
	token, row := device.NewToken(d.DeviceID, time.Now().UTC())
	require.NoError(w.t, w.cloud.Store.Decide(ctx, d.DeviceID, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Enrolments: []cloud.EnrolmentToken{row}}}, nil
	}))
	made, err := w.cloud.Devices.Enrol(ctx, w.cloud.Store, device.Enrolment{Code: d.DeviceCode, Token: token},
		func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
			return w.cloud.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: params}, decide)
		})
	require.NoError(w.t, err)
	d.Enrolled = w.cloud.Enrolled(d.DeviceCode, made)
}

// hasList reports whether the cabinet has the whole code list that the cloud has for it.
func (c *cabinet) hasList() bool {
	d, err := c.w.cloud.Store.FindDeviceByCode(context.Background(), c.code)
	require.NoError(c.w.t, err)
	return c.agent.Loop().State().Meta.CodeList == d.CodeList
}

func verifiers(s edgelocker.State) (out [][]byte) {
	for _, e := range s.Codes {
		out = append(out, e.Verifier)
	}
	return out
}

// A cabinet's computer was replaced: new secrets, an empty store. The codes that
// people hold open the same doors, with no network.
func TestReplacedHardwareKnowsTheLiveCodes(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		waiting := w.create("R-2", 0, "PK-2")
		w.awaits("list", time.Minute, func() bool { return c.hasList() })
		former := verifiers(c.agent.Loop().State())
		c.drained()
		w.enrol(0, wire.CodeParams{MemoryKiB: 8, Passes: 1})
		time.Sleep(2 * time.Minute)
		require.False(t, w.cloud.Devices.Online(c.code), "the former secret is of no use")
		require.Greater(t, c.agent.Link().Counters().Attempts, uint64(3))
		c.halt()
		require.NoError(t, os.RemoveAll(c.dir))
		c.start()
		w.ready(c)
		w.awaits("list", time.Minute, func() bool { return c.hasList() })
		fresh := verifiers(c.agent.Loop().State())
		require.Len(t, fresh, 4)
		for _, v := range fresh {
			for _, f := range former {
				require.False(t, bytes.Equal(v, f))
			}
		}
		c.setCut(true)
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(10 * time.Second)
		a = c.try(*waiting.DeliveryCode)
		require.Equal(t, wire.CodeOK, a.Outcome, "the courier's as well")
		time.Sleep(5 * time.Second)
		for _, n := range a.Doors {
			require.NoError(t, c.sim.CloseDoor(uint(n)))
		}
		time.Sleep(time.Minute)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		w.delivered("R-2")
		require.Empty(t, w.faults())
	})
}

// Code parameters change, or a cabinet enrols again, while its store stays: what
// it holds is void.
func TestChangedCodeParametersAndSecretsReachAnAgentThatKeepsItsStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		_, err := w.cloud.Lockers.Configure(context.Background(), w.box.Devices[0].DeviceID, func(conf *wire.Config) error { conf.Codes.Passes = 2; return nil })
		require.NoError(t, err)
		w.awaits("list", time.Minute, func() bool {
			s := c.agent.Loop().State()
			return s.Config.Codes.Passes == 2 && c.hasList() && len(s.Codes) == 2
		})
		c.drained()
		w.enrol(0, wire.CodeParams{MemoryKiB: 8, Passes: 2})
		c.restart(time.Second)
		w.ready(c)
		w.awaits("list", time.Minute, func() bool { return c.hasList() && len(c.agent.Loop().State().Codes) == 2 })
		c.setCut(true)
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
	})
}
