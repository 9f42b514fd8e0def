package mock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mock"
	"github.com/postern-io/postern/internal/ring"
)

var ctx = context.Background()

// rehearsal is a provider with its mock cabinet.
type rehearsal struct {
	*devicetest.World
	t      *testing.T
	me     cloud.Caller
	device cloud.Device
}

// rehearse runs f in simulated time with a fresh world.
func rehearse(t *testing.T, name string, f func(r *rehearsal)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := devicetest.New(t, nil)
			defer w.Stop()
			r := &rehearsal{World: w, t: t, me: w.Box.ProviderCaller}
			w.Look(func(v cloud.View) (err error) {
				r.device, err = v.MockOf(r.me.Provider.ID)
				return err
			})
			f(r)
		})
	})
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func (r *rehearsal) create(ref string, sizes ...string) locker.DeliveryBody {
	r.t.Helper()
	in := locker.CreateInput{ReferenceNumber: ref, DeviceID: r.device.ID, Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550123"}}
	for i, s := range sizes {
		in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: ref + "-" + string(rune('A'+i)), Size: s})
	}
	out, err := r.Lockers.Create(ctx, r.me, in)
	require.NoError(r.t, err)
	return out.Delivery
}

func (r *rehearsal) find(ref string) locker.DeliveryBody {
	r.t.Helper()
	out, err := r.Lockers.Find(ctx, r.me, locker.DeliveryKey("ref:"+ref))
	require.NoError(r.t, err)
	return out.Delivery
}

// open opens the doors of a delivery from afar and gives their compartments.
func (r *rehearsal) open(ref string) (grids []cloud.GridID) {
	r.t.Helper()
	out, err := r.Lockers.OpenDoors(ctx, r.me, locker.OpenInput{Delivery: locker.DeliveryKey("ref:" + ref)})
	require.NoError(r.t, err)
	require.False(r.t, out.Pending)
	for _, c := range out.Opening.Compartments {
		require.Equal(r.t, "open", c.DoorStatus)
		grids = append(grids, c.GridID)
	}
	return grids
}

func (r *rehearsal) move(g cloud.GridID, action string, occupied *bool) mock.Output {
	r.t.Helper()
	out, err := r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: g, Action: action, Occupied: occupied})
	require.NoError(r.t, err)
	return out
}

func (r *rehearsal) close(grids ...cloud.GridID) {
	r.t.Helper()
	for _, g := range grids {
		r.move(g, "close", nil)
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func (r *rehearsal) deposit(ref string, sizes ...string) []cloud.GridID {
	r.t.Helper()
	r.create(ref, sizes...)
	grids := r.open(ref)
	r.close(grids...)
	require.Equal(r.t, cloud.DeliveryDelivered, r.find(ref).Status)
	return grids
}

func (r *rehearsal) faults(in mock.FaultsInput) mock.Output {
	r.t.Helper()
	in.Device = r.device.ID
	out, err := r.Mocks.SetFaults(ctx, r.me, in)
	require.NoError(r.t, err)
	return out
}

// told are the events of a delivery in their order, each marked as a test.
func (r *rehearsal) told(ref string, names ...string) {
	r.t.Helper()
	list, err := r.Lockers.ListDeliveryEvents(ctx, r.me, locker.DeliveryKey("ref:"+ref))
	require.NoError(r.t, err)
	var got []string
	for _, e := range list.Events {
		require.True(r.t, strings.HasPrefix(e.EventID, "PLE-MOCK-"), e.EventID)
		got = append(got, strings.TrimPrefix(e.Event, "locker_delivery."))
	}
	require.Equal(r.t, names, got)
}

func (r *rehearsal) exceptions() (out []string) {
	r.t.Helper()
	r.Look(func(v cloud.View) error {
		list, err := v.OpenExceptions(r.device.ID)
		for _, e := range list {
			out = append(out, e.Type)
		}
		return err
	})
	return out
}

func TestMockCabinet(t *testing.T) {
	t.Parallel()
	yes, no := new(true), new(false)
	rehearse(t, "it is there, online and empty", func(r *rehearsal) {
		require.Equal(r.t, "MOCK-swiftparcel", r.device.Code)
		require.False(r.t, r.device.Livemode)
		out, err := r.Lockers.ListLockers(ctx, r.me, locker.LockersInput{Livemode: no})
		require.NoError(r.t, err)
		require.Len(r.t, out.Lockers, 1)
		require.Equal(r.t, "online", out.Lockers[0].Status)
		row := out.Lockers[0]
		require.Equal(r.t, map[string]int{"S": 4, "M": 4, "L": 2, "XL": 1}, row.Availability)
		require.Equal(r.t, []any{"mock", r.me.Provider.BusinessID, r.me.Provider.ID, cloud.DeviceFeatures{RemoteOpen: true}}, []any{row.Protocol, row.BusinessID, *row.OwnerProviderID, row.Features})
		out, err = r.Lockers.ListLockers(ctx, r.me, locker.LockersInput{Livemode: no, Size: "L"})
		require.NoError(r.t, err)
		require.Equal(r.t, map[string]int{"L": 2, "XL": 1}, out.Lockers[0].Availability, "of those that take it")
		one, err := r.Lockers.FindLocker(ctx, r.me, locker.LockerInput{Device: r.device.ID})
		require.NoError(r.t, err)
		for _, g := range one.Locker.Shelves[0].Grids {
			require.NotNil(r.t, g.Inner)
		}
	})
	rehearse(t, "the life of a delivery", func(r *rehearsal) {
		r.create("R-1", "S", "L")
		grids := r.open("R-1")
		require.Len(r.t, grids, 2)
		r.told("R-1", "doors_opened")
		r.move(grids[0], "close", yes)
		time.Sleep(time.Minute)
		require.Equal(r.t, cloud.DeliveryDoorsOpened, r.find("R-1").Status, "one door is open")
		r.close(grids[1])
		d := r.find("R-1")
		require.Equal(r.t, cloud.DeliveryDelivered, d.Status)
		require.EqualValues(r.t, "door_close", *d.ConfirmedBy)
		r.told("R-1", "doors_opened", "delivered")
		out, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: *d.PickupCode})
		require.NoError(r.t, err)
		require.NotEmpty(r.t, out.OpeningID)
		time.Sleep(time.Minute)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status, "the doors are open")
		for _, g := range grids {
			r.move(g, "close", no)
		}
		r.close()
		d = r.find("R-1")
		require.Equal(r.t, cloud.DeliveryPickedUp, d.Status)
		r.told("R-1", "doors_opened", "delivered", "picked_up")
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: d.DeliveryID})
		require.Equal(r.t, "DELIVERY_STATE_CONFLICT", code(err))
		r.deposit("R-2", "S", "L")
		require.Empty(r.t, r.exceptions())
	})
	rehearse(t, "a parcel that its sender brings", func(r *rehearsal) {
		made, err := r.Lockers.Create(ctx, r.me, locker.CreateInput{ReferenceNumber: "R-1", DeviceID: r.device.ID, Purpose: "send", Sender: &cloud.Sender{Name: "Sid", Phone: "+14165550199"},
			Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-OUT", Size: "M"}}})
		require.NoError(r.t, err)
		out, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: *made.Delivery.DeliveryCode})
		require.NoError(r.t, err, "the sender types the code")
		require.NotEmpty(r.t, out.OpeningID)
		r.close(*r.find("R-1").Packages[0].GridID)
		d := r.find("R-1")
		require.Equal(r.t, cloud.DeliveryDelivered, d.Status)
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: d.DeliveryID})
		var e *cloud.Error
		require.ErrorAs(r.t, err, &e)
		require.Equal(r.t, "DELIVERY_STATE_CONFLICT", e.Code)
		require.Equal(r.t, []any{"send", []string{"third_party.deliveries.retrieve"}}, []any{e.Details["purpose"], e.Details["allowed"]})
	})
	rehearse(t, "codes", func(r *rehearsal) {
		r.deposit("R-1", "M")
		for _, in := range []mock.PickupInput{{}, {Delivery: 1, Code: "123456"}} {
			in.Device = r.device.ID
			_, err := r.Mocks.PickUp(ctx, r.me, in)
			require.Equal(r.t, "VALIDATION_FAILED", code(err))
		}
		pickup := r.find("R-1").PickupCode
		for n := range 12 {
			wrong := "000001"
			if *pickup == wrong {
				wrong = "000002"
			}
			_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: wrong})
			require.Equal(r.t, "CODE_REFUSED", code(err), n)
		}
		_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: *pickup})
		var e *cloud.Error
		require.ErrorAs(r.t, err, &e)
		require.Equal(r.t, "locked_out", e.Details["outcome"])
		r.faults(mock.FaultsInput{Clear: true})
		require.Equal(r.t, cloud.DeliveryFailed, r.find("R-1").Status, "it was taken out")
		grids := r.deposit("R-2", "M")
		pickup = r.find("R-2").PickupCode
		_, err = r.Lockers.RotatePickupCode(ctx, r.me, locker.RotateInput{Delivery: "ref:R-2"})
		require.NoError(r.t, err)
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: *pickup})
		require.Equal(r.t, "CODE_REFUSED", code(err), "it was replaced")
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find("R-2").DeliveryID})
		require.NoError(r.t, err)
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("R-2").Status)
	})
	rehearse(t, "a jammed door", func(r *rehearsal) {
		r.create("R-1", "XL")
		out := r.faults(mock.FaultsInput{})
		xl := out.Locker.Doors[10].GridID
		r.move(xl, "jam", nil)
		_, err := r.Lockers.OpenDoors(ctx, r.me, locker.OpenInput{Delivery: "ref:R-1"})
		require.Equal(r.t, "DELIVERY_STATE_CONFLICT", code(err))
		time.Sleep(time.Minute)
		require.NotContains(r.t, []cloud.DeliveryStatus{cloud.DeliveryDelivered, cloud.DeliveryDoorsOpened}, r.find("R-1").Status)
		r.faults(mock.FaultsInput{Clear: true})
		synctest.Wait()
		require.Empty(r.t, r.exceptions())
		r.close(r.open("R-1")...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
	})
	rehearse(t, "an order without an answer", func(r *rehearsal) {
		r.create("R-1", "S")
		require.True(r.t, r.faults(mock.FaultsInput{TimeoutNextOpen: yes}).Locker.Faults.TimeoutNextOpen)
		wait := 20
		_, err := r.Lockers.OpenDoors(ctx, r.me, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &wait})
		require.Equal(r.t, "DEVICE_TIMEOUT", code(err))
		time.Sleep(5 * time.Second)
		r.close(r.open("R-1")...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		require.False(r.t, r.faults(mock.FaultsInput{}).Locker.Faults.TimeoutNextOpen, "once")
	})
	rehearse(t, "offline in the middle of a deposit", func(r *rehearsal) {
		r.create("R-1", "S")
		grids := r.open("R-1")
		require.False(r.t, r.faults(mock.FaultsInput{Offline: yes}).Locker.Online)
		_, err := r.Lockers.OpenDoors(ctx, r.me, locker.OpenInput{Delivery: "ref:R-1"})
		require.Equal(r.t, "DEVICE_OFFLINE", code(err))
		before := time.Now()
		r.close(grids...)
		time.Sleep(time.Hour)
		require.Equal(r.t, cloud.DeliveryDoorsOpened, r.find("R-1").Status)
		require.True(r.t, r.faults(mock.FaultsInput{Offline: no}).Locker.Online)
		synctest.Wait()
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		r.Look(func(v cloud.View) error {
			d, err := v.Delivery(r.find("R-1").DeliveryID)
			require.WithinDuration(r.t, before, d.DepositedAt, time.Minute, "when the door closed")
			return err
		})
		// A code is checked without a network.
		r.faults(mock.FaultsInput{Offline: yes})
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find("R-1").DeliveryID})
		require.NoError(r.t, err)
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		r.faults(mock.FaultsInput{Clear: true})
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("R-1").Status)
		r.told("R-1", "doors_opened", "delivered", "picked_up")
	})
	rehearse(t, "a door whose closing is not reported", func(r *rehearsal) {
		r.create("R-1", "S")
		grids := r.open("R-1")
		r.faults(mock.FaultsInput{DropCloseReports: yes})
		r.close(grids...)
		doors, err := r.Lockers.Doors(ctx, r.me, "ref:R-1")
		require.NoError(r.t, err)
		require.Equal(r.t, "unknown", doors.Doors[0].DoorStatus)
		require.Equal(r.t, "unknown", doors.Opening.Compartments[0].DoorStatus, "of the same door")
		time.Sleep(9 * time.Minute)
		require.Equal(r.t, cloud.DeliveryDoorsOpened, r.find("R-1").Status)
		time.Sleep(2 * time.Minute)
		require.EqualValues(r.t, "timeout_door_closed", *r.find("R-1").ConfirmedBy)
		require.Empty(r.t, r.exceptions())
		r.faults(mock.FaultsInput{Clear: true})
		r.create("R-2", "S")
		grids = r.open("R-2")
		r.faults(mock.FaultsInput{DropCloseReports: yes})
		r.close(grids...)
		r.faults(mock.FaultsInput{DropCloseReports: no})
		time.Sleep(5 * time.Second)
		require.EqualValues(r.t, "door_close", *r.find("R-2").ConfirmedBy, "the session ran")
	})
	rehearse(t, "time runs ahead", func(r *rehearsal) {
		start := time.Now()
		ahead := func(by time.Duration) mock.Output {
			return r.faults(mock.FaultsInput{AdvanceSeconds: int(by / time.Second)})
		}
		r.create("R-1", "S")
		r.create("R-2", "M")
		r.open("R-1")
		out := ahead(10 * time.Minute)
		require.Equal(r.t, []string{"door_left_open"}, r.exceptions())
		require.Equal(r.t, "door_left_open", out.Locker.Exceptions[0].Type)
		r.close(*r.find("R-1").Packages[0].GridID)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		before := *r.find("R-2").DeliverBefore
		ahead(time.Hour)
		require.NotEqual(r.t, before, *r.find("R-2").DeliverBefore)
		require.Equal(r.t, cloud.DeliveryCreated, r.find("R-2").Status)
		ahead(72 * time.Hour)
		require.Equal(r.t, cloud.DeliveryExpired, r.find("R-2").Status)
		r.told("R-2", "expired")
		require.Equal(r.t, cloud.DeliveryExpired, r.find("R-1").Status, "it is overdue")
		r.told("R-1", "doors_opened", "delivered", "expired")
		require.Equal(r.t, []string{"overdue"}, r.exceptions())
		_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find("R-1").DeliveryID})
		require.NoError(r.t, err, "its code works")
		r.close(*r.find("R-1").Packages[0].GridID)
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("R-1").Status)
		require.Empty(r.t, r.exceptions())
		require.Less(r.t, time.Since(start), time.Minute, "by the clock")
		r.deposit("R-3", "S")
		_, err = r.Lockers.Correct(ctx, r.me, locker.CorrectInput{Delivery: "ref:R-3", Reason: "Wrong parcel"})
		require.NoError(r.t, err)
		r.close(*r.find("R-3").Packages[0].GridID)
		ahead(16 * time.Minute)
		_, err = r.Lockers.Correct(ctx, r.me, locker.CorrectInput{Delivery: "ref:R-3", Reason: "Wrong parcel"})
		require.Equal(r.t, "CORRECTION_WINDOW_CLOSED", code(err))
	})
	rehearse(t, "a keypad that is locked takes codes once time has passed", func(r *rehearsal) {
		grids := r.deposit("R-1", "M")
		pickup := *r.find("R-1").PickupCode
		for range 6 {
			_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: "000001"})
			require.Equal(r.t, "CODE_REFUSED", code(err))
		}
		_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: pickup})
		require.Equal(r.t, "CODE_REFUSED", code(err))
		r.faults(mock.FaultsInput{AdvanceSeconds: 301})
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: pickup})
		require.NoError(r.t, err)
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("R-1").Status)
	})
	rehearse(t, "a courier who is done, and staff who confirm", func(r *rehearsal) {
		r.create("R-1", "S")
		out, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Code: *r.find("R-1").DeliveryCode})
		require.NoError(r.t, err, "the courier types the code")
		require.NotEmpty(r.t, out.OpeningID)
		g := *r.find("R-1").Packages[0].GridID
		r.move(g, "done", nil)
		r.close(g)
		require.EqualValues(r.t, "courier_terminal", *r.find("R-1").ConfirmedBy)
		r.create("R-2", "S")
		grids := r.open("R-2")
		_, err = r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: grids[0], Action: "staff_confirm"})
		require.Equal(r.t, "DELIVERY_STATE_CONFLICT", code(err), "its door is open")
		r.faults(mock.FaultsInput{DropCloseReports: yes})
		r.move(grids[0], "close", nil)
		r.move(grids[0], "staff_confirm", nil)
		require.EqualValues(r.t, "console", *r.find("R-2").ConfirmedBy)
		time.Sleep(time.Minute)
		r.told("R-2", "doors_opened", "delivered")
		for _, action := range []string{"done", "staff_confirm"} {
			_, err = r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: r.faults(mock.FaultsInput{}).Locker.Doors[10].GridID, Action: action})
			require.Equal(r.t, "DELIVERY_STATE_CONFLICT", code(err), action)
		}
	})
	rehearse(t, "out of service", func(r *rehearsal) {
		require.True(r.t, r.faults(mock.FaultsInput{Disabled: yes}).Locker.Disabled)
		_, err := r.Lockers.Create(ctx, r.me, locker.CreateInput{ReferenceNumber: "R-1", DeviceID: r.device.ID, Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK", Size: "M"}}})
		require.Equal(r.t, "DEVICE_DISABLED", code(err))
		require.False(r.t, r.faults(mock.FaultsInput{Clear: true}).Locker.Disabled)
		r.deposit("R-1", "M")
	})
	rehearse(t, "a door that is forced", func(r *rehearsal) {
		r.deposit("R-1", "S")
		out := r.faults(mock.FaultsInput{})
		r.move(out.Locker.Doors[3].GridID, "open", nil)
		time.Sleep(5 * time.Second)
		require.Equal(r.t, []string{"door_left_open"}, r.exceptions())
		r.faults(mock.FaultsInput{Offline: yes})
		time.Sleep(time.Hour)
		r.Look(func(v cloud.View) error {
			items, _, err := v.WorkItems(cloud.WorkFilter{BusinessID: r.device.BusinessID, Kinds: []string{cloud.WorkException, cloud.WorkSilent, cloud.WorkFault}, Now: time.Now(), Limit: 10})
			for _, x := range items {
				require.NotEqual(r.t, r.device.ID, x.DeviceID, "a rehearsal is no work of the operator's")
			}
			return err
		})
		r.faults(mock.FaultsInput{Offline: no})
		r.close(out.Locker.Doors[3].GridID)
		require.Empty(r.t, r.exceptions())
	})
	rehearse(t, "nothing was put in", func(r *rehearsal) {
		r.create("R-1", "S")
		grids := r.open("R-1")
		r.move(grids[0], "close", no)
		r.close()
		require.NotEqual(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		require.Equal(r.t, []string{"deposit_unverified"}, r.exceptions())
		r.faults(mock.FaultsInput{Clear: true})
		synctest.Wait()
		require.Empty(r.t, r.exceptions())
		require.Equal(r.t, cloud.DeliveryFailed, r.find("R-1").Status)
		for n := range 4 {
			r.deposit("R-2"+string(rune('A'+n)), "S")
		}
	})
	rehearse(t, "a correction, a recall, an expiry", func(r *rehearsal) {
		grids := r.deposit("R-1", "S")
		_, err := r.Lockers.Correct(ctx, r.me, locker.CorrectInput{Delivery: "ref:R-1", Reason: "Wrong parcel"})
		require.NoError(r.t, err)
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		_, err = r.Lockers.Retrieve(ctx, r.me, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "recall"})
		require.NoError(r.t, err)
		r.close(grids...)
		_, err = r.Lockers.RetrieveConfirm(ctx, r.me, locker.RetrieveConfirmInput{Delivery: "ref:R-1"})
		require.NoError(r.t, err)
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("R-1").Status)
		r.told("R-1", "doors_opened", "delivered", "correction_reopened", "delivered", "picked_up")
		r.deposit("R-2", "S")
	})
	rehearse(t, "another's, a real one, no such door", func(r *rehearsal) {
		real := r.Box.Devices[0].DeviceID
		_, err := r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: real, Grid: 1, Action: "open"})
		require.Equal(r.t, "NOT_A_TEST_LOCKER", code(err))
		_, err = r.Mocks.SetFaults(ctx, r.me, mock.FaultsInput{Device: real, Offline: yes})
		require.Equal(r.t, "NOT_A_TEST_LOCKER", code(err))
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: real, Code: "123456"})
		require.Equal(r.t, "NOT_A_TEST_LOCKER", code(err))
		_, err = r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: 99999, Grid: 1, Action: "open"})
		require.Equal(r.t, "DEVICE_NOT_FOUND", code(err))
		_, err = r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: 1, Action: "open"})
		require.Equal(r.t, "GRID_NOT_FOUND", code(err))
		other := r.me
		other.Provider.ID++
		_, err = r.Mocks.SetFaults(ctx, other, mock.FaultsInput{Device: r.device.ID, Offline: yes})
		require.Equal(r.t, "DEVICE_NOT_SHARED", code(err))
	})
}

// A cabinet goes on where it was after its node has ended between any two steps, and begins
// as one that has lost its memory when its state is of another form.
func TestMockCabinetOutlivesItsNode(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestMockCabinet")
	t.Parallel()
	rehearse(t, "ends with a door open", func(r *rehearsal) {
		r.create("R-1", "S")
		grids := r.open("R-1")
		r.Stop()
		r.Start()
		r.move(grids[0], "close", nil)
		r.Stop() // before the deposit settles
		time.Sleep(time.Minute)
		r.Start()
		time.Sleep(5 * time.Second)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
		r.told("R-1", "doors_opened", "delivered")
	})
	rehearse(t, "a state that cannot be read", func(r *rehearsal) {
		grids := r.deposit("R-1", "S")
		r.create("R-2", "M")
		r.open("R-2")
		require.NoError(r.t, r.Store.Decide(ctx, r.device.ID, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Mocks: []cloud.MockCabinet{{DeviceID: r.device.ID, State: []byte("of another form"), DueAt: time.Now()}}}}, nil
		}))
		time.Sleep(5 * time.Second)
		require.Equal(r.t, []string{"deposit_unverified"}, r.exceptions(), "of the deposit that ran")
		_, err := r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find("R-1").DeliveryID})
		require.NoError(r.t, err)
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("R-1").Status)
	})
}
