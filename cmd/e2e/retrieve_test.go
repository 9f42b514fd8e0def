package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/wire"
)

// retrieve has a courier of the partner take a delivery back: they take what lies behind
// the doors that open, close them, and say so until it is taken. A courier whose word is
// not taken has the parcel all the same.
func (w *world) retrieve(x *task) {
	c, began := w.cabinets[x.cabinet], time.Now().Add(-time.Millisecond)
	boxes := w.boxes(x)
	reason := "recall"
	if x.outgoing {
		reason = "collection"
	}
	out, err := w.server().Lockers.Retrieve(w.soon(), w.box.ProviderCaller, locker.RetrieveInput{Delivery: x.key(), Reason: reason})
	w.effect("retrieve", err)
	if err != nil && refusal(err) != "DEVICE_TIMEOUT" {
		return
	}
	var taken []string
	var doors []uint
	for n, packages := range boxes {
		if _, opened := c.openedFor(n, began, out.Opening); !opened {
			continue
		}
		if slices.ContainsFunc(c.sim.ItemsAt(n, time.Now()), func(item string) bool { return slices.Contains(packages, item) }) {
			doors = append(doors, n)
		}
	}
	slices.Sort(doors)
	for _, n := range doors {
		items, _ := c.sim.TakeOut(n)
		taken = append(taken, items...)
		time.Sleep(time.Second)
		_ = c.sim.CloseDoor(n)
	}
	if len(taken) == 0 {
		return
	}
	err = errors.New("not asked")
	for range 8 { // until the cloud knows that the doors are shut
		time.Sleep(3 * time.Second)
		_, err = w.server().Lockers.RetrieveConfirm(context.Background(), w.box.ProviderCaller, locker.RetrieveConfirmInput{Delivery: x.key(), Packages: taken})
		if err == nil {
			break
		}
	}
	w.effect("retrieve_confirm", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range doors {
		w.cleared = append(w.cleared, truth.Clear{Cabinet: c.code, Door: n, At: time.Now()})
	}
	if err != nil { // the parcel is gone, and no word of it is taken
		for _, n := range doors {
			c.disturb("forgot", n, 30*time.Second)
		}
	}
}

// A courier of the partner takes a delivery back: the code of its recipient is dead at the
// cabinet, and the compartment takes another delivery.
func TestACourierTakesADeliveryBack(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, caller := context.Background(), w.box.ProviderCaller
		code, door := w.deposited(c, "R-1")
		out, err := w.cloud.Lockers.Retrieve(ctx, caller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "recall"})
		require.NoError(t, err)
		require.False(t, out.Pending)
		require.Equal(t, door, out.Opening.Compartments[0].Door)
		confirm := func() error {
			_, err := w.cloud.Lockers.RetrieveConfirm(ctx, caller, locker.RetrieveConfirmInput{Delivery: "ref:R-1"})
			return err
		}
		w.shown("R-1", "open")
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(confirm()), "the door stands open")
		require.NotEqual(t, wire.CodeOK, c.try(code).Outcome, "not while the courier stands there")
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("the retrieval has ended", time.Minute, func() bool { return confirm() == nil })
		require.Equal(t, cloud.DeliveryPickedUp, w.find("R-1").Status)
		w.awaits("the cabinet forgets it", time.Minute, func() bool { return c.doorOf(door).Delivery == "" })
		require.NotEqual(t, wire.CodeOK, c.try(code).Outcome)
		c.drained()
		_, next := w.deposited(c, "R-2")
		require.Equal(t, door, next)
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// A courier who closes the door over the parcel has not taken it, whatever the partner says:
// the sensor sees it, and no other parcel is put there.
func TestARetrievalOverASensorThatSeesTheParcel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 7, 1)
		defer w.close()
		c := w.cabinets[0]
		w.ready(c)
		ctx, caller := context.Background(), w.box.ProviderCaller
		code, door := w.stored(t, c)
		_, err := w.cloud.Lockers.Retrieve(ctx, caller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "recall"})
		require.NoError(t, err)
		w.shown("R-1", "open")
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(time.Minute)
		_, err = w.cloud.Lockers.RetrieveConfirm(ctx, caller, locker.RetrieveConfirmInput{Delivery: "ref:R-1"})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err))
		require.Equal(t, wire.CodeOK, c.try(code).Outcome, "it waits for its recipient")
	})
}
