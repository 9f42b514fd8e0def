package mock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mock"
	"github.com/postern-io/postern/internal/ring"
)

var yes, no = true, false

// Whatever a rehearsal has done, a cleared cabinet is as a new one: every compartment takes a
// delivery, nothing is open, blocked or in doubt, and no delivery of before goes on.
func TestAClearedMockCabinetIsAsANewOne(t *testing.T) {
	seeds := ring.Among(8, 60, 400)
	for seed := range seeds {
		rehearse(t, fmt.Sprint(seed), func(r *rehearsal) {
			dice := rand.New(rand.NewPCG(uint64(seed), 20))
			var refs []string
			for n := range 3 + dice.IntN(25) {
				r.anything(dice, &refs, n)
			}
			in := mock.FaultsInput{Clear: true}
			if dice.IntN(4) == 0 {
				in.Offline = &yes
			}
			r.faults(in)
			if in.Offline != nil {
				r.faults(mock.FaultsInput{Offline: &no})
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()

			for _, ref := range refs {
				require.NotContains(r.t, []cloud.DeliveryStatus{cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryDelivered, cloud.DeliveryCorrecting}, r.find(ref).Status, ref)
			}
			require.Empty(r.t, r.exceptions())
			shown := r.faults(mock.FaultsInput{}).Locker
			require.True(r.t, shown.Online && !shown.Disabled)
			for _, d := range shown.Doors {
				require.Equal(r.t, cloud.GridFree, d.State, "%+v", d)
				require.Equal(r.t, "closed", d.Status, "%+v", d)
			}
			cells, err := r.Lockers.FindLocker(ctx, r.me, locker.LockerInput{Device: r.device.ID})
			require.NoError(r.t, err)
			for _, shelf := range cells.Locker.Shelves {
				for _, c := range shelf.Grids {
					require.True(r.t, c.Available, "%+v", c)
				}
			}
			r.Look(func(v cloud.View) error {
				stored, err := v.Compartments(r.device.ID)
				for _, c := range stored {
					require.Equal(r.t, []any{"closed", (*bool)(nil), ""}, []any{c.DoorStatus, c.Occupied, c.OpeningID}, "%+v", c)
				}
				return err
			})
			for i, size := range []string{"S", "S", "S", "S", "M", "M", "L", "L", "XL"} {
				ref := fmt.Sprint("NEW-", i)
				grids := r.deposit(ref, size)
				_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find(ref).DeliveryID})
				require.NoError(r.t, err)
				r.close(grids...)
				require.Equal(r.t, cloud.DeliveryPickedUp, r.find(ref).Status)
				r.deposit(ref+"-AGAIN", size)
			}
		})
	}
}

// anything is one act of a rehearsal, refused or not.
func (r *rehearsal) anything(dice *rand.Rand, refs *[]string, n int) {
	some := func() string {
		if len(*refs) == 0 {
			return "NONE"
		}
		return (*refs)[dice.IntN(len(*refs))]
	}
	key := func() locker.DeliveryKey { return locker.DeliveryKey("ref:" + some()) }
	coin := func() *bool { return []*bool{nil, &yes, &no}[dice.IntN(3)] }
	switch dice.IntN(11) {
	case 0, 1:
		in := locker.CreateInput{ReferenceNumber: fmt.Sprint("R-", n), DeviceID: r.device.ID, Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550123"}}
		for i := range 1 + dice.IntN(2) {
			in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: fmt.Sprintf("T-%d-%d", n, i), Size: []string{"S", "M"}[dice.IntN(2)]})
		}
		if _, err := r.Lockers.Create(ctx, r.me, in); err == nil {
			*refs = append(*refs, in.ReferenceNumber)
		}
	case 2, 3:
		_, _ = r.Lockers.OpenDoors(ctx, r.me, locker.OpenInput{Delivery: key(), WaitSeconds: new(dice.IntN(2) * 20)})
	case 4, 5:
		doors := r.faults(mock.FaultsInput{}).Locker.Doors
		action := []string{"close", "close", "close", "open", "jam", "done", "staff_confirm"}[dice.IntN(7)]
		_, _ = r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: doors[dice.IntN(len(doors))].GridID, Action: action, Occupied: coin()})
	case 6:
		if len(*refs) > 0 {
			_, _ = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find(some()).DeliveryID})
		}
	case 7:
		_, _ = r.Lockers.Correct(ctx, r.me, locker.CorrectInput{Delivery: key(), Reason: "Wrong parcel"})
	case 8:
		_, _ = r.Lockers.Retrieve(ctx, r.me, locker.RetrieveInput{Delivery: key(), Reason: "recall"})
	case 9:
		r.faults(mock.FaultsInput{Offline: coin(), TimeoutNextOpen: coin(), DropCloseReports: coin(), Disabled: coin(), AdvanceSeconds: dice.IntN(4) * dice.IntN(400)})
	case 10:
		_, _ = r.Lockers.Confirm(ctx, r.me, locker.ConfirmInput{Delivery: key()})
	}
	if dice.IntN(3) == 0 {
		return
	}
	time.Sleep(time.Duration(dice.IntN(40)) * time.Second)
	synctest.Wait()
}
