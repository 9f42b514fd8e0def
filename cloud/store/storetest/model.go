package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/wire"
)

// model is what the store should hold, as maps.
type model struct {
	compartments map[uint]cloud.Compartment
	deliveries   map[cloud.DeliveryID]cloud.Delivery
	openings     map[string]cloud.Opening
	commands     map[string]cloud.Command
	orders       map[cloud.DeviceOrderID]cloud.DeviceOrder
	exceptions   map[cloud.ExceptionID]cloud.Exception
}

// changesAgainstModel writes random changes and compares every View of them
// with plain maps. A third of the decisions are refused half-way.
func changesAgainstModel(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1)}}})
	m := model{map[uint]cloud.Compartment{}, map[cloud.DeliveryID]cloud.Delivery{}, map[string]cloud.Opening{},
		map[string]cloud.Command{}, map[cloud.DeviceOrderID]cloud.DeviceOrder{}, map[cloud.ExceptionID]cloud.Exception{}}
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		c := randomChanges(r)
		if r.IntN(3) == 0 {
			c.Lanes = []cloud.LaneMove{{From: 77, To: lane(1, 78)}}
			c.Lanes = append([]cloud.LaneMove{{To: cloud.LaneState{DeviceID: 1, Epoch: epoch(9)}}}, c.Lanes...)
			err := db.Decide(t.Context(), 1, func(cloud.View) (*cloud.Changes, error) { return c, nil })
			require.ErrorIs(t, err, cloud.ErrStale)
		} else {
			write(t, db, 1, c)
			m.apply(c)
		}
		look(t, db, func(v cloud.View) { m.compare(t, v) })
	})
}

func randomChanges(r *rand.Rand) *cloud.Changes {
	c := &cloud.Changes{}
	for range r.IntN(3) {
		g := random[cloud.Compartment](r)
		g.Door, g.DeviceID = uint(r.IntN(4)+1), 1
		g.GridID = cloud.GridID(g.Door)
		c.Compartments = append(c.Compartments, g)
		c.Doors = append(c.Doors, cloud.DoorPresent{DeviceID: 1, Door: g.Door, DoorStatus: "jammed", OpeningID: "o"})
	}
	for range r.IntN(3) {
		d := random[cloud.Delivery](r)
		d.ID = cloud.DeliveryID(r.IntN(4) + 1)
		d.Number, d.Reference, d.ProviderID = fmt.Sprint("LD-", d.ID), fmt.Sprint("R-", d.ID), 7
		d.Metadata = []byte(`{"a": 1}`)
		d.CollectWithin = time.Duration(r.IntN(1e6)) * time.Millisecond
		for i := range d.Packages {
			d.Packages[i].Position = i
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	for range r.IntN(3) {
		o := random[cloud.Opening](r)
		o.ID, o.DeviceID, o.DeliveryID = fmt.Sprint("op", r.IntN(5)), 1, cloud.DeliveryID(r.IntN(2))
		o.State = []string{cloud.OpeningRequested, cloud.OpeningRunning, cloud.OpeningSettled, cloud.OpeningEnded}[r.IntN(4)]
		c.Openings = append(c.Openings, o)
	}
	for range r.IntN(3) {
		m := random[cloud.Command](r)
		m.ID, m.DeviceID = fmt.Sprint("c", r.IntN(5)), 1
		m.Kind = []wire.CommandKind{wire.CmdBlock, wire.CmdUnblock, wire.CmdCloseSession, wire.CmdOpenDoors}[r.IntN(4)]
		m.State = []cloud.CommandState{cloud.CommandQueued, cloud.CommandSent, cloud.CommandAccepted, cloud.CommandDone}[r.IntN(4)]
		c.Commands = append(c.Commands, m)
	}
	for range r.IntN(3) {
		o := random[cloud.DeviceOrder](r)
		o.ID, o.DeviceID, o.DeliveryID = cloud.DeviceOrderID(r.IntN(4)+1), 1, cloud.DeliveryID(r.IntN(2))
		c.DeviceOrders = append(c.DeviceOrders, o)
		e := random[cloud.Exception](r)
		e.ID, e.DeviceID = cloud.ExceptionID(o.ID), 1
		e.Source, e.Status = fmt.Sprint("s", e.ID), []string{"open", "resolved"}[r.IntN(2)]
		c.Exceptions = append(c.Exceptions, e)
	}
	return c
}

func (m *model) apply(c *cloud.Changes) {
	for _, g := range c.Compartments {
		m.compartments[g.Door] = g
	}
	for _, d := range c.Doors {
		g := m.compartments[d.Door]
		g.DoorStatus, g.Occupied, g.OpeningID = d.DoorStatus, d.Occupied, d.OpeningID
		m.compartments[d.Door] = g
	}
	for _, d := range c.Deliveries {
		m.deliveries[d.ID] = d
	}
	for _, o := range c.Openings {
		m.openings[o.ID] = o
	}
	for _, x := range c.Commands {
		m.commands[x.ID] = x
	}
	for _, o := range c.DeviceOrders {
		m.orders[o.ID] = o
	}
	for _, e := range c.Exceptions {
		m.exceptions[e.ID] = e
	}
}

func (m *model) compare(t *testing.T, v cloud.View) {
	cs, err := v.Compartments(1)
	require.NoError(t, err)
	require.Equal(t, sorted(m.compartments, nil), cs)
	for id, want := range m.deliveries {
		for _, find := range []func() (cloud.Delivery, error){
			func() (cloud.Delivery, error) { return v.Delivery(id) },
			func() (cloud.Delivery, error) { return v.DeliveryByNumber(want.Number) },
			func() (cloud.Delivery, error) { return v.DeliveryByReference(7, want.Reference) },
		} {
			got, err := find()
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	for id, want := range m.openings {
		got, err := v.Opening(id)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	running, err := v.RunningOpenings(1)
	require.NoError(t, err)
	require.ElementsMatch(t, sorted(m.openings, func(o cloud.Opening) bool { return !o.Ended() }), running)
	of, err := v.DeliveryOpenings(1)
	require.NoError(t, err)
	require.ElementsMatch(t, sorted(m.openings, func(o cloud.Opening) bool { return o.DeliveryID == 1 }), of)
	require.True(t, slices.IsSortedFunc(of, func(a, b cloud.Opening) int { return a.RequestedAt.Compare(b.RequestedAt) }))
	cmds, err := v.OpenCommands(1)
	require.NoError(t, err)
	require.Equal(t, sorted(m.commands, func(c cloud.Command) bool { return !c.State.Ended() }), cmds)
	recent, err := v.RecentOrders(1)
	require.NoError(t, err)
	slices.Reverse(recent)
	require.Equal(t, sorted(m.commands, func(c cloud.Command) bool { return c.Kind != wire.CmdOpenDoors }), recent)
	for id, want := range m.commands {
		got, err := v.Command(id)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	orders, err := v.DeviceOrders(1)
	require.NoError(t, err)
	require.Equal(t, sorted(m.orders, func(o cloud.DeviceOrder) bool { return o.DeliveryID == 1 }), orders)
	open, err := v.OpenExceptions(1)
	require.NoError(t, err)
	require.Equal(t, sorted(m.exceptions, func(e cloud.Exception) bool { return e.Status == "open" }), open)
	for _, want := range m.exceptions {
		got, err := v.ExceptionBySource(1, want.Source)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = v.Lane(1, epoch(9), 0)
	require.ErrorIs(t, err, cloud.ErrNotFound)
}

// sorted lists the values that pass keep, by key; nil when there are none.
func sorted[K cmp.Ordered, V any](m map[K]V, keep func(V) bool) []V {
	var out []V
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if keep == nil || keep(m[k]) {
			out = append(out, m[k])
		}
	}
	return out
}

// random fills every field of a T.
func random[T any](r *rand.Rand) T {
	var v T
	fill(r, reflect.ValueOf(&v).Elem())
	return v
}

func fill(r *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if r.IntN(3) > 0 { // the opening that has no time yet sorts apart on the two engines
			v.Set(reflect.ValueOf(time.UnixMilli(r.Int64N(1 << 41)).UTC()))
		} else {
			v.Set(reflect.ValueOf(now))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "Ünï ‘包裹’", `"quoted" <b>`, "x y"}[r.IntN(5)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1 << 40))
	case reflect.Uint, reflect.Uint64:
		v.SetUint(r.Uint64N(1 << 62))
	case reflect.Uint8:
		v.SetUint(r.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(float64(r.IntN(1000)) / 8)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		if n := r.IntN(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i))
			}
		}
	case reflect.Map:
		if n := r.IntN(3); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(r, k)
				fill(r, e)
				v.SetMapIndex(k, e)
			}
		}
	default:
		panic("no random " + v.Type().String())
	}
}
