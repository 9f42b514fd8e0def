package locker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// PackageInput is one package of a new delivery.
type PackageInput struct {
	TrackingNumber string  `json:"tracking_number" required:"true" max:"64" pattern:"^[A-Za-z0-9._-]+$" example:"SR204518837-1"`
	Reference      string  `json:"reference" max:"64"`
	Size           string  `json:"size" enum:"S,M,L,XL" doc:"Empty takes any that fits"`
	Weight         float64 `json:"weight" min:"0"`
	Length         float64 `json:"length" min:"0" doc:"cm. With all three measures, compartments whose inner measures are smaller are passed over"`
	Width          float64 `json:"width" min:"0" doc:"cm"`
	Height         float64 `json:"height" min:"0" doc:"cm"`
	Description    string  `json:"description" max:"255"`
}

// CreateInput is a new delivery.
type CreateInput struct {
	ReferenceNumber string          `json:"reference_number" required:"true" max:"64" doc:"Your own number of the delivery; each once"`
	DeviceID        cloud.DeviceID  `json:"device_id" required:"true" min:"1" doc:"The locker"`
	Packages        []PackageInput  `json:"packages" required:"true" max:"10"`
	Recipient       cloud.Recipient `json:"recipient" required:"true"`
	Purpose         string          `json:"purpose" enum:"delivery,send,return" doc:"delivery (when left out): a courier brings it, and its recipient collects. send and return: the sender brings it, and a courier collects; delivery_code is the sender's, and there is no pickup_code"`
	Sender          *cloud.Sender   `json:"sender" doc:"Who brings the parcel of a send or return; required for these, and for these alone"`
	Courier         *cloud.Courier  `json:"courier"`
	Notify          *cloud.Notify   `json:"notify"`
	DeliverBefore   string          `json:"deliver_before" format:"date-time" doc:"Until which the courier may deposit; in 72 hours when left out"`
	CollectWithin   int             `json:"collect_within_hours" min:"24" max:"720" doc:"Counted from the deposit; 72 when left out"`
	Reserve         *bool           `json:"reserve"`
	Metadata        json.RawMessage `json:"metadata"`
}

// DeliveryOutput is the answer that shows a delivery.
type DeliveryOutput struct {
	Result   bool         `json:"result"`
	Delivery DeliveryBody `json:"delivery"`
	// Created is set for a delivery that did not exist before.
	Created bool `json:"-"`
}

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

func (in *CreateInput) check(l *time.Location, now time.Time) (deliverBefore time.Time, err error) {
	f := newFields()
	seen := map[string]bool{}
	for i, p := range in.Packages {
		number := strings.ToUpper(p.TrackingNumber)
		if seen[number] {
			f.Say("packages."+strconv.Itoa(i)+".tracking_number", check.MessageTwice)
		}
		seen[number] = true
	}
	f.recipient(in.Recipient)
	f.checkPurpose(*in)
	if in.CollectWithin == 0 {
		in.CollectWithin = 72 // no default of its tag: what came is compared by its hash
	}
	deliverBefore = now.Add(72 * time.Hour)
	if in.DeliverBefore != "" {
		deliverBefore = f.deliverBefore(in.DeliverBefore, l, now)
	}
	f.metadata(in.Metadata)
	return deliverBefore.UTC(), f.Err()
}

const maxPackages = 10

func newPackage(position int, p PackageInput) cloud.Package {
	return cloud.Package{Position: position, TrackingNumber: p.TrackingNumber, Reference: p.Reference, Size: p.Size, Weight: p.Weight,
		Length: p.Length, Width: p.Width, Height: p.Height, Description: p.Description, Status: cloud.PackageCreated}
}

func (f fields) recipient(r cloud.Recipient) {
	if r.Phone == "" && r.Email == "" {
		f.Add("recipient", "A phone number or an email address is required.")
	}
}

func (f fields) deliverBefore(s string, l *time.Location, now time.Time) time.Time {
	t := check.Moment(s, l)
	if !t.After(now) {
		f.Add("deliver_before", "The time must lie ahead.")
	}
	return t
}

func (f fields) metadata(raw json.RawMessage) {
	var m map[string]any
	if len(raw) > 0 && json.Unmarshal(raw, &m) != nil {
		f.Add("metadata", "The metadata must be an object.")
	}
}

// Usable finds a device that the calling provider may use. Errors: DEVICE_NOT_FOUND,
// DEVICE_NOT_SHARED.
func Usable(v cloud.View, c cloud.Caller, id cloud.DeviceID) (cloud.Device, error) {
	d, err := v.Device(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (d.BusinessID != c.Provider.BusinessID || d.IsPost()) {
		return d, cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
	}
	if err != nil {
		return d, err
	}
	if d.OwnerProviderID != 0 && d.OwnerProviderID != c.Provider.ID {
		return d, cloud.E(cloud.Forbidden, "DEVICE_NOT_SHARED")
	}
	return d, nil
}

// Create makes a delivery task, idempotent by the partner's reference number:
// codes are drawn, compartments reserved, and the cabinet's code list grows, so
// that a courier can deposit with no network. Errors: VALIDATION_FAILED,
// DEVICE_NOT_FOUND, DEVICE_NOT_SHARED, DEVICE_DISABLED, NO_COMPARTMENT,
// PARCEL_TOO_LARGE, DUPLICATE_REFERENCE, LIVEMODE_NOT_ALLOWED.
func (s partners) Create(ctx context.Context, c cloud.Caller, in CreateInput) (DeliveryOutput, error) {
	now := time.Now().UTC()
	raw, _ := json.Marshal(in) // plain fields always encode
	hash := sha256.Sum256(raw)
	var device cloud.Device
	var before time.Time
	var existing *cloud.Delivery
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		biz, err := v.Business(c.Provider.BusinessID)
		if err != nil {
			return err
		}
		if before, err = in.check(biz.Location(), now); err != nil {
			return err
		}
		if old, err := v.DeliveryByReference(c.Provider.ID, in.ReferenceNumber); err == nil {
			existing = &old
			return nil
		} else if !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		device, err = Usable(v, c, in.DeviceID)
		return err
	})
	if err != nil {
		return DeliveryOutput{}, err
	}
	if existing != nil {
		return s.again(ctx, *existing, hash[:])
	}
	if !device.TakesDeliveries() {
		return DeliveryOutput{}, cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	}
	if device.Livemode && !c.Provider.LivemodeAllowed {
		return DeliveryOutput{}, cloud.E(cloud.Forbidden, "LIVEMODE_NOT_ALLOWED")
	}
	asked := creation{CreateInput: in, before: before, now: now, hash: hash[:]}
	var id cloud.DeliveryID
	for range 20 { // a drawn code may be in use
		drawn, err := s.draw(ctx, device, asked.outgoing())
		if err != nil {
			return DeliveryOutput{}, err
		}
		err = s.cfg.Store.Decide(ctx, device.ID, func(v cloud.View) (*cloud.Changes, error) {
			ch, d, err := s.create(v, c, asked, drawn)
			if id = d; err != nil {
				return nil, err
			}
			out, err := s.output(v, ch.Deliveries[0])
			out.Created = true
			ch.Answer = out
			return ch, err
		})
		if errors.Is(err, errCodeTaken) || errors.Is(err, errSecretsChanged) {
			continue
		}
		if errors.Is(err, cloud.ErrExists) {
			// The same reference or tracking number, at the same time.
			if out, ok, err := s.known(ctx, c, in.ReferenceNumber, hash[:]); ok || err != nil {
				return out, err
			}
			continue
		}
		if err != nil {
			return DeliveryOutput{}, err
		}
		out, err := s.show(ctx, id)
		out.Created = true
		return out, err
	}
	return DeliveryOutput{}, errors.New("no free code could be drawn")
}

// again answers a reference that is known: the same body, the same delivery.
func (s partners) again(ctx context.Context, d cloud.Delivery, hash []byte) (DeliveryOutput, error) {
	if !bytes.Equal(d.RequestHash, hash) {
		return DeliveryOutput{}, cloud.E(cloud.Conflict, "DUPLICATE_REFERENCE")
	}
	return s.show(ctx, d.ID)
}

// known answers a reference that came into being meanwhile.
func (s partners) known(ctx context.Context, c cloud.Caller, reference string, hash []byte) (out DeliveryOutput, ok bool, err error) {
	var d cloud.Delivery
	err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err = v.DeliveryByReference(c.Provider.ID, reference)
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) {
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	out, err = s.again(ctx, d, hash)
	return out, true, err
}

// creation is what a new delivery is made of.
type creation struct {
	CreateInput
	before, now time.Time // its time limit, and when it was asked for
	hash        []byte    // of what came
	returns     cloud.DeliveryID
}

// outgoing is the purpose of a delivery that its sender brings; "" of others.
func (x creation) outgoing() string {
	if x.Purpose == purposeDelivery {
		return ""
	}
	return x.Purpose
}

// drawnCodes are codes with the verifiers that a device knows them by.
type drawnCodes struct {
	Codes
	delivery, pickup []byte
	sealed           []byte // the secrets that they were made with
}

var errCodeTaken = errors.New("a drawn code is in use")

// draw makes two codes, or the delivery code alone for what a courier collects. The
// verifiers cost time and memory, so few are made at once.
func (s partners) draw(ctx context.Context, d cloud.Device, purpose string) (drawnCodes, error) {
	secrets, sealed, err := s.secrets(ctx, d.ID)
	if err != nil {
		return drawnCodes{}, fmt.Errorf("device %s: %w", d.Code, err)
	}
	select {
	case s.hashing <- struct{}{}:
	case <-ctx.Done():
		return drawnCodes{}, ctx.Err()
	}
	defer func() { <-s.hashing }()
	c := drawnCodes{sealed: sealed, Codes: Codes{Delivery: passcode.Draw(passcode.DeliveryDigits)}}
	c.delivery = passcode.Verifier(c.Delivery, secrets.Salt, secrets.Key, secrets.Params)
	if purpose != "" {
		return c, nil
	}
	c.Pickup = passcode.Draw(passcode.PickupDigits)
	c.pickup = passcode.Verifier(c.Pickup, secrets.Salt, secrets.Key, secrets.Params)
	return c, nil
}

func (s partners) create(v cloud.View, c cloud.Caller, in creation, codes drawnCodes) (*cloud.Changes, cloud.DeliveryID, error) {
	device, err := v.Device(in.DeviceID)
	if err != nil {
		return nil, 0, err
	}
	if !bytes.Equal(device.SealedCode, codes.sealed) {
		return nil, 0, errSecretsChanged
	}
	verifiers := [][]byte{codes.delivery}
	if codes.pickup != nil {
		verifiers = append(verifiers, codes.pickup)
	}
	if err := codeFree(v, device, verifiers...); err != nil {
		return nil, 0, err
	}
	id, err := v.NewID(cloud.DeliveryIDs)
	if err != nil {
		return nil, 0, err
	}
	d := cloud.Delivery{ID: cloud.DeliveryID(id), Number: fmt.Sprintf("LD-%09d", id), BusinessID: device.BusinessID, ProviderID: c.Provider.ID,
		DeviceID: device.ID, Reference: in.ReferenceNumber, RequestHash: in.hash, Status: cloud.DeliveryCreated, Recipient: in.Recipient, Courier: in.Courier,
		Notify: cloud.Notify{SMS: true, Email: true}, DeliverBefore: in.before, CollectWithin: time.Duration(in.CollectWithin) * time.Hour,
		SealedCodes: s.sealCodes(codes.Codes), Livemode: device.Livemode, Metadata: in.Metadata, CreatedAt: in.now, Purpose: in.outgoing(), Sender: in.Sender, Returns: in.returns}
	if in.returns != 0 {
		in.Packages = nameReturn(&d, in.Packages)
	}
	if in.Notify != nil {
		d.Notify = *in.Notify
	}
	ch := &cloud.Changes{}
	for i, p := range in.Packages {
		d.Packages = append(d.Packages, newPackage(i, p))
		if err := s.link(v, &d, i, "packages."+strconv.Itoa(i)+".tracking_number"); err != nil {
			return nil, 0, err
		}
	}
	rows, err := v.Compartments(device.ID)
	if err != nil {
		return nil, 0, err
	}
	cells := make([]*cloud.Compartment, len(rows))
	for i := range rows {
		cells[i] = &rows[i]
	}
	for _, p := range d.Packages {
		if err := refuseTooLarge(cells, p); err != nil {
			return nil, 0, err
		}
	}
	if in.Reserve == nil || *in.Reserve {
		taken, err := reserve(cells, &d)
		if err != nil {
			return nil, 0, err
		}
		for _, c := range taken {
			ch.Compartments = append(ch.Compartments, *c)
		}
	}
	if err := s.announceAll(v, ch, c, &d, device, in.now); err != nil {
		return nil, 0, err
	}
	doors := doorsByGrid(cells)
	for _, e := range []wire.CodeEntry{codeEntry(d, doors, wire.CodeDelivery, codes.delivery), codeEntry(d, doors, pickupKind(d), codes.pickup)} {
		device.CodeList++
		e.Number = device.CodeList
		ch.Codes = append(ch.Codes, cloud.CodeRow{DeviceID: device.ID, DeliveryID: d.ID, CreatedAt: in.now, Entry: e})
	}
	if d.IsOutgoing() {
		w := s.Begin(v, device, in.now)
		if err := w.notifySender(&d, cloud.NotifyDropoffCode); err != nil {
			return nil, 0, err
		}
		ch.Notifications = append(ch.Notifications, w.ch.Notifications...)
	}
	ch.Devices = []cloud.Device{device}
	ch.Deliveries = []cloud.Delivery{d}
	return ch, d.ID, nil
}

// reserve gives every package without a compartment the smallest free one that
// fits, and returns those.
func reserve(cells []*cloud.Compartment, d *cloud.Delivery) (taken []*cloud.Compartment, err error) {
	for i := range d.Packages {
		p := &d.Packages[i]
		if p.GridID != 0 {
			continue
		}
		c := pick(cells, *p, func(*cloud.Compartment) bool { return true })
		if c == nil {
			return nil, noRoom(cells, *p)
		}
		c.State, c.DeliveryID = cloud.GridReserved, d.ID
		p.GridID = c.GridID
		taken = append(taken, c)
	}
	return taken, nil
}

// announce starts, or goes on with, the timeline of a package. Those of a test have none:
// their numbers may be real parcels'.
func announce(v cloud.View, ch *cloud.Changes, c cloud.Caller, d cloud.Delivery, i int, now time.Time) error {
	if !d.Livemode {
		return nil
	}
	number := d.Packages[i].TrackingNumber
	s, err := v.ShipmentByNumber(number)
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		id, err := v.NewID(cloud.ShipmentIDs)
		if err != nil {
			return err
		}
		s = cloud.Shipment{ID: cloud.ShipmentID(id), BusinessID: d.BusinessID, Number: number, ProviderID: d.ProviderID, Profile: "parcel", CreatedAt: now}
	case err != nil:
		return err
	case s.BusinessID != d.BusinessID || s.ProviderID != d.ProviderID:
		f := newFields()
		f.Add("packages."+strconv.Itoa(i)+".tracking_number", "The tracking_number is in use.")
		return f.Err()
	default:
		keeps, err := keepsLink(v, s, d)
		if err != nil {
			return err
		}
		if !keeps {
			s.LinkFrom = d.ID
		}
	}
	s.DeliveryID = d.ID
	known := !s.LastAt.IsZero()
	if !known {
		e := otep.Event{OccurredAt: otep.Time{Time: now}, RecordedAt: otep.Time{Time: now}, StatusCode: otep.InformationSubmitted,
			Source: &otep.Source{Type: "partner", Provider: strings.ToLower(c.Provider.Code), ProviderName: c.Provider.Name}}
		e.EventID = otep.ID(otep.Subject{TrackingNumber: number}, e)
		s.Current, s.LastAt = e.StatusCode, now
		ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: s.ID, BusinessID: s.BusinessID, Event: e.Fill(s.Profile)})
	}
	ch.Shipments = append(ch.Shipments, s)
	return nil
}

// DeliveryKey names a delivery in a path: its id, or "ref:" and the partner's
// reference number.
type DeliveryKey string

// find finds a delivery of the caller.
func find(v cloud.View, c cloud.Caller, key DeliveryKey) (d cloud.Delivery, err error) {
	if ref, ok := strings.CutPrefix(string(key), "ref:"); ok {
		d, err = v.DeliveryByReference(c.Provider.ID, ref)
	} else if id, perr := strconv.ParseInt(string(key), 10, 64); perr == nil {
		d, err = v.Delivery(cloud.DeliveryID(id))
	} else {
		err = cloud.ErrNotFound
	}
	own := d.ProviderID == c.Provider.ID
	if c.Account.Type.IsStaff() {
		own = d.BusinessID == c.Account.BusinessID
	}
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !own {
		return d, cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	}
	return d, err
}

// Find shows a delivery of the caller. Error: DELIVERY_NOT_FOUND.
func (s partners) Find(ctx context.Context, c cloud.Caller, key DeliveryKey) (out DeliveryOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := find(v, c, key)
		if err != nil {
			return err
		}
		out, err = s.output(v, d)
		return err
	})
	return out, err
}

// lookAt reads a delivery of the caller's with its business, and what f wants of the same
// state. Error: DELIVERY_NOT_FOUND.
func (s *core) lookAt(ctx context.Context, c cloud.Caller, key DeliveryKey, f func(cloud.View, cloud.Delivery, cloud.Business) error) error {
	return s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := find(v, c, key)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		return f(v, d, biz)
	})
}

func (s *core) show(ctx context.Context, id cloud.DeliveryID) (out DeliveryOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := v.Delivery(id)
		if err != nil {
			return err
		}
		out, err = s.output(v, d)
		return err
	})
	return out, err
}

func (s *core) output(v cloud.View, d cloud.Delivery) (DeliveryOutput, error) {
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return DeliveryOutput{}, err
	}
	body, err := s.body(v, biz, d)
	if err != nil {
		return DeliveryOutput{}, err
	}
	return DeliveryOutput{Result: true, Delivery: body}, nil
}

// body shows a delivery of a business with its latest opening.
func (s *core) body(v cloud.View, biz cloud.Business, d cloud.Delivery) (DeliveryBody, error) {
	codes, err := s.openCodes(d)
	if err != nil {
		return DeliveryBody{}, err
	}
	o, err := lastOpening(v, d)
	if err != nil {
		return DeliveryBody{}, err
	}
	l := biz.Location()
	var body *OpeningBody
	if o != nil {
		cells, err := cellsOf(v, d.DeviceID, *o)
		if err != nil {
			return DeliveryBody{}, err
		}
		body = openingBody(*o, cells, l)
	}
	return deliveryBody(d, codes, body, s.correctionBody(d, o, biz), l), nil
}

// lastOpening is the newest opening of a delivery, nil when there is none.
func lastOpening(v cloud.View, d cloud.Delivery) (*cloud.Opening, error) {
	list, err := v.DeliveryOpenings(d.ID)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[len(list)-1], nil
}
