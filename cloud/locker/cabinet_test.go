package locker_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/wire"
)

// randomLayout has shelves, places and doors in any order.
func randomLayout(rnd *rand.Rand) (out []locker.LayoutShelf) {
	doors := rnd.Perm(64)
	for _, letter := range rnd.Perm(1 + rnd.IntN(4)) {
		shelf := locker.LayoutShelf{Code: string(rune('A' + letter))}
		for place := range rnd.Perm(1 + rnd.IntN(12)) {
			g := locker.LayoutGrid{Door: doors[0] + 1, Column: 1 + place%3, Row: 1 + place/3, Size: []string{"S", "M", "L", "XL"}[rnd.IntN(4)]}
			if doors = doors[1:]; rnd.IntN(4) == 0 {
				g.PickupEnabled = new(false)
			}
			shelf.Grids = append(shelf.Grids, g)
		}
		rnd.Shuffle(len(shelf.Grids), func(i, j int) { shelf.Grids[i], shelf.Grids[j] = shelf.Grids[j], shelf.Grids[i] })
		out = append(out, shelf)
	}
	return out
}

// before counts the compartments for pickup that come before one: those of shelves
// further left, of columns further left, and above it in its column.
func before(layout []locker.LayoutShelf, shelf int, g locker.LayoutGrid) (n int) {
	for i, s := range layout {
		for _, x := range s.Grids {
			first := i < shelf || i == shelf && (x.Column < g.Column || x.Column == g.Column && x.Row < g.Row)
			if first && (x.PickupEnabled == nil || *x.PickupEnabled) {
				n++
			}
		}
	}
	return n
}

// Whatever layout follows whatever other, pickup numbers follow the sequence rule,
// grid codes are unique and stay with a compartment on its shelf, and the cabinet's
// configuration is of the next version and says the same.
func TestPickupNumbersOfRandomLayouts(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		require.NoError(s.t, s.cancel())
		rnd := rand.New(rand.NewPCG(2, 71))
		codes := map[uint]locker.GridBody{}
		version := uint64(1)
		for range 40 {
			layout := randomLayout(rnd)
			out, err := s.Lockers.SetLayout(ctx, s.staff(), locker.LayoutInput{Device: s.ID, Shelves: layout, Version: new(int64(version))})
			require.NoError(s.t, err)
			version++
			require.Equal(s.t, version, out.Device.ConfigVersion)
			var row cloud.Device
			s.Look(func(v cloud.View) (err error) { row, err = v.Device(s.ID); return err })
			var conf wire.Config
			require.NoError(s.t, wire.Decode(row.Config, &conf))
			require.Equal(s.t, version, conf.Version)
			wired, grids, seen := map[uint]wire.LayoutDoor{}, map[uint]locker.GridBody{}, map[string]bool{}
			for _, l := range conf.Layout {
				wired[l.Door] = l
			}
			for _, g := range out.Device.Grids {
				require.False(s.t, seen[g.GridCode], g.GridCode)
				seen[g.GridCode], grids[g.Door] = true, g
			}
			n := 0
			for i, shelf := range layout {
				require.Equal(s.t, shelf.Code, out.Device.Shelves[i])
				for _, want := range shelf.Grids {
					n++
					g, l := grids[uint(want.Door)], wired[uint(want.Door)]
					require.Equal(s.t, []any{shelf.Code, want.Column, want.Row, want.Size}, []any{g.ShelfCode, g.Column, g.Row, g.Size})
					if was, ok := codes[uint(want.Door)]; ok && was.ShelfCode == shelf.Code {
						require.Equal(s.t, was.GridCode, g.GridCode)
					}
					if want.PickupEnabled != nil {
						require.Nil(s.t, g.PickupNumber)
						require.Nil(s.t, g.PickupLabel)
						require.Equal(s.t, []any{wire.SizeStaff, uint(0), ""}, []any{l.Size, l.Display, l.Label})
						continue
					}
					number := before(layout, i, want) + 1
					require.Equal(s.t, number, *g.PickupNumber)
					require.Equal(s.t, []any{want.Size, uint(number), *g.PickupLabel}, []any{l.Size, l.Display, l.Label})
				}
			}
			require.Len(s.t, grids, n)
			require.Len(s.t, conf.Layout, n)
			for door, g := range grids {
				codes[door] = g
			}
			for len(s.Config) > 0 {
				<-s.Config
			}
		}
	})
}

// layout is the cabinet's present layout, as an editor would send it.
func (s *story) layout() locker.LayoutInput {
	out, err := s.Lockers.FindDevice(ctx, s.staff(), s.ID)
	require.NoError(s.t, err)
	in := locker.LayoutInput{Device: s.ID, Version: new(int64(out.Device.ConfigVersion)), Shelves: []locker.LayoutShelf{{Code: "A"}}}
	for _, g := range out.Device.Grids {
		in.Shelves[0].Grids = append(in.Shelves[0].Grids, locker.LayoutGrid{Door: int(g.Door), Column: g.Column, Row: g.Row, Size: g.Size, PickupEnabled: &g.PickupEnabled})
	}
	return in
}

// The polarity of a switch is the layout's, and stays as it is where a layout does not say.
func TestLayoutSaysHowASwitchReads(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		inverted := func() (out []uint) {
			var d cloud.Device
			require.NoError(s.t, s.Store.Look(ctx, func(v cloud.View) (err error) { d, err = v.Device(s.ID); return err }))
			var conf wire.Config
			require.NoError(s.t, wire.Decode(d.Config, &conf))
			for _, l := range conf.Layout {
				if l.Inverted {
					out = append(out, l.Door)
				}
			}
			return out
		}
		set := func(value *bool) {
			in := s.layout()
			in.Shelves[0].Grids[2].Inverted = value
			_, err := s.Lockers.SetLayout(ctx, s.staff(), in)
			require.NoError(s.t, err)
		}
		set(new(true))
		door := uint(s.layout().Shelves[0].Grids[2].Door)
		require.Equal(s.t, []uint{door}, inverted())
		set(nil)
		require.Equal(s.t, []uint{door}, inverted())
		set(new(false))
		require.Empty(s.t, inverted())
	})
}

// A compartment in use keeps its place, label and lock; others change around it. A
// cabinet uses new compartments once it has applied the layout, and staff see why it
// has not.
func TestLayoutOfCabinetInUse(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		in := s.layout()
		grids := in.Shelves[0].Grids
		set := func(c cloud.Caller, change func(*locker.LayoutInput)) (locker.DeviceOutput, error) {
			x := s.layout()
			change(&x)
			return s.Lockers.SetLayout(ctx, c, x)
		}
		_, err := set(s.stranger(), func(*locker.LayoutInput) {})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		var held uint
		for _, g := range grids {
			if s.cell(uint(g.Door)).State == cloud.GridReserved {
				held = uint(g.Door)
			}
		}
		require.EqualValues(s.t, 1, held)
		moved := map[string]func(*locker.LayoutInput){
			"place":   func(x *locker.LayoutInput) { x.Shelves[0].Grids[0].Row = 30 },
			"shelf":   func(x *locker.LayoutInput) { x.Shelves[0].Code = "B" },
			"removed": func(x *locker.LayoutInput) { x.Shelves[0].Grids = x.Shelves[0].Grids[1:] },
			"staff":   func(x *locker.LayoutInput) { x.Shelves[0].Grids[0].PickupEnabled = new(false) },
			"lock":    func(x *locker.LayoutInput) { x.Shelves[0].Grids[0].Channel = new(40) },
			"label": func(x *locker.LayoutInput) {
				x.Shelves = append([]locker.LayoutShelf{{Code: "Z", Grids: []locker.LayoutGrid{{Door: 9, Column: 1, Row: 1, Size: "M"}}}}, x.Shelves...)
			},
		}
		refused := func(reason string) {
			s.t.Helper()
			for what, change := range moved {
				_, err := set(s.staff(), change)
				require.Equal(s.t, "LAYOUT_IN_USE", code(err), what)
				e := err.(*cloud.Error)
				require.Equal(s.t, []locker.InUse{{GridCode: "A01", DoorName: "A-1", Door: 1, Reason: reason}}, e.Details["grids"], what)
			}
		}
		refused("it is reserved")
		a := s.open()
		s.settle(a)
		refused("something lies inside")

		// Around it: compartment 4 goes, 9 comes.
		out, err := set(s.staff(), func(x *locker.LayoutInput) {
			x.Shelves[0].Grids = append(x.Shelves[0].Grids[:3:3], locker.LayoutGrid{Door: 9, Column: 7, Row: 1, Size: "M"})
		})
		require.NoError(s.t, err)
		require.Len(s.t, out.Device.Grids, 4)
		require.True(s.t, s.cell(4).IsRemoved())
		require.Equal(s.t, cloud.BlockWaits, s.cell(9).BlockReason)
		require.Equal(s.t, "A-4", s.cell(9).Label)
		conf := <-s.Config
		for conf.Version < out.Device.ConfigVersion {
			conf = <-s.Config
		}
		_, err = s.Lockers.SetLayout(ctx, s.staff(), in)
		require.Equal(s.t, "LAYOUT_CHANGED", code(err), "drawn from a former version")

		s.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: conf.Version, Result: "door 4 is occupied or open and cannot be moved"})
		require.Contains(s.t, s.Faults()[cloud.DevConfigRefused].Detail, "door 4 is occupied")
		require.Equal(s.t, cloud.GridBlocked, s.cell(9).State)
		s.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: conf.Version - 1, Result: wire.ResultOK})
		require.Contains(s.t, s.Faults(), cloud.DevConfigRefused, "another version")
		s.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: conf.Version, Result: wire.ResultOK})
		require.NotContains(s.t, s.Faults(), cloud.DevConfigRefused)
		require.Equal(s.t, cloud.GridFree, s.cell(9).State)

		// Door 4 comes back with its own grid, and a cabinet that still had it is believed.
		grid := s.grid(4)
		_, err = set(s.staff(), func(x *locker.LayoutInput) {
			x.Shelves[0].Grids = append(x.Shelves[0].Grids, locker.LayoutGrid{Door: 4, Column: 8, Row: 1, Size: "M"})
		})
		require.NoError(s.t, err)
		require.Equal(s.t, grid, s.grid(4))
		require.Equal(s.t, "A04", s.cell(4).GridCode)
	})
}

// A compartment that a layout took away while a courier put a parcel into it at the
// cabinet, which knew nothing of the layout yet: the parcel is known, collected, and the
// compartment keeps it when another layout brings it back.
func TestLayoutMeetsADepositAtTheCabinet(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		x := s.layout()
		x.Shelves[0].Grids = slices.DeleteFunc(x.Shelves[0].Grids, func(g locker.LayoutGrid) bool { return g.Door == 2 })
		_, err := s.Lockers.SetLayout(ctx, s.staff(), x)
		require.NoError(s.t, err)
		require.True(s.t, s.cell(2).IsRemoved())
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK-1"}}}})
		s.status(cloud.DeliveryDelivered)
		require.True(s.t, s.find().PickupCodeActive)
		cell := s.cell(2)
		require.Equal(s.t, cloud.GridOccupied, cell.State)
		require.NotZero(s.t, cell.DeliveryID)
		back := s.layout()
		i := slices.IndexFunc(back.Shelves[0].Grids, func(g locker.LayoutGrid) bool { return g.Door == 2 })
		require.NotEqual(s.t, -1, i, "staff see it as long as something lies inside")
		back.Shelves[0].Grids[i] = locker.LayoutGrid{Door: 2, Column: 9, Row: 9, Size: "M"}
		_, err = s.Lockers.SetLayout(ctx, s.staff(), back)
		require.NoError(s.t, err)
		require.Equal(s.t, []any{cloud.GridOccupied, cell.DeliveryID}, []any{s.cell(2).State, s.cell(2).DeliveryID}, "a compartment that comes back has what lies inside")
		_, err = s.Lockers.Retire(ctx, s.staff(), locker.RetireInput{Device: s.ID, Reason: "x"})
		require.Equal(s.t, "CABINET_NOT_EMPTY", code(err))
		s.pickUp("op_p", 2, nil, 2)
		s.status(cloud.DeliveryPickedUp)
		require.Zero(s.t, s.cell(2).DeliveryID)
	})
}

// Two callers change the layout at once: one of them has to read again.
func TestTwoLayoutsAtOnce(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		in := s.layout()
		got := make(chan string, 2)
		for range 2 {
			go func() {
				_, err := s.Lockers.SetLayout(ctx, s.staff(), in)
				got <- code(err)
			}()
		}
		require.ElementsMatch(s.t, []string{"", "LAYOUT_CHANGED"}, []string{<-got, <-got})
	})
}

func TestBadLayouts(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		require.NoError(s.t, s.cancel())
		grid := func(door int, column, row int) locker.LayoutGrid {
			return locker.LayoutGrid{Door: door, Column: column, Row: row, Size: "M"}
		}
		var many []locker.LayoutGrid
		for n := range 65 {
			many = append(many, grid(n+1, 1, n+1))
		}
		wired := grid(2, 1, 2)
		wired.Channel = new(1)
		for path, shelves := range map[string][]locker.LayoutShelf{
			"shelves.1.shelf_code":                 {{Code: "A", Grids: []locker.LayoutGrid{grid(1, 1, 1)}}, {Code: "A", Grids: []locker.LayoutGrid{grid(2, 1, 1)}}},
			"shelves.0.grids.1.compartment_number": {{Code: "A", Grids: []locker.LayoutGrid{grid(1, 1, 1), grid(1, 1, 2)}}},
			"shelves.0.grids.1.row":                {{Code: "A", Grids: []locker.LayoutGrid{grid(1, 1, 1), grid(2, 1, 1)}}},
			"shelves":                              {{Code: "A", Grids: many}},
			"shelves ":                             {{Code: "A", Grids: []locker.LayoutGrid{grid(1, 1, 1), wired}}},
			"shelves  ":                            {{Code: "A"}},
		} {
			_, err := s.Lockers.SetLayout(ctx, s.staff(), locker.LayoutInput{Device: s.ID, Shelves: shelves})
			require.Equal(s.t, "VALIDATION_FAILED", code(err), path)
		}
	})
}

func TestEditCabinet(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		edit := func(c cloud.Caller, in locker.DeviceEdit) (locker.DeviceOutput, error) {
			in.Device = s.ID
			return s.Lockers.EditDevice(ctx, c, in)
		}
		name := "Pier 7"
		_, err := edit(s.stranger(), locker.DeviceEdit{Name: &name})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		hours := []cloud.OpeningHours{{Day: 1, Open: "08:00", Close: "24:00"}, {Day: 2, Open: "00:00", Close: "02:30"}}
		typed := []check.HoursInput{{Day: new(1), Open: "08:00", Close: "24:00"}, {Day: new(2), Open: "00:00", Close: "02:30"}}
		out, err := edit(s.staff(), locker.DeviceEdit{Name: &name, Hours: &typed, Guide: &cloud.IndoorGuide{Text: "Behind the lifts", Photos: []string{"https://files.example.com/1.jpg"}},
			Features: &cloud.DeviceFeatures{Screen: true}, Type: new("smart_drop"), Timezone: new("Europe/Berlin"), PostalCode: new(" m5v  2T6 "), Country: new("ca")})
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"m5v 2T6", "CA"}, []string{out.Device.PostalCode, out.Device.Country})
		require.Equal(s.t, []any{name, "smart_drop", "Europe/Berlin", cloud.DeviceFeatures{Screen: true, RemoteOpen: true}, &hours}, []any{out.Device.DeviceName, out.Device.DeviceType, out.Device.Timezone, out.Device.Features, out.Device.OpeningHours})
		conf := <-s.Config
		for conf.Version < out.Device.ConfigVersion {
			conf = <-s.Config
		}
		require.Equal(s.t, []wire.Hours{{Day: 1, Open: "08:00", Close: "24:00"}, {Day: 2, Open: "00:00", Close: "02:30"}}, conf.Hours)
		none, err := edit(s.staff(), locker.DeviceEdit{Name: &name, Hours: &typed})
		require.NoError(s.t, err)
		require.Equal(s.t, out.Device.ConfigVersion, none.Device.ConfigVersion, "nothing has changed")

		for _, bad := range []locker.DeviceEdit{{Name: new(" ")},
			{Hours: &[]check.HoursInput{{Day: new(1), Open: "20:00", Close: "08:00"}}}, {Hours: &[]check.HoursInput{{Day: new(1), Open: "8:00", Close: "09:00"}}},
			{Hours: &[]check.HoursInput{{Day: new(1), Open: "08:00", Close: "10:00"}, {Day: new(1), Open: "09:00", Close: "11:00"}}}} {
			_, err := edit(s.staff(), bad)
			require.Equal(s.t, "VALIDATION_FAILED", code(err))
		}
		_, err = edit(s.staff(), locker.DeviceEdit{Code: new("CAB-9")})
		require.Equal(s.t, "DEVICE_CODE_FIXED", code(err))

		// Maintenance: no new deliveries, and the link stays. Disabled: it ends.
		again := func() error {
			_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID,
				Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550199"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "S"}}})
			return err
		}
		out, err = edit(s.staff(), locker.DeviceEdit{Status: new("maintenance")})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.StatusMaintenance, out.Device.Status)
		require.Equal(s.t, "DEVICE_DISABLED", code(again()))
		require.True(s.t, s.Online())
		out, err = edit(s.staff(), locker.DeviceEdit{Status: new("disabled")})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.StatusDisabled, out.Device.Status)
		devicetest.Wait(s.t, "end of the connection", s.Closed)
		_, err = s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: s.ID})
		require.Equal(s.t, "DEVICE_ENROLLED", code(err))
		out, err = edit(s.staff(), locker.DeviceEdit{Status: new("active")})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.StatusOffline, out.Device.Status)
		require.NoError(s.t, again())
	})
}

// enrol enrols CAB-1 with a token.
func (s *story) enrol(token string) (device.Secrets, error) {
	return s.World.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: "CAB-1", Token: token}, func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
		return s.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: wire.CodeParams{MemoryKiB: 8, Passes: 1}}, decide)
	})
}

// Replaced hardware has no way in, what it did not send is a gap, and what lies in the
// cabinet stays with its codes.
func TestReplaceHardware(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		live := len(s.liveCodes())
		var before cloud.Session
		var epoch cloud.Epoch
		s.Look(func(v cloud.View) (err error) {
			before, err = v.Session(s.ID)
			require.NoError(s.t, err)
			epoch, err = v.CurrentEpoch(s.ID)
			return err
		})
		unsent := [wire.Lanes]uint64{3, 1}
		s.Status(func(st *wire.Status) {
			for l, n := range unsent {
				st.Ends[l].Last += n
			}
		})
		synctest.Wait()
		old := s.Box.Devices[0].Secret
		in := locker.ReplaceInput{Device: s.ID, Reason: "the controller is broken"}
		_, err := s.Lockers.ReplaceHardware(ctx, s.stranger(), in)
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		out, err := s.Lockers.ReplaceHardware(ctx, s.staff(), in)
		require.NoError(s.t, err)
		require.True(s.t, out.Device.AwaitsHardware)
		devicetest.Wait(s.t, "end of the old hardware's connection", s.Closed)
		_, err = s.World.Devices.Login(ctx, "CAB-1", old)
		require.ErrorIs(s.t, err, device.ErrLogin)
		_, err = s.World.Devices.LoginCertificate(ctx, "CAB-1", time.Now())
		require.ErrorIs(s.t, err, device.ErrLogin, "it has not enrolled since")
		s.Look(func(v cloud.View) error {
			for l := range wire.Lanes {
				gaps, err := v.Gaps(s.ID, epoch.Epoch, wire.Lane(l), 1)
				require.NoError(s.t, err)
				require.Len(s.t, gaps, 1)
				require.Equal(s.t, locker.GapHardware, gaps[0].Reason)
				require.Equal(s.t, s.Next[l], gaps[0].First)
				require.Equal(s.t, unsent[l], gaps[0].Missing)
			}
			_, err := v.CurrentEpoch(s.ID)
			require.ErrorIs(s.t, err, cloud.ErrNotFound)
			return nil
		})
		b := s.Batch(wire.Settlement, s.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: "op_old", Doors: a.Doors, How: "keypad", CodeNumber: 2, ListNumber: 2}))
		s.World.Devices.Receive("CAB-1", before.Generation, "up", wire.MustEncode(b))
		synctest.Wait()
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)

		made, err := s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: s.ID})
		require.NoError(s.t, err)
		secrets, err := s.enrol(made.Enrolment.Token)
		require.NoError(s.t, err)
		require.Len(s.t, s.liveCodes(), live)
		_, err = s.World.Devices.Login(ctx, "CAB-1", old)
		require.ErrorIs(s.t, err, device.ErrLogin)
		_, err = s.World.Devices.Login(ctx, "CAB-1", secrets.Secret)
		require.NoError(s.t, err)
		out, err = s.Lockers.FindDevice(ctx, s.staff(), s.ID)
		require.NoError(s.t, err)
		require.False(s.t, out.Device.AwaitsHardware)
	})
}

// A cabinet with something inside is not retired by mistake; a retired one is gone
// for good.
func TestRetireCabinet(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		in := locker.RetireInput{Device: s.ID, Reason: "the lease has ended"}
		_, err := s.Lockers.Retire(ctx, s.stranger(), in)
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		_, err = s.Lockers.Retire(ctx, s.staff(), in)
		require.Equal(s.t, "CABINET_NOT_EMPTY", code(err), "an opening runs")
		s.settle(a)
		_, err = s.Lockers.Retire(ctx, s.staff(), in)
		require.Equal(s.t, "CABINET_NOT_EMPTY", code(err))
		require.True(s.t, s.Online())
		made, err := s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: s.ID})
		require.Equal(s.t, "DEVICE_ENROLLED", code(err))
		require.Empty(s.t, made.Enrolment.Token)

		in.Full = true
		out, err := s.Lockers.Retire(ctx, s.staff(), in)
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.StatusRetired, out.Device.Status)
		devicetest.Wait(s.t, "end of the connection", s.Closed)
		require.Empty(s.t, s.liveCodes())
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		for what, err := range map[string]error{
			"retire":  second(s.Lockers.Retire(ctx, s.staff(), in)),
			"token":   second(s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: s.ID})),
			"replace": second(s.Lockers.ReplaceHardware(ctx, s.staff(), locker.ReplaceInput{Device: s.ID, Reason: "x"})),
			"edit":    second(s.Lockers.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: s.ID, Status: new("active")})),
			"layout":  second(s.Lockers.SetLayout(ctx, s.staff(), s.layout())),
		} {
			require.Equal(s.t, "DEVICE_DISABLED", code(err), what)
		}
		list := func(status string) int {
			out, err := s.Lockers.ListDevices(ctx, s.staff(), locker.DevicesInput{Status: status, Keyword: "cab-1"})
			require.NoError(s.t, err)
			require.Len(s.t, out.Devices, out.Total)
			return out.Total
		}
		require.Equal(s.t, []int{0, 1, 0}, []int{list(""), list("retired"), list("disabled")})
	})
}

func second[T any](_ T, err error) error { return err }

// The history of doors names who had which opened, and why, for 90 days.
func TestDoorHistory(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		time.Sleep(time.Second)
		_, err := s.staffOpen(s.staff(), 2)
		require.NoError(s.t, err)
		history := func(c cloud.Caller, in locker.HistoryInput) (locker.HistoryOutput, error) {
			in.Device = s.ID
			return s.Lockers.ListDoorHistory(ctx, c, in)
		}
		_, err = history(s.stranger(), locker.HistoryInput{})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		one := 1
		first, err := history(s.staff(), locker.HistoryInput{LongKeyset: check.LongKeyset{PerPage: &one}})
		require.NoError(s.t, err)
		require.Equal(s.t, 2, first.Total)
		require.Equal(s.t, []any{"staff", "console", "Sam", "Clean a spill", uint(2)},
			[]any{first.Reports[0].Kind, first.Reports[0].By, *first.Reports[0].ByName, *first.Reports[0].Reason, first.Reports[0].Doors[0].Door})
		next := locker.HistoryInput{LongKeyset: check.LongKeyset{PerPage: &one}}
		next.Cursor = *first.NextCursor
		rest, err := history(s.staff(), next)
		require.NoError(s.t, err)
		require.Nil(s.t, rest.NextCursor)
		require.Equal(s.t, []any{"deposit", "partner_api", a.OpeningID, "A01"}, []any{rest.Reports[0].Kind, rest.Reports[0].By, rest.Reports[0].OpeningID, rest.Reports[0].Doors[0].GridCode})
		require.NotNil(s.t, rest.Reports[0].Doors[0].OpenedAt)

		// What is older than 90 days is not shown.
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			o, err := v.Opening(a.OpeningID)
			o.RequestedAt = o.RequestedAt.Add(-90 * 24 * time.Hour)
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: []cloud.Opening{o}}}, err
		}))
		all, err := history(s.staff(), locker.HistoryInput{})
		require.NoError(s.t, err)
		require.Equal(s.t, 1, all.Total)
	})
}

// The code of a cabinet that never enrolled can be changed, to one that is free; its
// configuration names the new one, and its token enrols by it.
func TestDeviceCodeUntilItEnrols(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		made, err := s.Setup.AddCabinet(ctx, s.staff(), setup.CabinetInput{Name: "Pier", Code: "PIER-1", Layout: "small", Type: "kiosk", PostalCode: "10115 ", Country: "de"})
		require.NoError(s.t, err)
		id := made.Device.ID
		fresh, err := s.Lockers.FindDevice(ctx, s.staff(), id)
		require.NoError(s.t, err)
		require.Equal(s.t, []any{"kiosk", cloud.DeviceFeatures{RemoteOpen: true}}, []any{fresh.Device.DeviceType, fresh.Device.Features})
		require.Equal(s.t, []string{"10115", "DE"}, []string{fresh.Device.PostalCode, fresh.Device.Country})
		_, err = s.Lockers.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: id, Code: new("CAB-2")})
		require.Equal(s.t, "VALIDATION_FAILED", code(err))
		out, err := s.Lockers.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: id, Code: new("PIER-2")})
		require.NoError(s.t, err)
		require.Equal(s.t, "PIER-2", out.Device.DeviceCode)
		var row cloud.Device
		s.Look(func(v cloud.View) (err error) { row, err = v.Device(id); return err })
		var conf wire.Config
		require.NoError(s.t, wire.Decode(row.Config, &conf))
		require.Equal(s.t, []any{"PIER-2", row.ConfigVersion}, []any{conf.DeviceCode, conf.Version})
		keep := func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
			return s.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: wire.CodeParams{MemoryKiB: 8, Passes: 1}}, decide)
		}
		_, err = s.World.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: "PIER-1", Token: made.Enrolment.Token}, keep)
		require.ErrorContains(s.t, err, "TOKEN_INVALID")
		_, err = s.World.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: "PIER-2", Token: made.Enrolment.Token}, keep)
		require.NoError(s.t, err)
		_, err = s.Lockers.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: id, Code: new("PIER-3")})
		require.Equal(s.t, "DEVICE_CODE_FIXED", code(err))
	})
}

// Measures are the layout's: staff and the partner see them, parcels that are too large for a
// compartment pass it over, and a cabinet without any that takes them says its largest.
func TestParcelsAreHeldToInnerMeasures(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		require.NoError(s.t, s.cancel())
		in := s.layout()
		small, large := cloud.Inner{Width: 40, Height: 15, Depth: 50}, cloud.Inner{Width: 40, Height: 35, Depth: 50}
		for i := range in.Shelves[0].Grids {
			in.Shelves[0].Grids[i].Inner = &small
		}
		last := &in.Shelves[0].Grids[len(in.Shelves[0].Grids)-1]
		last.Inner = &large
		out, err := s.Lockers.SetLayout(ctx, s.staff(), in)
		require.NoError(s.t, err)
		s.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: out.Device.ConfigVersion, Result: wire.ResultOK})
		seen, err := s.Lockers.FindLocker(ctx, s.Box.ProviderCaller, locker.LockerInput{Device: s.ID})
		require.NoError(s.t, err)
		of := map[uint]cloud.Inner{}
		for _, g := range out.Device.Grids {
			of[g.Door] = *g.Inner
		}
		for _, g := range seen.Locker.Shelves[0].Grids {
			require.Equal(s.t, of[g.Door], *g.Inner)
		}
		require.Equal(s.t, large, of[uint(last.Door)])

		create := func(ref string, reserve bool, boxes ...[3]float64) (locker.DeliveryBody, error) {
			in := locker.CreateInput{ReferenceNumber: ref, DeviceID: s.ID, Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550123"}, Reserve: &reserve}
			for i, b := range boxes {
				in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: ref + string(rune('a'+i)), Length: b[0], Width: b[1], Height: b[2]})
			}
			out, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, in)
			return out.Delivery, err
		}
		var e *cloud.Error
		for _, reserve := range []bool{true, false} {
			_, err = create("TOO-LONG", reserve, [3]float64{51, 5, 5})
			require.ErrorAs(s.t, err, &e)
			require.Equal(s.t, "PARCEL_TOO_LARGE", e.Code)
			require.Equal(s.t, []any{40, 35, 50}, e.Args)
		}
		d, err := create("TURNED", true, [3]float64{30, 50, 40})
		require.NoError(s.t, err)
		require.Equal(s.t, s.cell(uint(last.Door)).GridID, *d.Packages[0].GridID)
		_, err = create("SECOND", true, [3]float64{30, 50, 40})
		require.Equal(s.t, "NO_COMPARTMENT", code(err))

		two, err := create("TWO", true, [3]float64{40, 10, 50}, [3]float64{40, 10, 50})
		require.NoError(s.t, err)
		require.NotEqual(s.t, *two.Packages[0].GridID, *two.Packages[1].GridID)
		zero := 0
		_, err = s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:TWO", WaitSeconds: &zero, Compartments: []cloud.GridID{*two.Packages[0].GridID}})
		require.Equal(s.t, "PARCEL_TOO_LARGE", code(err), "each fits, both do not")
		free := s.free()
		_, err = s.Lockers.Reassign(ctx, s.Box.ProviderCaller, locker.ReassignInput{Delivery: "ref:TWO", GridID: free})
		require.ErrorAs(s.t, err, &e)
		require.Equal(s.t, "PARCEL_TOO_LARGE", e.Code)
		require.Contains(s.t, locale.Error("en", e.Code, e.Args...), "too large for this compartment. Choose another one. It measures 40 × 15 × 50 cm inside")
		_, err = s.Lockers.AddPackage(ctx, s.Box.ProviderCaller, locker.AddPackageInput{Delivery: "ref:TWO", PackageInput: locker.PackageInput{TrackingNumber: "LONG", Length: 60, Width: 1, Height: 1}})
		require.Equal(s.t, "PARCEL_TOO_LARGE", code(err))
	})
}

// free is a compartment that can be given to a delivery.
func (s *story) free() cloud.GridID {
	s.t.Helper()
	out, err := s.Lockers.FindLocker(ctx, s.Box.ProviderCaller, locker.LockerInput{Device: s.ID})
	require.NoError(s.t, err)
	for _, g := range out.Locker.Shelves[0].Grids {
		if g.Available {
			return g.GridID
		}
	}
	s.t.Fatal("no compartment is free")
	return 0
}
