package locker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Occurrence is one placed record of a device.
type Occurrence struct {
	wire.Record
	OccurredAt  time.Time
	Approximate bool
	// Earliest and Latest bound a moment that was not seen, as cloud.Moment.
	Earliest, Latest time.Time
	// Present is set when no newer status has reported the device's present.
	Present bool
}

func (r Occurrence) moment() cloud.Moment {
	return cloud.Moment{At: r.OccurredAt, Approximate: r.Approximate, Earliest: r.Earliest, Latest: r.Latest}
}

// Work collects what records of one device lead to inside one decision. It
// reads each row once and writes what it changed in Finish.
//
//	reports     what the cabinet's records mean     ┐
//	requests    what partners and staff want        ├ handling  what becomes of deliveries and compartments
//	comparison  what the cabinet's status says      ┘   ├ timeline  events of parcels, and news for their orders
//	                                                    ├ codeList  entries of the cabinet's code list
//	                                                    └ rows      everything stored, each read once
type Work struct {
	*handling
	reports
	requests
	comparison
}

// Sections of a decision's work.
type (
	reports    struct{ *handling }
	requests   struct{ *handling }
	comparison struct{ *handling }
)

// handling is what becomes of deliveries, packages and compartments, whatever the source.
type handling struct {
	*rows
	*timeline
	*codeList
}

// rows are those of one device and of what lies in it, as they will be.
type rows struct {
	s        *core
	v        cloud.View
	device   cloud.Device
	received time.Time
	ch       cloud.Changes

	openings   map[string]*cloud.Opening
	deliveries map[cloud.DeliveryID]*cloud.Delivery
	byNumber   map[string]cloud.DeliveryID
	cells      map[uint]*cloud.Compartment
	commands   map[string]*cloud.Command
	orders     map[cloud.DeliveryID][]*cloud.DeviceOrder
	exceptions map[string]*cloud.Exception // by source
	presents   map[uint]*cloud.DoorPresent
	status     map[any]string // of registry rows, by pointer, as last noted
	registry   []registryNews
	changed    map[any]bool // rows to be written, by pointer
}

// timeline is what is added to the timelines of parcels.
type timeline struct {
	*rows
	shipments map[string]*shipment
	news      []cloud.LockerNews
}

// codeList is the list of codes that the cabinet holds.
type codeList struct {
	*rows
	codeRows map[cloud.DeliveryID][]*cloud.CodeRow
	listed   bool // it has grown
}

type shipment struct {
	cloud.Shipment
	events []otep.Event // loaded when needed, with those added
	loaded bool
	part   cloud.PackageID // of several packages of its order the one that is meant, 0 for all
}

// Problems of a record.
const (
	badBody = cloud.DevBadBatch
	foreign = cloud.DevForeignReference
)

// Begin starts a decision's work on one device.
func (s *core) Begin(v cloud.View, d cloud.Device, received time.Time) *Work {
	r := &rows{s: s, v: newMemo(v, d), device: d, received: received, openings: map[string]*cloud.Opening{}, deliveries: map[cloud.DeliveryID]*cloud.Delivery{},
		byNumber: map[string]cloud.DeliveryID{}, cells: map[uint]*cloud.Compartment{}, commands: map[string]*cloud.Command{},
		orders: map[cloud.DeliveryID][]*cloud.DeviceOrder{}, exceptions: map[string]*cloud.Exception{}, presents: map[uint]*cloud.DoorPresent{},
		status: map[any]string{}, changed: map[any]bool{}}
	h := &handling{r, &timeline{rows: r, shipments: map[string]*shipment{}}, &codeList{rows: r, codeRows: map[cloud.DeliveryID][]*cloud.CodeRow{}}}
	return &Work{h, reports{h}, requests{h}, comparison{h}}
}

// Apply takes one record. A problem is a fault of the record, which then
// derives nothing; an error is ours.
func (w reports) Apply(r Occurrence) (problem string, err error) {
	switch r.Kind {
	case wire.KindOpeningStarted:
		return apply(r, w.started)
	case wire.KindDoorOpened:
		return apply(r, w.doorOpened)
	case wire.KindDoorClosed:
		return apply(r, w.doorClosed)
	case wire.KindOpeningSettled:
		return apply(r, w.settled)
	case wire.KindOpeningEnded:
		return apply(r, w.ended)
	case wire.KindPickupCompleted:
		return apply(r, w.pickedUp)
	case wire.KindCommandOutcome:
		return apply(r, w.outcome)
	case wire.KindExceptionOpened:
		return apply(r, w.exceptionOpened)
	case wire.KindExceptionClosed:
		return apply(r, w.exceptionClosed)
	case wire.KindTrackingEvent:
		return apply(r, w.trackingEvent)
	case wire.KindTamper:
		return apply(r, w.tamper)
	case wire.KindRemoval:
		return apply(r, removals{w}.removed)
	case wire.KindConfigApplied:
		return apply(r, w.configApplied)
	case wire.KindCompartmentBlocked:
		return apply(r, w.compartmentBlocked)
	}
	return "", nil // kept in the journal, leads to nothing here
}

func apply[B any](r Occurrence, f func(Occurrence, B) (string, error)) (string, error) {
	var b B
	if wire.Decode(r.Body, &b) != nil {
		return badBody, nil
	}
	return f(r, b)
}

// Rows, read once.

func read[K comparable, T any](m map[K]*T, k K, load func() (T, error)) (*T, error) {
	if p, ok := m[k]; ok {
		return p, nil
	}
	v, err := load()
	if errors.Is(err, cloud.ErrNotFound) {
		m[k] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m[k] = &v
	return &v, nil
}

func (w *rows) opening(id string) (*cloud.Opening, error) {
	return read(w.openings, id, func() (cloud.Opening, error) { return w.v.Opening(id) })
}

func (w *rows) delivery(id cloud.DeliveryID) (*cloud.Delivery, error) {
	return read(w.deliveries, id, func() (cloud.Delivery, error) { return w.v.Delivery(id) })
}

func (w *rows) deliveryByNumber(ref string) (*cloud.Delivery, error) {
	if id, ok := w.byNumber[ref]; ok {
		return w.delivery(id)
	}
	d, err := w.v.DeliveryByNumber(ref)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.byNumber[ref] = d.ID
	return read(w.deliveries, d.ID, func() (cloud.Delivery, error) { return d, nil })
}

func (w *rows) cell(door uint) (*cloud.Compartment, error) {
	return read(w.cells, door, func() (cloud.Compartment, error) { return w.v.Compartment(w.device.ID, door) })
}

func (w *rows) command(id string) (*cloud.Command, error) {
	return read(w.commands, id, func() (cloud.Command, error) { return w.v.Command(id) })
}

func (w *rows) deviceOrders(id cloud.DeliveryID) ([]*cloud.DeviceOrder, error) {
	if o, ok := w.orders[id]; ok {
		return o, nil
	}
	rows, err := w.v.DeviceOrders(id)
	if err != nil {
		return nil, err
	}
	out := make([]*cloud.DeviceOrder, len(rows))
	for i := range rows {
		out[i] = &rows[i]
		w.status[out[i]] = rows[i].Status
	}
	w.orders[id] = out
	return out, nil
}

func (w *rows) exception(source string) (*cloud.Exception, error) {
	_, known := w.exceptions[source]
	e, err := read(w.exceptions, source, func() (cloud.Exception, error) { return w.v.ExceptionBySource(w.device.ID, source) })
	if !known && e != nil {
		w.status[e] = e.Status
	}
	return e, err
}

// openExceptions are the exceptions at the device that are open, those of this decision too.
func (w *rows) openExceptions() (out []*cloud.Exception, err error) {
	list, err := w.v.OpenExceptions(w.device.ID)
	if err != nil {
		return nil, err
	}
	for _, row := range list {
		if _, err := w.exception(row.Source); err != nil {
			return nil, err
		}
	}
	for _, e := range inOrder(w.exceptions) {
		if e.Status == "open" {
			out = append(out, e)
		}
	}
	return out, nil
}

// touch says that a row was changed.
func (w *rows) touch(row any) {
	w.changed[row] = true
	w.noteStatus(row)
}

// present changes the present of a door, where records may.
func (w *rows) present(door uint) *cloud.DoorPresent {
	p := w.presents[door]
	if p == nil {
		p = &cloud.DoorPresent{DeviceID: w.device.ID, Door: door}
		if c, err := w.cell(door); err == nil && c != nil {
			p.DoorStatus, p.Occupied, p.OpeningID = c.DoorStatus, c.Occupied, c.OpeningID
		}
		w.presents[door] = p
	}
	return p
}

// overAt notes that an opening runs on its doors no more, by a record of its end.
func overAt(w *rows, r Occurrence, o *cloud.Opening) {
	for _, d := range o.Doors {
		if r.Present && w.present(d.Door).OpeningID == o.ID {
			w.present(d.Door).OpeningID = ""
		}
	}
}

// Finish writes what was changed into ch.
func (w *Work) Finish(ch *cloud.Changes) error {
	if err := w.answerDoubts(); err != nil {
		return err
	}
	for _, o := range inOrder(w.openings) {
		if w.changed[o] {
			ch.Openings = append(ch.Openings, *o)
		}
	}
	for _, d := range inOrder(w.deliveries) {
		if w.changed[d] {
			ch.Deliveries = append(ch.Deliveries, *d)
		}
	}
	for _, c := range inOrder(w.cells) {
		if w.changed[c] {
			ch.Compartments = append(ch.Compartments, *c)
		}
	}
	for _, c := range inOrder(w.commands) {
		if w.changed[c] {
			ch.Commands = append(ch.Commands, *c)
		}
	}
	ch.Commands = append(ch.Commands, w.ch.Commands...)
	for _, id := range slices.Sorted(maps.Keys(w.orders)) {
		for _, o := range w.orders[id] {
			if w.changed[o] {
				ch.DeviceOrders = append(ch.DeviceOrders, *o)
			}
		}
	}
	for _, e := range inOrder(w.exceptions) {
		if w.changed[e] {
			ch.Exceptions = append(ch.Exceptions, *e)
		}
	}
	var shipments []cloud.Shipment
	for _, s := range inOrder(w.shipments) {
		shipments = append(shipments, s.Shipment)
		if w.changed[s] {
			ch.Shipments = append(ch.Shipments, s.Shipment)
		}
	}
	for _, p := range inOrder(w.presents) {
		ch.Doors = append(ch.Doors, *p)
	}
	ch.Shipments = append(ch.Shipments, w.ch.Shipments...)
	ch.Events = append(ch.Events, w.ch.Events...)
	ch.Withdrawn = append(ch.Withdrawn, w.ch.Withdrawn...)
	ch.Outbox = append(ch.Outbox, w.ch.Outbox...)
	ch.Notifications = append(ch.Notifications, w.ch.Notifications...)
	ch.Reminders = append(ch.Reminders, w.ch.Reminders...)
	ch.StaffLists = append(ch.StaffLists, w.ch.StaffLists...)
	ch.StaffRotas = append(ch.StaffRotas, w.ch.StaffRotas...)
	ch.Rows = append(ch.Rows, w.ch.Rows...)
	ch.DroppedFiles = append(ch.DroppedFiles, w.ch.DroppedFiles...)
	ch.Codes = append(ch.Codes, w.ch.Codes...)
	for _, id := range slices.Sorted(maps.Keys(w.codeRows)) {
		for _, r := range w.codeRows[id] {
			if w.changed[r] {
				ch.Codes = append(ch.Codes, *r)
			}
		}
	}
	if w.listed {
		ch.Devices = append(ch.Devices, w.device)
	}
	if w.device.Protocol == cloud.ProtocolMock && (w.listed || len(w.ch.Commands) > 0) {
		ch.Mocks = append(ch.Mocks, cloud.MockCabinet{DeviceID: w.device.ID, DueAt: w.received})
	}
	if w.device.Protocol == cloud.ProtocolHTTP && (w.listed || len(w.ch.Commands) > 0) {
		ch.HTTPDevices = append(ch.HTTPDevices, cloud.HTTPDevice{DeviceID: w.device.ID, DueAt: w.received})
	}
	ch.Compartments = append(ch.Compartments, w.ch.Compartments...)
	for id, shelves := range w.ch.Shelves {
		if ch.Shelves == nil {
			ch.Shelves = map[cloud.DeviceID][]cloud.Shelf{}
		}
		ch.Shelves[id] = shelves
	}
	ch.Sessions = append(ch.Sessions, w.ch.Sessions...)
	ch.Epochs = append(ch.Epochs, w.ch.Epochs...)
	ch.Gaps = append(ch.Gaps, w.ch.Gaps...)
	ch.DeviceFaults = append(ch.DeviceFaults, w.ch.DeviceFaults...)
	ch.Audits = append(ch.Audits, w.ch.Audits...)
	ch.Answer, ch.Unfinished = w.ch.Answer, w.ch.Unfinished
	if err := w.addAccountEvents(ch); err != nil {
		return err
	}
	if err := w.s.fanOutParcels(w.v, ch, shipments, w.ch.Events); err != nil {
		return err
	}
	return w.applyToOrders(ch)
}

// inOrder walks rows in the order of their keys, so that one decision writes
// in one order.
func inOrder[K interface {
	~string | ~uint | ~int64
}, T any](m map[K]*T) []*T {
	out := make([]*T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] != nil {
			out = append(out, m[k])
		}
	}
	return out
}

// Timelines.

// shipment is that of a number; nil where there is none, and on a test cabinet, whose
// parcels have none.
func (w *timeline) shipment(number string) (*shipment, error) {
	if !w.device.Livemode {
		return nil, nil
	}
	return read(w.shipments, number, func() (shipment, error) {
		s, err := w.v.ShipmentByNumber(number)
		return shipment{Shipment: s}, err
	})
}

// events are the events of a shipment's timeline, those of this decision too.
func (w *timeline) events(s *shipment) ([]otep.Event, error) {
	if s.loaded {
		return s.events, nil
	}
	rows, err := w.v.Timeline(s.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		s.events = append(s.events, r.Event)
	}
	s.loaded = true
	return s.events, nil
}

// recordEventID names the event that a record leads to: the same for a record
// that was carried into another epoch.
func (w *timeline) recordEventID(r Occurrence, number string, code otep.Code) string {
	return eventID("record\n%s\n%d\n%d\n%d\n%s\n%s", w.device.Code, r.Kind, r.Boot, r.Mono, number, code)
}

// eventID names an event by what it is known again by.
func eventID(format string, by ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, by...))
	return "evt_" + hex.EncodeToString(sum[:10])
}

// track appends an event to the timeline of a package.
func (w *timeline) track(r Occurrence, number string, code otep.Code, change func(*otep.Event)) error {
	s, err := w.shipment(number)
	if err != nil || s == nil {
		return err
	}
	e := w.event(r, number, code)
	if change != nil {
		change(&e)
	}
	w.add(r, s, e)
	return nil
}

// event is what a record of this device means for a package.
func (w *timeline) event(r Occurrence, number string, code otep.Code) otep.Event {
	source := otep.Source{Type: otep.Locker}
	if w.device.IsPost() {
		source.Type = otep.Warehouse
	}
	e := otep.Event{EventID: w.recordEventID(r, number, code), OccurredAt: otep.Time{Time: r.OccurredAt}, RecordedAt: otep.Time{Time: w.received},
		StatusCode: code, Source: &source, Location: w.location()}
	e.Extensions = r.moment().Extensions()
	return e
}

// location is where the device stands.
func (w *timeline) location() *otep.Location {
	l := &otep.Location{Name: w.device.Name, Type: otep.PlaceLocker, FacilityID: w.device.Code}
	if w.device.IsPost() {
		l.Type = otep.PlaceWarehouse
	}
	l.Latitude, l.Longitude = w.device.Place()
	return l
}

// add adds an event to a timeline; that of an order is the order's to write.
func (w *timeline) add(r Occurrence, s *shipment, e otep.Event) {
	e = e.Fill(s.Profile)
	row := cloud.TimelineEvent{ShipmentID: s.ID, BusinessID: s.BusinessID, Package: s.part, Event: e}
	if s.OrderID != 0 && w.s.cfg.Orders != nil {
		w.news = append(w.news, cloud.LockerNews{Kind: cloud.LockerEvent, BusinessID: s.BusinessID, OrderID: s.OrderID, Device: operatorOf(w.device), DeviceCode: w.device.Code,
			Place: w.location(), Event: &row, Moment: r.moment()})
		return
	}
	if s.loaded {
		s.events = append(s.events, e)
	}
	if former := (otep.Event{OccurredAt: otep.Time{Time: s.LastAt}, StatusCode: s.Current}); otep.Compare(&former, &e) <= 0 {
		s.Current, s.LastAt = e.StatusCode, e.OccurredAt.Time
		w.touch(s)
	}
	w.ch.Events = append(w.ch.Events, row)
}

// failReasons maps locker failure codes to incident reasons.
var failReasons = map[string]string{
	"NO_COMPARTMENT": "device_full", "COMPARTMENT_OCCUPIED": "device_full", "DOOR_NOT_OPENED": "device_fault", "DEVICE_OFFLINE": "device_fault",
	"PARCEL_TOO_LARGE": "oversize", "RECIPIENT_UNKNOWN": "address_incorrect",
}

// trackLoss is a package that will not be handed over: one that was taken out
// in a correction was removed, any other could not be delivered. Only the first
// reaches an order: what was never inside is where it was.
func (w *timeline) trackLoss(r Occurrence, o *cloud.Opening, d *cloud.Delivery, p *cloud.Package) error {
	switch {
	case o != nil && o.Kind == wire.OpenCorrection:
		return w.addPackageEvent(r, d, p, otep.RemovedFromDevice)
	case p.OrderID != 0:
		return nil
	}
	return w.trackFailure(r, d, p.TrackingNumber, p.FailureCode)
}

// trackFailure is a failed delivery; a timeline that had not reached the
// recipient's side gets there first.
func (w *timeline) trackFailure(r Occurrence, d *cloud.Delivery, number, failure string) error {
	code := otep.DeliveryFailed
	if d.IsOutgoing() {
		code = otep.PickupFailed
	}
	s, err := w.shipment(number)
	if err != nil || s == nil {
		return err
	}
	events, err := w.events(s)
	if err != nil {
		return err
	}
	if code == otep.DeliveryFailed && !otep.Reached(events) {
		if err := w.track(r, number, otep.OutForDelivery, nil); err != nil {
			return err
		}
	}
	return w.track(r, number, code, func(e *otep.Event) {
		e.IncidentReason = failReasons[failure]
		if e.IncidentReason == "" {
			e.IncidentReason = "other"
		}
	})
}
