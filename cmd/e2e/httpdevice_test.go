package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// dropBox is the program httpdevice, and what a person before it sees.
type dropBox struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu    sync.Mutex
	doors map[string]string // by number: how it stands
	swung map[string]int    // and how often it opened
	said  []string
}

func (d *dropBox) start(bin programs) {
	d.t.Helper()
	d.cmd = exec.Command(filepath.Join(string(bin), "httpdevice"), d.args...)
	d.cmd.Stderr = os.Stderr
	var err error
	d.in, err = d.cmd.StdinPipe()
	require.NoError(d.t, err)
	out, err := d.cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, d.cmd.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.mu.Lock()
			if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "door" {
				if d.doors[f[1]] = f[2]; f[2] == "open" {
					d.swung[f[1]]++
				}
			}
			d.said = append(d.said, lines.Text())
			d.mu.Unlock()
		}
	}()
}

func (d *dropBox) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *dropBox) type_(line string) {
	_, err := fmt.Fprintln(d.in, line)
	require.NoError(d.t, err)
}

// open lists the doors that stand open.
func (d *dropBox) open() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, state := range d.doors {
		if state == "open" {
			out = append(out, n)
		}
	}
	return out
}

func (d *dropBox) swings() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.swung {
		n += k
	}
	return n
}

func (d *dropBox) closeAll() {
	for _, n := range d.open() {
		d.type_("close " + n)
	}
}

// A small device that only speaks HTTP takes a parcel and gives it out: remotely, with its
// codes, and over a start of its program. Each door opens as often as it was to.
func TestADeviceThatSpeaksHTTP(t *testing.T) {
	bin := build(t)
	box := sandboxOf(t, bin)
	admin, partner := person{box.BaseURL, box.Admin.Token, "en"}, person{box.BaseURL, box.Provider.Token, "en"}
	made := admin.do(t, "POST", "/api/v1/smart-lockers/devices", map[string]any{"device_name": "Drop box", "device_code": "DROP-1", "layout": "small", "protocol": "http"})
	require.Equal(t, http.StatusCreated, made.status, "%v", made.body)
	id := int64(made.at("device", "device_id").(float64))
	d := &dropBox{t: t, doors: map[string]string{}, swung: map[string]int{},
		args: []string{"--cloud", box.BaseURL, "--code", "DROP-1", "--token", made.at("enrolment", "token").(string), "--file", filepath.Join(t.TempDir(), "drop.json")}}
	d.start(bin)
	t.Cleanup(func() { d.kill() })
	status := func() any {
		return admin.do(t, "GET", "/api/v1/smart-lockers/devices/"+strconv.FormatInt(id, 10), nil).at("device", "status")
	}
	ring.Await(t, func() bool { return status() == "online" })

	create := func(ref string) (string, string) {
		a := partner.do(t, "POST", "/api/v1/third-party-delivery/deliveries", map[string]any{"reference_number": ref, "device_id": id,
			"packages": []any{map[string]any{"tracking_number": "PK-" + ref, "size": "S"}}, "recipient": map[string]any{"name": "Ana", "email": "ana@example.com"}})
		require.Equal(t, http.StatusCreated, a.status, "%v", a.body)
		return fmt.Sprint(int64(a.at("delivery", "delivery_id").(float64))), a.at("delivery", "delivery_code").(string)
	}
	state := func(delivery string) any {
		return partner.do(t, "GET", "/api/v1/third-party-delivery/deliveries/"+delivery, nil).at("delivery", "status")
	}

	// From afar.
	first, _ := create("H-1")
	a := partner.do(t, "POST", "/api/v1/third-party-delivery/deliveries/"+first+"/open-doors", map[string]any{"wait_seconds": 20})
	require.Equal(t, http.StatusOK, a.status, "%v", a.body)
	require.Len(t, d.open(), 1)
	require.Equal(t, "doors_opened", state(first))
	time.Sleep(time.Second)
	d.closeAll()
	ring.Await(t, func() bool { return state(first) == "delivered" })
	code := partner.do(t, "GET", "/api/v1/third-party-delivery/deliveries/"+first, nil).at("delivery", "pickup_code").(string)

	// With a code at the keypad; a wrong one opens nothing.
	second, deliveryCode := create("H-2")
	d.type_("code 999999")
	d.type_("code " + deliveryCode)
	ring.Await(t, func() bool { return len(d.open()) == 1 })
	d.closeAll()
	ring.Await(t, func() bool { return state(second) == "delivered" })
	require.Equal(t, 2, d.swings())

	// The recipient, as the program starts again.
	d.kill()
	d.start(bin)
	ring.Await(t, func() bool { return len(d.doors) > 0 })
	time.Sleep(2 * time.Second)
	require.Empty(t, d.open(), "a start opens nothing")
	d.type_("scan PU:DROP-1:" + code)
	ring.Await(t, func() bool { return len(d.open()) == 1 })
	d.closeAll()
	ring.Await(t, func() bool { return state(first) == "picked_up" })
	require.Equal(t, 3, d.swings())
	require.Equal(t, "delivered", state(second))
}

// simpleStory plays one day of one device that speaks HTTP, and judges it.
func simpleStory(t *testing.T, play func(t *testing.T, w *world, b *httpBox)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		defer w.close()
		w.simple = w.newBox()
		w.awaits("the device is there", time.Minute, w.simple.told)
		play(t, w, w.simple)
		time.Sleep(time.Minute) // events arrive
		w.judge(t)
	})
}

// sends makes a delivery to the device, with a purpose one that its sender brings.
func (b *httpBox) sends(purpose, ref string) *task {
	b.w.t.Helper()
	in := locker.CreateInput{ReferenceNumber: ref, DeviceID: b.id, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-" + ref, Size: "S"}}}
	if purpose != "" {
		in.Purpose, in.Sender, in.Recipient.Address = purpose, &cloud.Sender{Name: "Sid Sender", Phone: "+14165550199"}, "1 Main St"
	}
	out, err := b.w.cloud.Lockers.Create(context.Background(), b.w.box.ProviderCaller, in)
	require.NoError(b.w.t, err)
	return &task{ref: ref, id: out.Delivery.DeliveryID, number: out.Delivery.DeliveryNumber, packages: []string{"PK-" + ref}, outgoing: purpose != ""}
}

// brings types a code and leaves the parcel.
func (b *httpBox) brings(x *task, code string) (door uint) {
	b.w.t.Helper()
	began := time.Now()
	out, err := b.enter(truth.Act{Delivery: x.number, Code: wire.CodeDelivery}, code, false)
	require.NoError(b.w.t, err)
	require.Equal(b.w.t, "open", out.Action, out.Reason)
	doors := b.useDoors(x, began, func(n uint) bool { return b.put(n, x.packages[0]) == nil })
	require.Equal(b.w.t, out.Doors, doors)
	time.Sleep(2 * time.Second)
	b.close(doors[0])
	b.w.delivered(x.ref)
	return doors[0]
}

// A sender brings a parcel to a device that speaks HTTP with the code of the message, as the
// power fails at the open door. No code of a recipient opens it, and a courier collects it once.
func TestASenderBringsAParcelToADeviceThatSpeaksHTTP(t *testing.T) {
	simpleStory(t, func(t *testing.T, w *world, b *httpBox) {
		ctx, by := context.Background(), w.box.ProviderCaller
		x := b.sends(wire.PurposeSend, "S-1")
		require.Nil(t, w.find("S-1").PickupCode)
		codes, ok := w.codes(x)
		require.True(t, ok)
		began := time.Now()
		out, err := b.enter(truth.Act{Delivery: x.number, Code: wire.CodeDelivery}, codes.Delivery, true)
		require.NoError(t, err)
		require.Equal(t, "open", out.Action)
		doors := b.useDoors(x, began, func(n uint) bool { return b.put(n, "PK-S-1") == nil })
		require.Len(t, doors, 1)
		b.powerOff()
		time.Sleep(30 * time.Second)
		b.close(doors[0])
		b.powerOn()
		w.delivered("S-1")
		again, err := b.enter(truth.Act{Delivery: x.number, Code: wire.CodeDelivery}, codes.Delivery, false)
		require.NoError(t, err)
		require.Equal(t, []string{"deny", wire.CodeExpired}, []string{again.Action, again.Reason}, "once")
		require.Nil(t, w.find("S-1").PickupCode)
		require.False(t, w.find("S-1").PickupCodeActive)

		b.collect(x, rand.New(rand.NewPCG(1, 1)))
		require.Equal(t, cloud.DeliveryPickedUp, w.find("S-1").Status)
		_, err = w.cloud.Lockers.Retrieve(ctx, by, locker.RetrieveInput{Delivery: "ref:S-1", Reason: "collection"})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err), "it is collected once")
	})
}

// A recipient returns by the link of the parcel what was collected at a device that speaks HTTP.
// A compartment that staff block takes nothing, and what staff take out is removed once.
func TestARecipientReturnsAParcelToADeviceThatSpeaksHTTP(t *testing.T) {
	simpleStory(t, func(t *testing.T, w *world, b *httpBox) {
		ctx := context.Background()
		x := b.sends("", "R-1")
		codes, ok := w.codes(x)
		require.True(t, ok)
		first := b.brings(x, codes.Delivery)
		b.collect(x, rand.New(rand.NewPCG(1, 1)))
		b.close(first)
		w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		require.NoError(t, w.cloud.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			row, err := v.Business(w.box.ProviderCaller.Provider.BusinessID)
			row.Settings.LockerReturns = true
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{row}}}, err
		}))
		cells, err := w.cloud.Store.ListCompartments(ctx, b.id)
		require.NoError(t, err)
		grid := func(door uint) cloud.Compartment {
			return cells[slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.Door == door })]
		}
		_, err = w.cloud.Lockers.Block(ctx, w.staff, locker.BlockInput{Device: b.id, Grid: grid(first).GridID, Reason: "dirty"})
		require.NoError(t, err)

		out, err := w.cloud.Lockers.ReturnParcel(ctx, cloud.Caller{}, locker.ParcelReturnInput{Number: x.number, Key: w.link(x)})
		require.NoError(t, err)
		back := &task{ref: "RETURN-" + out.Return.DeliveryNumber, number: out.Return.DeliveryNumber, packages: out.Return.TrackingNumbers, outgoing: true}
		require.NoError(t, w.cloud.Store.Look(ctx, func(v cloud.View) error {
			d, err := v.DeliveryByReference(w.box.ProviderCaller.Provider.ID, back.ref)
			back.id = d.ID
			return err
		}))
		door := b.brings(back, *out.Return.DropoffCode)
		require.NotEqual(t, first, door, "that one is blocked")

		_, err = w.cloud.Lockers.Unblock(ctx, w.staff, locker.UnblockInput{Device: b.id, Grid: grid(first).GridID})
		require.NoError(t, err)
		yes := true
		n := w.act(truth.Act{Cabinet: b.code, Kind: edge.ByCommand, Code: string(wire.OpenStaff)})
		_, err = w.cloud.Lockers.OpenGrids(ctx, w.staff, locker.StaffOpenInput{Device: b.id, Grids: []cloud.GridID{grid(door).GridID}, Reason: "it smells", Attended: &yes})
		require.NoError(t, err)
		b.answered(n, true, wire.CodeOK, []uint{door})
		w.awaits("the door opens", time.Minute, func() bool { return b.with(door, func(*boxDoor) {}) == nil })
		items, err := b.take(door)
		require.NoError(t, err)
		require.Equal(t, back.packages, items)
		b.close(door)
		w.awaits("removed", time.Minute, func() bool { return w.removeRows(b.id, back.id, grid(door).GridCode, "pending_area") == nil })
		require.Equal(t, cloud.DeliveryFailed, w.find(back.ref).Status)
	})
}
