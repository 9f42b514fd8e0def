package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// Actions by which exceptions are resolved, of lockers-devices 8.
const (
	doorClosedOnSite = "door_closed_on_site"
	depositConfirmed = "deposit_confirmed"
	depositCancelled = "deposit_cancelled"
	packageFound     = "package_found"
	packageLost      = "package_lost"
	packageReturned  = "package_returned"
	extended         = "extended"
	noAction         = "no_action"
)

// resolutions are the actions that resolve an exception of a type.
var resolutions = map[string][]string{
	wire.ExDoorLeftOpen:      {doorClosedOnSite, packageFound, packageLost, noAction}, // its deposit settles once the door is shut
	wire.ExDepositUnverified: {depositConfirmed, depositCancelled, packageLost, packageReturned, noAction},
	wire.ExItemMissing:       {packageFound, packageLost, packageReturned, noAction},
	exOverdue:                {extended, packageReturned, packageLost},
}

// CabinetExceptionBody is something at a compartment that a person has to look at.
type CabinetExceptionBody struct {
	ExceptionID   cloud.ExceptionID    `json:"exception_id"`
	Type          string               `json:"type" doc:"door_left_open, deposit_unverified, item_missing or overdue"`
	Severity      string               `json:"severity"`
	Status        string               `json:"status"`
	DeviceID      cloud.DeviceID       `json:"device_id"`
	GridCode      string               `json:"grid_code"`
	DoorName      string               `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none"`
	DeviceOrderID *cloud.DeviceOrderID `json:"device_order_id"`
	DeliveryID    *cloud.DeliveryID    `json:"delivery_id"`
	Note          string               `json:"note"`
	Resolution    *string              `json:"resolution_action"`
	OpenedAt      *string              `json:"opened_at"`
	ClosedAt      *string              `json:"closed_at"`
	ClosedBy      *string              `json:"closed_by" doc:"device, partner or staff"`
}

func exceptionBody(v cloud.View, e cloud.Exception, l *time.Location) (CabinetExceptionBody, error) {
	name, err := doorName(v, e.DeviceID, e.GridCode)
	return CabinetExceptionBody{ExceptionID: e.ID, Type: e.Type, Severity: e.Severity, Status: e.Status, DeviceID: e.DeviceID, GridCode: e.GridCode, DoorName: name,
		DeviceOrderID: cloud.OrNull(e.DeviceOrderID), DeliveryID: cloud.OrNull(e.DeliveryID), Note: e.Note, Resolution: cloud.OrNull(e.Resolution),
		OpenedAt: cloud.Stamp(e.OpenedAt, l), ClosedAt: cloud.Stamp(e.ClosedAt, l), ClosedBy: cloud.OrNull(e.ClosedBy)}, err
}

// CabinetExceptionsInput asks for a part of the business's exceptions.
type CabinetExceptionsInput struct {
	check.Keyset
	Status   string         `query:"status" enum:"open,resolved,dismissed,all" default:"open"`
	DeviceID cloud.DeviceID `query:"device_id" min:"1"`
}

// CabinetExceptionsOutput lists exceptions.
type CabinetExceptionsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Exceptions []CabinetExceptionBody `json:"exceptions"`
}

// ListCabinetExceptions lists the exceptions of the caller's business, newest first.
func (s registry) ListCabinetExceptions(ctx context.Context, c cloud.Caller, in CabinetExceptionsInput) (out CabinetExceptionsOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	f := cloud.ExceptionFilter{BusinessID: c.Account.BusinessID, DeviceID: in.DeviceID, Status: cmp.Or(in.Status, "open"), Live: true, Page: page}
	if f.Status == "all" {
		f.Status = ""
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := v.Exceptions(f)
		if err != nil {
			return err
		}
		out = CabinetExceptionsOutput{Result: true, PageOutput: in.Output(in, listed), Exceptions: []CabinetExceptionBody{}}
		v = newMemo(v, cloud.Device{})
		for _, e := range list {
			shown, err := exceptionBody(v, e, biz.Location())
			if err != nil {
				return err
			}
			out.Exceptions = append(out.Exceptions, shown)
		}
		return nil
	})
	return out, err
}

// ByException names an exception.
type ByException struct {
	ID cloud.ExceptionID `path:"id"`
}

// Evidence is what is known about the door of an exception.
type Evidence struct {
	DoorStatus  string        `json:"door_status" doc:"Last report of the door: closed, open, jammed or unknown"`
	Occupied    *bool         `json:"occupied" doc:"What its sensor sees, null without one"`
	State       string        `json:"state" doc:"Of the compartment"`
	BlockReason string        `json:"block_reason"`
	Online      bool          `json:"online" doc:"Whether the cabinet is connected now: without a connection the reports are old"`
	LastSeenAt  *string       `json:"last_seen_at"`
	DoorReports []HistoryLine `json:"door_reports" doc:"Openings of this door, newest first: the last ten of the 90 days before, and those since"`
}

// CabinetExceptionDetail is an exception with all that helps to decide about it.
type CabinetExceptionDetail struct {
	CabinetExceptionBody
	Evidence    Evidence             `json:"evidence"`
	DeviceOrder *DeviceOrderView     `json:"device_order" doc:"The package that it is about, null for a door with none"`
	Photos      []PhotoBody          `json:"photos" doc:"That the device has taken of the compartment from an hour before to a day after it was opened, newest first; empty for a device without a camera"`
	OpenDoor    *string              `json:"open_door" doc:"Name of the door of a door_left_open while the connected cabinet reports it as open and the compartment is not blocked: the exception can be closed once it is shut; null otherwise"`
	Resolutions []PossibleResolution `json:"resolutions" doc:"Actions that can resolve it; none once it is closed"`
}

// PossibleResolution is an action that can resolve an exception, and what it does.
type PossibleResolution struct {
	Action  string `json:"resolution_action"`
	Removes string `json:"removal_reason" doc:"Reason with which the package is removed from the registry and its compartment cleared; empty: it is not"`
	Command string `json:"command" doc:"What the cabinet is ordered: clear, close_session, sync_config; empty: nothing"`
}

// CabinetExceptionOutput shows an exception.
type CabinetExceptionOutput struct {
	Result    bool                   `json:"result"`
	Exception CabinetExceptionDetail `json:"exception"`
}

// FindCabinetException shows an exception of the caller's business with the reports of its door
// and the actions that can resolve it. Error: EXCEPTION_NOT_FOUND.
func (s registry) FindCabinetException(ctx context.Context, c cloud.Caller, in ByException) (out CabinetExceptionOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		e, err := cabinetException(v, c, in.ID)
		if err != nil {
			return err
		}
		biz, err := v.Business(e.BusinessID)
		if err != nil {
			return err
		}
		l := biz.Location()
		v = newMemo(v, cloud.Device{})
		x := CabinetExceptionDetail{Resolutions: []PossibleResolution{}}
		if x.CabinetExceptionBody, err = exceptionBody(v, e, l); err != nil {
			return err
		}
		if x.Evidence, err = evidenceOf(v, e, l); err != nil {
			return err
		}
		if ev := x.Evidence; e.Type == wire.ExDoorLeftOpen && e.Status == "open" && ev.Online && ev.DoorStatus == "open" && ev.State != cloud.GridBlocked {
			x.OpenDoor = &x.DoorName
		}
		if x.Photos, err = s.photosOf(v, e, l); err != nil {
			return err
		}
		if e.DeviceOrderID != 0 {
			o, err := v.DeviceOrder(e.BusinessID, e.DeviceOrderID)
			if err == nil {
				var shown DeviceOrderView
				shown, err = deviceOrderView(v, o, l)
				x.DeviceOrder = &shown
			}
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return err
			}
		}
		if e.Status == "open" {
			orders, err := ordersAbout(v, e)
			if err != nil {
				return err
			}
			gone := departed(orders, e.GridCode) != nil
			for _, action := range possibleResolutions(e, orders) {
				p := PossibleResolution{Action: action, Removes: removalBy(e.Type, action)}
				switch {
				case p.Removes != "":
					p.Command = string(wire.CmdClear)
				case action == depositConfirmed && !gone:
					p.Command = string(wire.CmdCloseSession)
				case action == doorClosedOnSite:
					p.Command = string(wire.CmdSyncConfig)
				}
				x.Resolutions = append(x.Resolutions, p)
			}
		}
		out = CabinetExceptionOutput{true, x}
		return nil
	})
	return out, err
}

// evidenceReports are the openings of a door that are shown with an exception.
const evidenceReports = 10

func evidenceOf(v cloud.View, e cloud.Exception, l *time.Location) (out Evidence, err error) {
	out.DoorReports = []HistoryLine{}
	cells, err := v.Compartments(e.DeviceID)
	if err != nil {
		return out, err
	}
	session, err := v.Session(e.DeviceID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return out, err
	}
	out.Online, out.LastSeenAt, out.DoorStatus = session.Online, cloud.Stamp(session.LastSeenAt, l), "unknown"
	at := slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.GridCode == e.GridCode })
	if at < 0 {
		return out, nil
	}
	cell := cells[at]
	out.DoorStatus, out.Occupied, out.State, out.BlockReason = cell.DoorStatus, cell.Occupied, cell.State, cell.BlockReason
	// A cabinet has a few dozen openings a day at most: the newest of them are read.
	list, _, err := v.DoorHistory(e.DeviceID, 0, e.OpenedAt.Add(-historyLife), cloud.Page{Sort: "requested_at", Down: true, Limit: evidenceRead})
	if err != nil {
		return out, err
	}
	before, places := 0, byGrid(cells)
	for _, o := range list {
		if !slices.ContainsFunc(o.Doors, func(d cloud.OpeningDoor) bool { return d.Door == cell.Door }) {
			continue
		}
		if !o.RequestedAt.After(e.OpenedAt) {
			if before++; before > evidenceReports {
				break
			}
		}
		out.DoorReports = append(out.DoorReports, historyLine(o, places, l))
	}
	return out, nil
}

// evidenceRead are the openings of a cabinet among which those of one door are looked for.
const evidenceRead = 500

// removalBy is the reason with which a resolution removes the package of an exception; "" where
// it removes none.
func removalBy(typ, action string) string {
	switch {
	case action == packageReturned && typ == exOverdue:
		return overdueReturn
	case action == depositCancelled, action == packageLost, action == packageReturned:
		return "anomaly"
	}
	return ""
}

// cabinetException finds an exception of the caller's business at a cabinet that is its own.
// Error: EXCEPTION_NOT_FOUND.
func cabinetException(v cloud.View, c cloud.Caller, id cloud.ExceptionID) (cloud.Exception, error) {
	e, err := v.Exception(c.Account.BusinessID, id)
	return e, atOwnCabinet(v, e.DeviceID, err, "EXCEPTION_NOT_FOUND")
}

// settle runs one decision about an open exception. fn closes it by what it does, or it is
// closed by the outcome afterwards. Errors: EXCEPTION_NOT_FOUND, EXCEPTION_CLOSED and those of
// fn.
func (s registry) settle(ctx context.Context, c cloud.Caller, id cloud.ExceptionID, outcome outcome, fn func(w *Work, e *cloud.Exception) error) (out ClosedExceptionOutput, err error) {
	var found cloud.Exception
	err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		found, err = cabinetException(v, c, id)
		return err
	})
	if err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, found.DeviceID, func(v cloud.View) (*cloud.Changes, error) {
		device, err := v.Device(found.DeviceID)
		if err != nil {
			return nil, err
		}
		biz, err := v.Business(device.BusinessID)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		e, err := w.exception(found.Source)
		switch {
		case err != nil:
			return nil, err
		case e == nil || e.ID != id:
			return nil, cloud.E(cloud.NotFound, "EXCEPTION_NOT_FOUND")
		case e.Status != "open":
			return nil, &cloud.Error{Kind: cloud.Conflict, Code: "EXCEPTION_CLOSED", Details: map[string]any{"status": e.Status, "resolution_action": cloud.OrNull(e.Resolution)}}
		}
		if err := fn(w, e); err != nil {
			return nil, err
		}
		if e.Status == "open" {
			e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = outcome.status, outcome.action, now, "staff"
		}
		e.Note = joinNotes(e.Note, outcome.note)
		w.touch(e)
		if err := w.auditStaff(c, "exception_closed", fmt.Sprint("exception:", id), map[string]string{"status": outcome.status, "resolution_action": outcome.action, "note": outcome.note}); err != nil {
			return nil, err
		}
		shown, err := exceptionBody(w.v, *e, biz.Location())
		if err != nil {
			return nil, err
		}
		out = ClosedExceptionOutput{true, shown}
		if outcome.status == "resolved" {
			w.ch.Answer = out // a dismissal may be a part of another call
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	return out, err
}

// outcome is how a person closes an exception.
type outcome struct{ status, action, note string }

// joinNotes keeps what the cabinet said about an exception before what a person says.
func joinNotes(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}

// ClosedExceptionOutput shows an exception that was closed.
type ClosedExceptionOutput struct {
	Result    bool                 `json:"result"`
	Exception CabinetExceptionBody `json:"exception"`
}

// ResolveInput resolves an exception.
type ResolveInput struct {
	ID     cloud.ExceptionID `path:"id" json:"-"`
	Action string            `json:"resolution_action" required:"true" enum:"door_closed_on_site,deposit_confirmed,deposit_cancelled,package_found,package_lost,package_returned,extended,no_action" doc:"What a person found or did; the exception names the actions that its type takes"`
	Hours  *int              `json:"hours" min:"1" max:"168" doc:"With extended, and needed there: more time to collect"`
	Note   string            `json:"note" max:"255"`
}

// ResolveException resolves an exception by what a person found or did, with what follows from
// it for delivery, compartment and cabinet:
//
//	deposit_confirmed     the deposit is settled as by staff, and the cabinet makes the code live
//	deposit_cancelled,    the compartment is cleared: the package is removed (anomaly), and the
//	package_lost          cabinet forgets it
//	package_returned      the same; an overdue package is removed as overdue_return
//	extended              the recipient has more time
//	door_closed_on_site   the cabinet is asked where it stands
//	package_found,        nothing besides
//	no_action
//
// While a connected cabinet reports the door of a door_left_open as open, none of them closes it,
// but at a blocked compartment. no_action closes no deposit_unverified whose device order is still
// unverified.
//
// Errors: EXCEPTION_NOT_FOUND, EXCEPTION_CLOSED, RESOLUTION_NOT_POSSIBLE (of another type),
// DOOR_OPEN, VALIDATION_FAILED, DELIVERY_STATE_CONFLICT, DEVICE_ORDER_STATE_CONFLICT,
// DEVICE_DISABLED. Source: lockers-devices 8.
func (s registry) ResolveException(ctx context.Context, c cloud.Caller, in ResolveInput) (ClosedExceptionOutput, error) {
	f := newFields()
	if in.Action == extended && in.Hours == nil {
		f.Say("hours", check.MessageRequired)
	}
	if err := f.Err(); err != nil {
		return ClosedExceptionOutput{}, err
	}
	in.Note = strings.TrimSpace(in.Note)
	return s.settle(ctx, c, in.ID, outcome{"resolved", in.Action, in.Note}, func(w *Work, e *cloud.Exception) error {
		if !slices.Contains(resolutions[e.Type], in.Action) {
			return notPossible(e.Type)
		}
		if err := (resolving{w.requests}).fits(e, in.Action); err != nil {
			return err
		}
		if err := (resolving{w.requests}).mayClose(e, in.Action); err != nil {
			return err
		}
		return resolving{w.requests}.resolve(c, e, in)
	})
}

// mayClose refuses to close an exception about a door that still stands open, whatever a person
// says of it: it would be out of sight while anyone can reach in. A compartment that is blocked
// takes no parcels, and its contact may be broken: there a person's word counts. Nor is a deposit
// that was never verified left so by an action that decides nothing: its delivery would wait for
// ever, with no work item. Errors: DOOR_OPEN, RESOLUTION_NOT_POSSIBLE.
func (w resolving) mayClose(e *cloud.Exception, action string) error {
	switch {
	case e.Type == wire.ExDepositUnverified && action == noAction:
		return w.isDecided(e)
	case e.Type == wire.ExItemMissing && action == packageFound: // it can be taken out as long as the door stands open
	case e.Type != wire.ExDoorLeftOpen:
		return nil
	}
	cell, err := w.cellAt(e.GridCode)
	if err != nil {
		return err
	}
	if cell.State == cloud.GridBlocked {
		return nil
	}
	return isShut(w.requests, cell)
}

// fits refuses an action that contradicts what has become of the package of an exception. Error:
// DELIVERY_STATE_CONFLICT with the state and the actions that fit.
func (w resolving) fits(e *cloud.Exception, action string) error {
	if e.DeliveryID == 0 {
		return nil
	}
	orders, err := w.deviceOrders(e.DeliveryID)
	if err != nil {
		return err
	}
	allowed := possibleResolutions(*e, orders)
	if slices.Contains(allowed, action) {
		return nil
	}
	d, err := w.delivery(e.DeliveryID)
	if err != nil || d == nil {
		return err
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"status": d.Status, "allowed": allowed}}
}

// ordersAbout are the packages of the delivery that an exception is about.
func ordersAbout(v cloud.View, e cloud.Exception) (out []*cloud.DeviceOrder, err error) {
	if e.DeliveryID == 0 {
		return nil, nil
	}
	list, err := v.DeviceOrders(e.DeliveryID)
	for i := range list {
		out = append(out, &list[i])
	}
	return out, err
}

// isDecided refuses while the device order of an exception is unverified. Error:
// RESOLUTION_NOT_POSSIBLE with the actions that decide.
func (w resolving) isDecided(e *cloud.Exception) error {
	orders, err := w.deviceOrders(e.DeliveryID)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if o.GridCode == e.GridCode && o.Status == "unverified" && o.EndedAt.IsZero() {
			return refuseAction(e.Type, slices.DeleteFunc(slices.Clone(resolutions[e.Type]), func(a string) bool { return a == noAction }))
		}
	}
	return nil
}

// notPossible refuses an action that closes no exception of a type.
func notPossible(typ string) error { return refuseAction(typ, resolutions[typ]) }

func refuseAction(typ string, allowed []string) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: "RESOLUTION_NOT_POSSIBLE", Args: []any{strings.Join(allowed, ", ")}, Details: map[string]any{"type": typ, "allowed": allowed}}
}

// resolving is the work of one resolution of an exception.
type resolving struct{ requests }

// resolve does what a resolution is followed by. It touches only what belongs to the delivery of
// the exception: another one may lie in the compartment by now.
func (w resolving) resolve(c cloud.Caller, e *cloud.Exception, in ResolveInput) error {
	reason := removalBy(e.Type, in.Action)
	if reason == "" && in.Action != depositConfirmed && in.Action != extended && in.Action != doorClosedOnSite {
		return nil
	}
	if w.device.Disabled {
		return cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	}
	if in.Action == doorClosedOnSite {
		return w.askDoor(e)
	}
	d, err := w.delivery(e.DeliveryID)
	switch {
	case err != nil:
		return err
	case d == nil && reason != "":
		return w.clearUnowned(e, removal{reason: reason, doubt: e.ID, resolution: in.Action}, cmp.Or(in.Note, in.Action))
	case d == nil:
		return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	case reason != "":
		return w.removeDoubted(e, d, removal{reason: reason, doubt: e.ID, resolution: in.Action}, cmp.Or(in.Note, in.Action))
	case in.Action == extended:
		return w.extend(c, d, time.Duration(*in.Hours)*time.Hour)
	}
	return w.confirmDoubted(c, e, d)
}

// askDoor asks the cabinet where it stands, after a person has shut a door. Error: DOOR_OPEN.
func (w resolving) askDoor(e *cloud.Exception) error {
	cell, err := w.cellAt(e.GridCode)
	if err != nil {
		return err
	}
	if err := isShut(w.requests, cell); err != nil && cell.State != cloud.GridBlocked {
		return err
	}
	_, err = w.send("", wire.CmdSyncConfig, wire.SyncConfig{Version: w.device.ConfigVersion}, nil, longCommandLife)
	return err
}

// clearUnowned clears the compartment of an exception that is about no delivery. Error:
// DELIVERY_STATE_CONFLICT (one lies there, or is to).
func (w resolving) clearUnowned(e *cloud.Exception, r removal, note string) error {
	cell, err := w.cellAt(e.GridCode)
	if err != nil {
		return err
	}
	if cell.DeliveryID != 0 {
		return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"delivery_id": cell.DeliveryID}}
	}
	clearing := clearing{w.requests, r}
	if err := clearing.mayTakeOut(cell); err != nil {
		return err
	}
	_, err = clearing.clear(cell, note)
	return err
}

// doubted are the open rows of a delivery that an exception is about: of an overdue one all that
// it has left, of a missing package all that should lie in the compartment, of a doubtful deposit
// those there that nothing verifies, and all there when none is in doubt.
func (w resolving) doubted(e *cloud.Exception, d *cloud.Delivery) (out []*cloud.DeviceOrder, err error) {
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return nil, err
	}
	inDoubt := false
	for _, o := range rows {
		if o.EndedAt.IsZero() && (e.Type == exOverdue || o.GridCode == e.GridCode) {
			out, inDoubt = append(out, o), inDoubt || o.IsUnverified()
		}
	}
	if e.Type == wire.ExDepositUnverified && inDoubt {
		out = slices.DeleteFunc(out, func(o *cloud.DeviceOrder) bool { return !o.IsUnverified() })
	}
	return out, nil
}

// removeDoubted takes out what an exception is about, one compartment after the other; what
// nothing verified first, so that the delivery ends as the rest of it does.
func (w resolving) removeDoubted(e *cloud.Exception, d *cloud.Delivery, r removal, note string) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(cells, func(x *cloud.Compartment) bool { return x.GridCode == e.GridCode }); at >= 0 {
		if err := (clearing{w.requests, r}).mayTakeOut(cells[at]); err != nil {
			return err
		}
	}
	rows, err := w.doubted(e, d)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return w.letGo(e, d, r, note)
	}
	for _, unverified := range []bool{true, false} {
		for _, cell := range cells {
			var here []*cloud.DeviceOrder
			for _, o := range rows {
				if o.GridCode == cell.GridCode && o.EndedAt.IsZero() && o.IsUnverified() == unverified {
					here = append(here, o)
				}
			}
			if len(here) == 0 {
				continue
			}
			clearing := clearing{w.requests, r}
			if unverified {
				clearing.reason = foundEmpty.reason
			}
			if err := clearing.mayTakeOut(cell); err != nil {
				return err
			}
			if err := clearing.removeRows(here, d, cell, note); err != nil {
				return err
			}
		}
	}
	return nil
}

// letGo clears a compartment that still counts as the delivery's, of which no package is left.
func (w resolving) letGo(e *cloud.Exception, d *cloud.Delivery, r removal, note string) error {
	cell, err := w.cellAt(e.GridCode)
	if err != nil {
		return err
	}
	if cell.DeliveryID != d.ID || cell.State == cloud.GridReserved {
		return nil
	}
	_, err = clearing{w.requests, r}.clear(cell, note)
	return err
}

// confirmDoubted settles the deposit of what nothing verifies behind the door of an exception.
// The cabinet takes a confirmation of all doors of a deposit: where others are in doubt too, they
// come first, or the delivery is confirmed as a whole. Error: DEVICE_ORDER_STATE_CONFLICT.
func (w resolving) confirmDoubted(c cloud.Caller, e *cloud.Exception, d *cloud.Delivery) error {
	rows, err := w.deviceOrders(d.ID)
	if err != nil || departed(rows, e.GridCode) != nil { // it was there, and has left
		return err
	}
	cell, err := w.cellAt(e.GridCode)
	if err != nil {
		return err
	}
	var in ConfirmInput
	var others []string
	for _, o := range rows {
		switch {
		case !o.IsUnverified():
		case o.GridCode == e.GridCode:
			in.Packages = append(in.Packages, ConfirmPackage{TrackingNumber: o.Tracking, GridID: cell.GridID})
		default:
			others = append(others, o.GridCode)
		}
	}
	if len(others) > 0 {
		return &cloud.Error{Kind: cloud.Conflict, Code: "DEVICE_ORDER_STATE_CONFLICT", Details: map[string]any{"status": "unverified", "grid_codes": others}}
	}
	if len(in.Packages) == 0 && d.Status != cloud.DeliveryDelivered { // nothing is in doubt
		return conflict(*d)
	}
	return w.confirm(c, d, in)
}

// DismissInput closes an exception that needs nothing.
type DismissInput struct {
	ID   cloud.ExceptionID `path:"id" json:"-"`
	Note string            `json:"note" max:"255"`
}

// DismissException closes an exception that turned out to be none. An overdue parcel stays one
// until it is collected, has more time or was removed; a door that is left open, until it is shut
// or its compartment is blocked. Errors: EXCEPTION_NOT_FOUND, EXCEPTION_CLOSED,
// RESOLUTION_NOT_POSSIBLE, DOOR_OPEN.
func (s registry) DismissException(ctx context.Context, c cloud.Caller, in DismissInput) (ClosedExceptionOutput, error) {
	return s.settle(ctx, c, in.ID, outcome{"dismissed", noAction, strings.TrimSpace(in.Note)}, func(w *Work, e *cloud.Exception) error {
		if e.Type == exOverdue {
			return notPossible(e.Type)
		}
		return resolving{w.requests}.mayClose(e, noAction)
	})
}
