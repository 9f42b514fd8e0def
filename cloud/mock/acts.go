package mock

import (
	"context"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge"
	rules "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// Faults are what is wrong with a mock cabinet.
type Faults struct {
	Offline          bool `json:"offline" doc:"It takes no orders; what happens at its doors is reported once it is online again"`
	TimeoutNextOpen  bool `json:"timeout_next_open" doc:"The next order to open doors is not answered; it is false again after that"`
	DropCloseReports bool `json:"drop_close_reports" doc:"The report of a door that is closed is lost: its state is unknown until its session is over, or this is false again"`
}

// Door is a door of a mock cabinet.
type Door struct {
	GridID      cloud.GridID `json:"grid_id"`
	GridCode    string       `json:"grid_code"`
	PickupLabel *string      `json:"pickup_locker_code"`
	Size        string       `json:"size" doc:"S, M, L or XL"`
	Status      string       `json:"status" doc:"open or closed: what a person sees, whatever was reported"`
	State       string       `json:"state" doc:"Of the compartment: free, reserved, occupied, blocked or cleaning"`
	BlockReason *string      `json:"block_reason" doc:"Why it is blocked; null where it is not"`
	Jammed      bool         `json:"jammed"`
	Occupied    *bool        `json:"occupied" doc:"What the sensor sees; null while it says nothing"`
	OpeningID   *string      `json:"opening_id" doc:"Of the opening that runs on it"`
}

// Locker is a mock cabinet as its provider sees it.
type Locker struct {
	DeviceID   cloud.DeviceID `json:"device_id"`
	DeviceCode string         `json:"device_code"`
	Online     bool           `json:"online"`
	Disabled   bool           `json:"disabled" doc:"It takes no deliveries, as a locker that its operator has put out of service"`
	Faults     Faults         `json:"faults"`
	Doors      []Door         `json:"doors" doc:"By their numbers"`
	locker.Rehearsed
}

// Output shows a mock cabinet after an act.
type Output struct {
	Result bool   `json:"result"`
	Locker Locker `json:"locker"`
}

// DoorsInput is one act at a door.
type DoorsInput struct {
	Device   cloud.DeviceID `path:"device_id" json:"-"`
	Grid     cloud.GridID   `json:"grid_id" required:"true" min:"1"`
	Action   string         `json:"action" required:"true" enum:"close,open,jam,done,staff_confirm" doc:"close: a person closes the door. open: it opens without an order, as by force. jam: its lock holds until it is opened or closed, or the cabinet is cleared. done: the courier of the opening that runs on the door presses done at the screen. staff_confirm: the operator's staff confirm the deposit of the delivery that the compartment holds."`
	Occupied *bool          `json:"occupied" doc:"What the sensor sees inside from now on; left out of a close, it says nothing"`
}

// MoveDoor closes, opens or jams a door of the calling provider's mock cabinet, or has the
// courier or the operator's staff end the deposit behind it. A door that is as the act would
// have it stays so. Errors: DEVICE_NOT_FOUND, DEVICE_NOT_SHARED, NOT_A_TEST_LOCKER,
// GRID_NOT_FOUND, DELIVERY_STATE_CONFLICT (nothing there can be done or confirmed). Source:
// lockers-devices 5, operation 38.
func (s *Service) MoveDoor(ctx context.Context, c cloud.Caller, in DoorsInput) (Output, error) {
	return s.playAct(ctx, c, in.Device, func(m *machine) error {
		n, err := m.doorOf(in.Grid)
		if err != nil {
			return err
		}
		switch in.Action {
		case "done":
			if m.Give(rules.PressedDone{OpeningID: m.Rules.Doors[n].Opening}).Outcome != wire.CodeOK {
				return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"grid_id": in.Grid}}
			}
			return nil
		case "staff_confirm":
			m.after = func() error { return locker.ConfirmMock(m.Work, in.Grid) }
			return nil
		}
		m.move(n, func(d *door) {
			switch {
			case in.Occupied != nil && *in.Occupied:
				d.Item = wire.ItemPresent
			case in.Occupied != nil:
				d.Item = wire.ItemAbsent
			case in.Action == "close":
				d.Item = wire.ItemUnknown
			}
			switch in.Action {
			case "jam":
				d.Jammed = true
			case "open":
				d.Open, d.Jammed, d.Unreported = true, false, false
			case "close":
				d.Unreported = d.Unreported || d.Open && m.kept.Faults.DropCloseReports
				d.Open, d.Jammed = false, false
			}
		})
		return nil
	}, keepsReports)
}

// PickupInput is a recipient with a code.
type PickupInput struct {
	Device   cloud.DeviceID   `path:"device_id" json:"-"`
	Delivery cloud.DeliveryID `json:"delivery_id" min:"1" doc:"Its recipient comes and enters the code; or pickup_code"`
	Code     string           `json:"pickup_code" max:"16" doc:"This code is entered; or delivery_id"`
}

// PickupOutput shows what a code opened.
type PickupOutput struct {
	Result    bool   `json:"result"`
	OpeningID string `json:"opening_id"`
	Locker    Locker `json:"locker"`
}

// PickUp enters a pickup code at the keypad of the calling provider's mock cabinet; its
// doors open, and MoveDoor closes them. A code that opens nothing counts as a wrong try.
// Errors: VALIDATION_FAILED, DEVICE_NOT_FOUND, DEVICE_NOT_SHARED, NOT_A_TEST_LOCKER,
// DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, CODE_REFUSED. Source: lockers-devices 5,
// operation 39.
func (s *Service) PickUp(ctx context.Context, c cloud.Caller, in PickupInput) (out PickupOutput, err error) {
	if (in.Delivery == 0) == (in.Code == "") {
		f := check.Fields{}
		f.Add("pickup_code", "Send either delivery_id or pickup_code.")
		return out, f.Err()
	}
	if in.Delivery != 0 {
		if in.Code, err = s.codeOf(ctx, c, in); err != nil {
			return out, err
		}
	}
	var answer rules.Answer
	shown, err := s.playAct(ctx, c, in.Device, func(m *machine) error {
		secrets, err := locker.OpenSecrets(s.cfg.Sealer, m.Device.SealedCode)
		if err != nil {
			return err
		}
		answer = m.Give(rules.CodeTried{Verifier: passcode.Verifier(in.Code, secrets.Salt, secrets.Key, secrets.Params), Input: "keypad"})
		return nil
	}, keepsReports)
	if err != nil {
		return out, err
	}
	if answer.Outcome != wire.CodeOK {
		return out, &cloud.Error{Kind: cloud.Conflict, Code: "CODE_REFUSED", Details: map[string]any{"outcome": answer.Outcome, "tries_left": answer.Left}}
	}
	return PickupOutput{Result: true, OpeningID: answer.OpeningID, Locker: shown.Locker}, nil
}

// codeOf is the pickup code of a delivery that waits in the cabinet.
func (s *Service) codeOf(ctx context.Context, c cloud.Caller, in PickupInput) (string, error) {
	found, err := s.cfg.Lockers.Find(ctx, c, locker.DeliveryKey(strconv.FormatInt(int64(in.Delivery), 10)))
	if err != nil {
		return "", err
	}
	d := found.Delivery
	if d.DeviceID != in.Device {
		return "", cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	}
	if d.Purpose != "delivery" { // its courier comes
		return "", &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"status": d.Status, "purpose": d.Purpose, "allowed": []string{"third_party.deliveries.retrieve"}}}
	}
	if d.PickupCode == nil {
		return "", &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"status": d.Status}}
	}
	return *d.PickupCode, nil
}

// FaultsInput changes what is wrong; members that are absent stay as they are.
type FaultsInput struct {
	Device           cloud.DeviceID `path:"device_id" json:"-"`
	Offline          *bool          `json:"offline" doc:"It takes no orders; what happens at its doors is reported once it is online again"`
	TimeoutNextOpen  *bool          `json:"timeout_next_open" doc:"The next order to open doors is not answered"`
	DropCloseReports *bool          `json:"drop_close_reports" doc:"The report of a door that is closed is lost: its state is unknown until its session is over, or this is false again"`
	Disabled         *bool          `json:"disabled" doc:"It takes no new deliveries, as a locker that its operator has put out of service"`
	AdvanceSeconds   int            `json:"advance_seconds" min:"0" max:"2678400" doc:"The locker's time runs ahead by so much, 31 days at most: door sessions end, the keypad takes codes again, and deliver_before, due_at and deposited_at of the deliveries that are not over lie so much earlier. A deposit that this settles is made now"`
	Clear            bool           `json:"clear" doc:"First reset the locker: every fault and jam ends, its doors are closed, openings end, packages inside count as taken out and their deliveries as failed, those that wait for their deposit are cancelled, every compartment is free and in use, and the keypad takes codes again."`
}

// SetFaults breaks or mends the calling provider's mock cabinet, and lets its time run ahead.
// Errors: DEVICE_NOT_FOUND,
// DEVICE_NOT_SHARED, NOT_A_TEST_LOCKER. Source: lockers-devices 5, operation 40.
func (s *Service) SetFaults(ctx context.Context, c cloud.Caller, in FaultsInput) (Output, error) {
	if in.Clear {
		if _, err := s.playAct(ctx, c, in.Device, func(m *machine) error { return m.end() }, nil); err != nil {
			return Output{}, err
		}
	}
	return s.playAct(ctx, c, in.Device, func(m *machine) error {
		if in.Clear {
			m.Advance(ending, m.readMissed)
		}
		set(&m.kept.Faults.TimeoutNextOpen, in.TimeoutNextOpen)
		set(&m.kept.Faults.DropCloseReports, in.DropCloseReports)
		was := m.kept.Faults.Offline
		if in.Clear { // which comes before anything else
			m.leaves = in.Offline != nil && *in.Offline
		} else {
			set(&m.kept.Faults.Offline, in.Offline)
		}
		for n, d := range m.kept.Doors {
			if d.Unreported && !m.kept.Faults.DropCloseReports {
				m.move(n, func(d *door) { d.Unreported = false })
			}
		}
		m.after = func() error { return m.setCloud(in) }
		if m.kept.Faults.Offline != was {
			if err := m.connect(); err != nil {
				return err
			}
		}
		if by := time.Duration(in.AdvanceSeconds) * time.Second; by > 0 {
			if err := locker.AdvanceMock(m.Work, by); err != nil {
				return err
			}
			m.Advance(by, m.readMissed)
			m.Acted = m.Last
		}
		return nil
	}, nil)
}

// ending is how long a door that was pulsed may still open, and its opening run, at most.
const ending = 10 * time.Second

// end ends every fault and all that runs at the cabinet: its doors are closed with nothing new
// behind them, and the openings of which doors were never opened are cancelled.
func (m *machine) end() error {
	was := m.kept.Faults.Offline
	m.kept.Faults = Faults{}
	for _, l := range m.Rules.Config.Layout {
		n := edge.DoorNumber(l.Door)
		item := wire.ItemUnknown
		if m.Rules.Doors[n].Opening != "" {
			item = wire.ItemAbsent
		}
		if m.kept.Doors[n] != (door{Item: item}) {
			m.move(n, func(d *door) { *d = door{Item: item} })
		}
	}
	m.Rules.Meta.Budgets = rules.Budgets{}
	m.after = func() error {
		locker.DisableMock(m.Work, false)
		return locker.CancelMock(m.Work)
	}
	if !was {
		return nil
	}
	return m.connect()
}

// connect takes the cabinet off the network or back to it; there it says what it has kept and
// takes what waits for it.
func (m *machine) connect() error {
	if err := m.Connect(!m.kept.Faults.Offline); err != nil || m.kept.Faults.Offline {
		return err
	}
	if err := m.Apply(); err != nil {
		return err
	}
	return m.CatchUp()
}

// setCloud does what faults are to do outside the cabinet.
func (m *machine) setCloud(in FaultsInput) error {
	if in.Clear {
		if err := locker.ResetMock(m.Work); err != nil {
			return err
		}
	}
	if in.Disabled != nil {
		locker.DisableMock(m.Work, *in.Disabled)
	}
	return nil
}

func set(to *bool, v *bool) {
	if v != nil {
		*to = *v
	}
}

// keepsReports refuses an act whose reports an offline cabinet has no room for.
func keepsReports(m *machine) error {
	if len(m.Reports) >= hosted.MaxReports {
		return cloud.E(cloud.Conflict, "DEVICE_OFFLINE")
	}
	return nil
}

// playAct plays one act of the calling provider's at a cabinet, unless check, where there is
// one, refuses it, and shows what came of it.
func (s *Service) playAct(ctx context.Context, c cloud.Caller, id cloud.DeviceID, act, check func(*machine) error) (out Output, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		_, err := locker.Usable(v, c, id)
		return err
	})
	if err != nil {
		return out, err
	}
	due, err := s.step(ctx, id, func(m *machine) error {
		if check != nil {
			if err := check(m); err != nil {
				return err
			}
		}
		m.show = func() error {
			out.Result = true
			out.Locker, err = m.showLocker()
			return err
		}
		return act(m)
	})
	if err != nil {
		return Output{}, err
	}
	s.player.PlaySoon(id, due)
	return out, s.cfg.Store.Look(ctx, func(v cloud.View) error { return out.Locker.findRows(v) })
}

// findRows adds what is stored about the cabinet besides its state.
func (l *Locker) findRows(v cloud.View) error {
	d, err := v.Device(l.DeviceID)
	if err != nil {
		return err
	}
	l.Disabled = d.Disabled
	cells, err := v.Compartments(d.ID)
	if err != nil {
		return err
	}
	for i := range l.Doors {
		for _, c := range cells {
			if c.GridID == l.Doors[i].GridID {
				l.Doors[i].State, l.Doors[i].BlockReason = c.State, cloud.OrNull(c.BlockReason)
			}
		}
	}
	l.Rehearsed, err = locker.FindRehearsed(v, d)
	return err
}

func (m *machine) doorOf(g cloud.GridID) (edge.DoorNumber, error) {
	cells, err := m.View.Compartments(m.Device.ID)
	if err != nil {
		return 0, err
	}
	for _, c := range cells {
		if c.GridID == g {
			return edge.DoorNumber(c.Door), nil
		}
	}
	return 0, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
}

// showLocker is the cabinet as a provider sees it.
func (m *machine) showLocker() (Locker, error) {
	cells, err := m.View.Compartments(m.Device.ID)
	if err != nil {
		return Locker{}, err
	}
	out := Locker{DeviceID: m.Device.ID, DeviceCode: m.Device.Code, Online: !m.kept.Faults.Offline, Faults: m.kept.Faults, Doors: []Door{}}
	for _, c := range cells {
		n := edge.DoorNumber(c.Door)
		d := m.kept.Doors[n]
		row := Door{GridID: c.GridID, GridCode: c.GridCode, PickupLabel: cloud.OrNull(c.Label), Size: c.Size, Status: "closed", Jammed: d.Jammed, OpeningID: cloud.OrNull(m.Rules.Doors[n].Opening)}
		if d.Open {
			row.Status = "open"
		}
		if d.Item != wire.ItemUnknown {
			row.Occupied = new(d.Item == wire.ItemPresent)
		}
		out.Doors = append(out.Doors, row)
	}
	return out, nil
}
