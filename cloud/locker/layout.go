package locker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// LayoutInput describes all compartments of a cabinet.
type LayoutInput struct {
	Device  cloud.DeviceID `path:"id" json:"-"`
	Shelves []LayoutShelf  `json:"shelves" max:"26" doc:"From left to right. Compartments that are left out are removed. A warehouse post has none: leave it out, or give an empty list."`
	// Version is the config_version that the layout was drawn from.
	Version *int64 `json:"config_version" min:"0" graphql:"Long" doc:"The config_version that your layout was drawn from: a cabinet whose layout or hours changed since answers LAYOUT_CHANGED. Without it nothing is compared."`
}

// LayoutShelf is one column block of a cabinet.
type LayoutShelf struct {
	Code  string       `json:"shelf_code" required:"true" pattern:"^[A-Z]{1,2}$" example:"A" doc:"Unique in the cabinet"`
	Grids []LayoutGrid `json:"grids" required:"true" max:"64"`
}

// LayoutGrid is one compartment. An absent Board or Channel stays as it is;
// a new compartment is on board A, on the channel of its number.
type LayoutGrid struct {
	Door          int          `json:"compartment_number" required:"true" min:"1" max:"1000" doc:"The door's hardware number, unique in the cabinet"`
	Column        int          `json:"column" required:"true" min:"1" max:"64" doc:"Within the shelf, 1 on the left"`
	Row           int          `json:"row" required:"true" min:"1" max:"64" doc:"1 on top"`
	Size          string       `json:"size" required:"true" enum:"S,M,L,XL"`
	Inner         *cloud.Inner `json:"inner" doc:"Measures inside, in cm, all three; without them they are not known, and size alone says what fits"`
	PickupEnabled *bool        `json:"pickup_enabled" doc:"true when left out; false for a screen, a battery or a door for staff only: it has no pickup number and takes no delivery"`
	Board         *string      `json:"board" max:"16" pattern:"^[A-Za-z0-9_-]+$" doc:"Name of its lock controller board; as it is when left out, A for a new compartment"`
	Channel       *int         `json:"channel" min:"1" max:"255" doc:"Of the lock on its board; as it is when left out, compartment_number for a new one"`
	Inverted      *bool        `json:"inverted" doc:"true where the raw bit of the door's switch is set while the door is open, as learned at the cabinet's screen; as it is when left out, false for a new compartment"`
}

// IsForPickup reports whether deliveries may be given the compartment.
func (g LayoutGrid) IsForPickup() bool { return g.PickupEnabled == nil || *g.PickupEnabled }

// messagePostDoors refuses doors of a warehouse post.
const messagePostDoors = "A warehouse post has no doors."

// firstBoard is the board of compartments that are new to a layout.
const firstBoard = "A"

// maxGrids is how many compartments a cabinet may have: a status names all of them.
const maxGrids = wire.MaxDoors

// PlacedGrid is a compartment of a layout where the layout puts it.
type PlacedGrid struct {
	LayoutGrid
	Shelf    string
	Position int // of the shelf, from 1
	Number   int // pickup number, 0 for none
}

// Label is the printed label of a pickup number, "" without one.
func (p PlacedGrid) Label() string {
	if p.Number == 0 {
		return ""
	}
	return p.Shelf + "-" + strconv.Itoa(p.Number)
}

// PlaceGrids lists the compartments of shelves by (shelf position, column, row) and gives
// those for pickup the numbers 1 to n over the whole cabinet.
func PlaceGrids(shelves []LayoutShelf) []PlacedGrid {
	var out []PlacedGrid
	for i, shelf := range shelves {
		for _, g := range shelf.Grids {
			out = append(out, PlacedGrid{LayoutGrid: g, Shelf: shelf.Code, Position: i + 1})
		}
	}
	slices.SortStableFunc(out, func(a, b PlacedGrid) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Row, b.Row))
	})
	n := 0
	for i := range out {
		if out[i].IsForPickup() {
			n++
			out[i].Number = n
		}
	}
	return out
}

// check refuses shelves that are no layout of d.
func (in LayoutInput) check(d cloud.Device) error {
	f := newFields()
	if d.IsPost() {
		if len(in.Shelves) > 0 {
			f.Add("shelves", messagePostDoors)
		}
		return f.Err()
	}
	type place struct{ shelf, column, row int }
	shelves, doors, places, all := map[string]bool{}, map[int]bool{}, map[place]bool{}, 0
	for i, shelf := range in.Shelves {
		path := "shelves." + strconv.Itoa(i)
		if shelves[shelf.Code] {
			f.Add(path+".shelf_code", "This shelf_code is listed twice. Give each shelf a code of its own.")
		}
		shelves[shelf.Code] = true
		for j, g := range shelf.Grids {
			at := path + ".grids." + strconv.Itoa(j)
			if doors[g.Door] {
				f.Add(at+".compartment_number", "This compartment_number is listed twice. Give each compartment its own.")
			}
			if places[place{i, g.Column, g.Row}] {
				f.Add(at+".row", "Another compartment of this shelf has this column and row.")
			}
			doors[g.Door], places[place{i, g.Column, g.Row}] = true, true
			all++
		}
	}
	switch {
	case in.Shelves == nil:
		f.Say("shelves", check.MessageRequired)
	case all == 0 || all > maxGrids:
		f.Add("shelves", "A cabinet has 1 to 64 compartments.")
	}
	return f.Err()
}

// InUse is a compartment that a layout may not change, and why.
type InUse struct {
	GridCode string `json:"grid_code"`
	DoorName string `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none"`
	Door     uint   `json:"compartment_number"`
	Reason   string `json:"reason"`
}

// SetLayout gives a cabinet of the caller's business another layout: shelves,
// compartments and pickup numbers change in the cloud at once, and the cabinet is
// sent them as a signed configuration of the next version. A compartment that is
// occupied, reserved or open keeps its place, its label and its lock, or the layout is
// refused. New compartments of a cabinet that has enrolled are blocked until it has
// applied the layout. A warehouse post takes none but the empty one, which changes nothing.
// Errors: DEVICE_NOT_FOUND, DEVICE_DISABLED (retired),
// LAYOUT_IN_USE, LAYOUT_CHANGED, VALIDATION_FAILED.
func (s staff) SetLayout(ctx context.Context, c cloud.Caller, in LayoutInput) (out DeviceOutput, err error) {
	return s.changeDevice(ctx, c, in.Device, func(w *Work) error {
		if err := in.check(w.device); err != nil {
			return err
		}
		if !w.device.RetiredAt.IsZero() {
			return outOfService(w.device)
		}
		if in.Version != nil && uint64(*in.Version) != w.device.ConfigVersion {
			return &cloud.Error{Kind: cloud.Conflict, Code: "LAYOUT_CHANGED", Details: map[string]any{"config_version": w.device.ConfigVersion}}
		}
		if w.device.IsPost() {
			return nil
		}
		return w.lay(c, in.Shelves)
	})
}

// lay changes compartments and configuration to a layout.
func (w requests) lay(c cloud.Caller, shelves []LayoutShelf) error {
	conf, err := w.config()
	if err != nil {
		return err
	}
	wired := map[uint]wire.LayoutDoor{}
	for _, l := range conf.Layout {
		wired[l.Door] = l
	}
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	placed := PlaceGrids(shelves)
	layout := make([]wire.LayoutDoor, 0, len(placed))
	next := map[uint]PlacedGrid{}
	for _, p := range placed {
		next[uint(p.Door)] = p
		layout = append(layout, p.wired(wired))
	}
	if err := checkLocks(layout); err != nil {
		return err
	}
	if err := w.refuseMoved(cells, next, wired, layout); err != nil {
		return err
	}
	codes := gridCodes(cells)
	courier, was := false, map[uint]*cloud.Compartment{}
	for _, cell := range cells {
		was[cell.Door] = cell
		if _, stays := next[cell.Door]; !stays && !cell.IsRemoved() {
			cell.Column, cell.Row, cell.PickupNumber, cell.Label, cell.PickupEnabled = 0, 0, 0, "", false
			courier = courier || slices.Contains(blockReasons, cell.BlockReason)
			cell.State, cell.BlockReason = cloud.GridBlocked, cloud.BlockRemoved
			w.touch(cell)
		}
	}
	for _, p := range placed {
		if err := w.placeGrid(p, was[uint(p.Door)], codes); err != nil {
			return err
		}
	}
	if courier {
		if err := w.keepBlocked(w.received); err != nil {
			return err
		}
	}
	rows := make([]cloud.Shelf, len(shelves))
	for i, shelf := range shelves {
		rows[i] = cloud.Shelf{Code: shelf.Code, Position: i + 1}
	}
	w.ch.Shelves = map[cloud.DeviceID][]cloud.Shelf{w.device.ID: rows}
	if err := w.publish(layout); err != nil {
		return err
	}
	return w.auditStaff(c, "layout_changed", w.device.Code, map[string]any{"config_version": w.device.ConfigVersion, "compartments": len(placed)})
}

// wired is the compartment as the cabinet's configuration has it.
func (p PlacedGrid) wired(was map[uint]wire.LayoutDoor) wire.LayoutDoor {
	l, known := was[uint(p.Door)]
	if !known {
		l = wire.LayoutDoor{Door: uint(p.Door), Board: firstBoard, Channel: uint(p.Door)}
	}
	if p.Board != nil && *p.Board != "" {
		l.Board = *p.Board
	}
	if p.Channel != nil {
		l.Channel = uint(*p.Channel)
	}
	if p.Inverted != nil {
		l.Inverted = *p.Inverted
	}
	l.Size, l.Display, l.Label = p.Size, uint(p.Number), p.Label()
	if !p.IsForPickup() {
		l.Size = wire.SizeStaff
	}
	return l
}

// checkLocks refuses two compartments on one lock.
func checkLocks(layout []wire.LayoutDoor) error {
	type lock struct {
		board   string
		channel uint
	}
	f, locks := newFields(), map[lock]bool{}
	for _, l := range layout {
		if locks[lock{l.Board, l.Channel}] {
			f.Add("shelves", "Two compartments are on one lock. Give each a board and channel of its own.")
			break
		}
		locks[lock{l.Board, l.Channel}] = true
	}
	return f.Err()
}

// refuseMoved refuses a layout that changes the place, the label or the lock of a
// compartment that is in use.
func (w requests) refuseMoved(cells []*cloud.Compartment, next map[uint]PlacedGrid, was map[uint]wire.LayoutDoor, layout []wire.LayoutDoor) error {
	busy, err := w.runningDoors("")
	if err != nil {
		return err
	}
	locks := map[uint]wire.LayoutDoor{}
	for _, l := range layout {
		locks[l.Door] = l
	}
	var used []InUse
	for _, cell := range cells {
		reason := useOf(*cell)
		if reason == "" && busy[cell.Door] != "" {
			reason = "an opening runs on it"
		}
		if reason == "" || cell.IsRemoved() {
			continue // one that has no place may be given one
		}
		p, stays := next[cell.Door]
		same := stays && p.Shelf == cell.ShelfCode && p.Column == cell.Column && p.Row == cell.Row && p.Label() == cell.Label && p.IsForPickup() == cell.PickupEnabled
		if old, known := was[cell.Door]; same && known {
			l := locks[cell.Door]
			same = l.Board == old.Board && l.Channel == old.Channel
		}
		if !same {
			used = append(used, InUse{cell.GridCode, cell.Name(), cell.Door, reason})
		}
	}
	if len(used) > 0 {
		return &cloud.Error{Kind: cloud.Conflict, Code: "LAYOUT_IN_USE", Details: check.Listed("grids", used)}
	}
	return nil
}

// isInUse reports whether something lies in a compartment or is on its way to it, or
// its door is open.
func isInUse(c cloud.Compartment) bool { return useOf(c) != "" }

// useOf says how a compartment is in use, "" when it is not.
func useOf(c cloud.Compartment) string {
	switch {
	case c.State == cloud.GridReserved:
		return "it is reserved"
	case c.State == cloud.GridOccupied, c.DeliveryID != 0, c.Occupied != nil && *c.Occupied:
		return "something lies inside"
	case c.DoorStatus == "open":
		return "its door is open"
	case c.OpeningID != "":
		return "an opening runs on it"
	case c.Dispute != nil:
		return "what lies inside is disputed"
	}
	return ""
}

// gridCodes are those of a cabinet's compartments, removed ones too.
func gridCodes(cells []*cloud.Compartment) map[string]bool {
	out := map[string]bool{}
	for _, c := range cells {
		out[c.GridCode] = true
	}
	return out
}

// placeGrid puts a compartment where the layout has it. One that stays on its shelf keeps
// its grid code, since what lay in it is known by that; another one is given the next
// that is not taken.
func (w requests) placeGrid(p PlacedGrid, cell *cloud.Compartment, codes map[string]bool) error {
	fresh := cell == nil
	if fresh {
		id, err := w.v.NewID(cloud.GridIDs)
		if err != nil {
			return err
		}
		cell = &cloud.Compartment{GridID: cloud.GridID(id), DeviceID: w.device.ID, Door: uint(p.Door), DoorStatus: "unknown", State: cloud.GridFree}
	}
	back := fresh || cell.IsRemoved()
	if cell.ShelfCode != p.Shelf || cell.GridCode == "" {
		cell.GridCode = nextCode(p.Shelf, codes)
		codes[cell.GridCode] = true
	}
	cell.ShelfCode, cell.Column, cell.Row = p.Shelf, p.Column, p.Row
	cell.PickupNumber, cell.Label, cell.Size, cell.PickupEnabled = p.Number, p.Label(), p.Size, p.IsForPickup()
	if cell.Inner = (cloud.Inner{}); p.Inner != nil {
		cell.Inner = *p.Inner
	}
	if back {
		if err := w.welcome(cell); err != nil {
			return err
		}
	}
	if fresh {
		w.ch.Compartments = append(w.ch.Compartments, *cell)
		return nil
	}
	w.touch(cell)
	return nil
}

// welcome says what a compartment that came to the layout is used for: nothing,
// until a cabinet that is there has it too.
func (w requests) welcome(cell *cloud.Compartment) (err error) {
	cell.BlockReason = ""
	if cell.State, err = w.use(cell); err != nil {
		return err
	}
	if cell.State == cloud.GridFree && !w.device.EnrolledAt.IsZero() {
		cell.State, cell.BlockReason = cloud.GridBlocked, cloud.BlockWaits
	}
	return nil
}

func nextCode(shelf string, taken map[string]bool) string {
	for n := 1; ; n++ {
		if code := fmt.Sprintf("%s%02d", shelf, n); !taken[code] {
			return code
		}
	}
}

// config is the device's present configuration.
func (w requests) config() (conf wire.Config, err error) {
	if len(w.device.Config) == 0 {
		return wire.Config{Codes: passcode.DefaultParams(), Policy: wire.Policy{LocalDropOff: true, RetainDays: 30}}, nil
	}
	if err := wire.Decode(w.device.Config, &conf); err != nil {
		return conf, fmt.Errorf("read configuration of %s: %w", w.device.Code, err)
	}
	return conf, nil
}

// publish makes the device's configuration the next version, with what its row says
// and with another layout, nil for the present one.
func (w requests) publish(layout []wire.LayoutDoor) error {
	return publishConfig(w, func(c *wire.Config) {
		if layout != nil {
			c.Layout = layout
		}
	})
}

// publishConfig makes what change makes of the device's configuration the next version, with
// what its row says.
func publishConfig(w requests, change func(*wire.Config)) error {
	conf, err := w.config()
	if err != nil {
		return err
	}
	change(&conf)
	if len(conf.Layout) == 0 && !w.device.IsPost() {
		return nil // there is nothing that a cabinet could apply
	}
	conf.Version, conf.DeviceCode, conf.Hours = w.device.ConfigVersion+1, w.device.Code, nil
	for _, h := range w.device.Profile.Hours {
		conf.Hours = append(conf.Hours, wire.Hours{Day: uint8(h.Day), Open: h.Open, Close: h.Close})
	}
	if err := checkConfig(w.device, conf); err != nil {
		return fmt.Errorf("configuration of %s: %w", w.device.Code, err)
	}
	w.device.Config, w.device.ConfigVersion, w.listed = wire.MustEncode(conf), conf.Version, true
	return nil
}

// checkConfig reports everything wrong with a configuration of a device, or nil.
func checkConfig(d cloud.Device, c wire.Config) error {
	if d.IsPost() {
		return c.CheckPost()
	}
	return c.Check()
}

// configApplied takes that the cabinet has applied a configuration: of the newest one,
// the compartments that waited for it are in use. Why it would not have one, or went back
// from it, is kept for operators.
func (w reports) configApplied(r Occurrence, b wire.ConfigApplied) (string, error) {
	if b.Result != wire.ResultOK {
		return "", w.configRefused(r, b)
	}
	if b.Version < w.device.ConfigVersion {
		return "", nil
	}
	w.ch.DeviceFaults = append(w.ch.DeviceFaults, cloud.DeviceException{DeviceID: w.device.ID, Type: cloud.DevConfigRefused, ClosedAt: w.received})
	cells, err := w.allCells()
	if err != nil {
		return "", err
	}
	for _, cell := range cells {
		if cell.State == cloud.GridBlocked && cell.BlockReason == cloud.BlockWaits {
			cell.State, cell.BlockReason = cloud.GridFree, ""
			w.touch(cell)
		}
	}
	return "", nil
}

func (w reports) configRefused(r Occurrence, b wire.ConfigApplied) error {
	if b.Version >= w.device.ConfigVersion {
		w.ch.DeviceFaults = append(w.ch.DeviceFaults, cloud.DeviceException{DeviceID: w.device.ID, Type: cloud.DevConfigRefused,
			Detail: cloud.DetailText(refusalDetail(b.Version, b.Result)), OpenedAt: r.OccurredAt, SeenAt: r.OccurredAt})
	}
	detail, err := json.Marshal(map[string]string{"result": cloud.DetailText(b.Result)})
	w.audit(r, "config_not_applied", strconv.FormatUint(b.Version, 10), string(detail))
	return err
}
