package locker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// atLocker is how far from a cabinet a recipient may be who has it opened, in metres.
const atLocker = 200

// ParcelsInput asks for the parcels that wait in cabinets for a recipient.
type ParcelsInput struct {
	Number string `query:"tracking_number" max:"64" doc:"Number of the link. Required with a key; of a customer who is signed in, only what holds that number"`
	Key    string `header:"X-Tracking-Key"` // secret of the parcel's link
	check.Keyset
}

// ParcelsOutput lists parcels. Of a link and of a number the list is one page.
type ParcelsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Parcels []ParcelBody `json:"parcels" doc:"What waits to be collected, the newest first; pages are of this list"`
	// Collected has those that the recipient can return, where the business offers it.
	Collected []CollectedBody `json:"collected" doc:"On the first page: what was collected at a cabinet and can be returned there, or has a return; empty where the business does not offer returns. Of an account at most 100 of the last 14 days"`
	ToBring   []ReturnBody    `json:"to_bring" doc:"On the first page, of an account: what its person has yet to bring to a locker, returns among it; at most 100. A link shows none"`
}

// ParcelBody is a parcel that waits for its recipient, with the code that opens its doors.
type ParcelBody struct {
	DeliveryNumber  string                `json:"delivery_number"`
	TrackingNumbers []string              `json:"tracking_numbers" doc:"Packages inside"`
	Status          string                `json:"status" doc:"waiting or overdue"`
	Locker          ParcelLocker          `json:"locker"`
	PickupLabel     *string               `json:"pickup_locker_code" doc:"Of the first compartment"`
	DoorNames       []string              `json:"door_names" doc:"Compartments that the code opens, as on the doors"`
	PickupCode      *string               `json:"pickup_code" doc:"Null while it does not work: another person collects, or the deposit is being corrected"`
	PickupQR        *string               `json:"pickup_qr" doc:"Text of the QR code that the cabinet's scanner reads in place of pickup_code"`
	Handover        *HandoverBody         `json:"handover" doc:"Who collects in the recipient's place; null: the recipient"`
	DueAt           *string               `json:"due_at"`
	OpeningHours    *[]cloud.OpeningHours `json:"opening_hours" doc:"Null is always open"`
	OpeningStatus   *string               `json:"opening_status" doc:"Of the collection that runs: awaiting while no door has answered, opened then; null while none runs, or while another person collects"`
	CanOpen         bool                  `json:"can_open" doc:"The cabinet is connected, so that it can be opened from here by a person who stands there"`
}

// ParcelLocker is a cabinet as a recipient sees it.
type ParcelLocker struct {
	DeviceID    cloud.DeviceID     `json:"device_id"`
	DeviceName  string             `json:"device_name"`
	Address     *string            `json:"address"`
	Latitude    *float64           `json:"latitude"`
	Longitude   *float64           `json:"longitude"`
	IndoorGuide *cloud.IndoorGuide `json:"indoor_guide"`
	Status      string             `json:"status" doc:"online, offline, maintenance, disabled or retired"`
}

// ListParcels lists what waits in cabinets for the recipient who has a parcel's link, or who
// is signed in as a customer. A number that is not known, a link that is not its own and an
// account that nothing of it is for are answered alike. Errors: TRACKING_NOT_FOUND,
// EMAIL_NOT_VERIFIED, VALIDATION_FAILED. Source: lockers-devices 11.
func (s recipients) ListParcels(ctx context.Context, c cloud.Caller, in ParcelsInput) (out ParcelsOutput, err error) {
	p := proof{c, in.Key}
	if in.Number = strings.TrimSpace(in.Number); in.Number == "" && !p.byAccount() {
		f := fields{check.Fields{}}
		f.Add("tracking_number", "Give the number and the key of the parcel's link, or sign in as a customer.")
		return out, f.Err()
	}
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	list := &parcelList{s: s, now: time.Now(), out: &out}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		out = ParcelsOutput{Result: true, Parcels: []ParcelBody{}, Collected: []CollectedBody{}, ToBring: []ReturnBody{}}
		list.v = v
		if in.Number != "" {
			err := list.ofNumber(in.Number, p)
			out.PageOutput = in.Output(in, cloud.Listed{Total: len(out.Parcels)})
			return err
		}
		listed, err := list.ofAccount(c, page)
		out.PageOutput = in.Output(in, listed)
		return err
	})
	return out, err
}

// parcelList reads the parcels of a recipient.
type parcelList struct {
	s   recipients
	v   cloud.View
	now time.Time
	out *ParcelsOutput
}

// ofNumber reads what holds a number, for the recipient whose proof p is.
func (l *parcelList) ofNumber(number string, p proof) error {
	missing := cloud.E(cloud.NotFound, "TRACKING_NOT_FOUND")
	sh, err := l.v.ShipmentByNumber(number)
	if errors.Is(err, cloud.ErrNotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	held, err := l.v.DeliveriesOf(sh)
	if err != nil {
		return err
	}
	shows := func(d cloud.Delivery) bool { return byLinkOf(sh, d) }
	if p.byAccount() {
		mail, err := mailOf(l.v, p.caller)
		if err != nil {
			return err
		}
		held = slices.DeleteFunc(held, func(d cloud.Delivery) bool { return !isRecipient(d, p.caller.Account.BusinessID, mail) })
		if len(held) == 0 {
			return missing
		}
		shows = func(d cloud.Delivery) bool { return waits(d) && isInside(d) }
	} else {
		link, err := l.s.link(l.v, sh)
		if err != nil {
			return err
		}
		if !l.s.cfg.Links.IsLink(link, p.key) {
			return missing
		}
	}
	if err := l.add(slices.DeleteFunc(slices.Clone(held), func(d cloud.Delivery) bool { return !shows(d) })); err != nil {
		return err
	}
	l.out.Collected, err = l.s.collected(l.v, held, l.now)
	return err
}

// shownBeside is how much beside what waits is shown with the first page.
const shownBeside = 100

// ofAccount reads a page of what waits for a customer, and with the first one what the
// customer can return and has yet to bring. Error: EMAIL_NOT_VERIFIED.
func (l *parcelList) ofAccount(c cloud.Caller, page cloud.Page) (listed cloud.Listed, err error) {
	mail, err := mailOf(l.v, c)
	if err != nil {
		return listed, err
	}
	if mail == "" {
		return listed, cloud.E(cloud.Forbidden, "EMAIL_NOT_VERIFIED")
	}
	f := cloud.DeliveryFilter{BusinessID: c.Account.BusinessID, Of: mail, Page: page}
	waiting, listed, err := l.v.Deliveries(f)
	if err != nil {
		return listed, err
	}
	if err := l.add(slices.DeleteFunc(waiting, func(d cloud.Delivery) bool { return !waits(d) || !isInside(d) })); err != nil {
		return listed, err
	}
	if page.Offset > 0 || page.After != nil {
		return listed, nil
	}
	f.Part, f.CollectedFrom, f.Page = cloud.RecipientCollected, l.now.Add(-returnWithin), cloud.Page{Sort: "picked_up_at", Down: true, Limit: shownBeside}
	collected, _, err := l.v.Deliveries(f)
	if err != nil {
		return listed, err
	}
	if l.out.Collected, err = l.s.collected(l.v, collected, l.now); err != nil {
		return listed, err
	}
	f.Part, f.Page = cloud.RecipientBrings, cloud.Page{Sort: "id", Down: true, Limit: shownBeside}
	brings, _, err := l.v.Deliveries(f)
	for _, d := range brings {
		if err != nil || !canBeBrought(d, l.now) {
			continue
		}
		var b ReturnBody
		b, err = l.s.returnBody(l.v, d, l.now)
		l.out.ToBring = append(l.out.ToBring, b)
	}
	return listed, err
}

// add shows deliveries that wait.
func (l *parcelList) add(list []cloud.Delivery) error {
	for _, d := range list {
		p, err := l.s.parcel(l.v, d)
		if err != nil {
			return err
		}
		l.out.Parcels = append(l.out.Parcels, p)
	}
	return nil
}

// parcel shows a delivery that waits to its recipient.
func (s recipients) parcel(v cloud.View, d cloud.Delivery) (p ParcelBody, err error) {
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return p, err
	}
	dev, err := v.Device(d.DeviceID)
	if err != nil {
		return p, err
	}
	facts, err := readFacts(v, dev, time.UTC)
	if err != nil {
		return p, err
	}
	p = ParcelBody{DeliveryNumber: d.Number, TrackingNumbers: []string{}, Status: "waiting", DoorNames: []string{}, Handover: handoverBody(d, biz.Location()), DueAt: cloud.Stamp(d.DueAt, biz.Location()),
		OpeningHours: facts.hours(), CanOpen: facts.online && opensForRecipient(d), Locker: parcelLocker(dev, facts)}
	if isOverdue(d) {
		p.Status = "overdue"
	}
	for _, c := range facts.cells {
		if refs := lying(&d, c.GridID); len(refs) > 0 {
			p.TrackingNumbers, p.DoorNames = append(p.TrackingNumbers, refs...), append(p.DoorNames, c.Name())
			if p.PickupLabel == nil {
				p.PickupLabel = cloud.OrNull(c.Label)
			}
		}
	}
	if opensForRecipient(d) {
		codes, err := s.openCodes(d)
		if err != nil {
			return p, err
		}
		p.PickupCode, p.PickupQR = &codes.Pickup, new(passcode.QR(dev.Code, codes.Pickup))
		if p.OpeningStatus, err = collectionStatus(v, d); err != nil {
			return p, err
		}
	}
	return p, nil
}

// parcelLocker shows a cabinet to a recipient.
func parcelLocker(dev cloud.Device, facts deviceFacts) ParcelLocker {
	out := ParcelLocker{DeviceID: dev.ID, DeviceName: dev.Name, Address: cloud.OrNull(dev.Address), IndoorGuide: dev.Profile.Guide, Status: dev.Status(facts.online)}
	out.Latitude, out.Longitude = dev.Place()
	return out
}

// collectionStatus is how far the running collection of a delivery is; nil: none runs.
func collectionStatus(v cloud.View, d cloud.Delivery) (*string, error) {
	list, err := v.DeliveryOpenings(d.ID)
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Backward(list) {
		switch {
		case !isCollection(o):
		case slices.ContainsFunc(o.Doors, func(od cloud.OpeningDoor) bool { return !od.OpenedAt.IsZero() }):
			return new("opened"), nil
		default:
			return new("awaiting"), nil
		}
	}
	return nil, nil
}

// opensForRecipient reports whether the recipient's own code opens a delivery's doors.
func opensForRecipient(d cloud.Delivery) bool {
	return waits(d) && d.PickupCodeActive && d.Handover == nil
}

// ParcelOpenInput asks for the doors of a parcel, by a recipient who stands before them.
type ParcelOpenInput struct {
	Number      string   `path:"delivery_number" doc:"As in LD-000064021"`
	Key         string   `header:"X-Tracking-Key"`
	Latitude    *float64 `json:"latitude" min:"-90" max:"90" with:"longitude" doc:"Where the recipient is, in degrees: within 200 m of the cabinet"`
	Longitude   *float64 `json:"longitude" min:"-180" max:"180" with:"latitude"`
	OnSiteToken string   `json:"on_site_token" max:"16" doc:"The six characters on the cabinet's screen, in place of a position; they change each minute"`
	WaitSeconds *int     `json:"wait_seconds" min:"0" max:"20" doc:"How long to wait for the cabinet's answer; 10 when absent"`
}

// ParcelOpenOutput shows the opening. Pending is set while the outcome is not known.
type ParcelOpenOutput struct {
	Result  bool         `json:"result"`
	Opening *OpeningBody `json:"opening"`
	Pending bool         `json:"-"`
}

// OpenParcel opens the compartments of a delivery that waits, for the recipient who has its
// link or is signed in, and stands before the cabinet: a position within 200 m, or the token on the cabinet's
// screen, says so. What is taken out then is collected as with the code. While such an
// opening runs it is the same one that goes on. Errors: DELIVERY_NOT_FOUND (also for a link
// that is not the delivery's, and an account that it is not for), NOT_AT_LOCKER, DELIVERY_STATE_CONFLICT (it does not wait,
// another person collects it, or another opening runs on a door), DEVICE_OFFLINE,
// DEVICE_TIMEOUT. Source: lockers-devices 11.
func (s recipients) OpenParcel(ctx context.Context, c cloud.Caller, in ParcelOpenInput) (ParcelOpenOutput, error) {
	wait := defaultWait
	if in.WaitSeconds != nil {
		wait = *in.WaitSeconds
	}
	of, err := s.parcelOf(ctx, in.Number, proof{c, in.Key})
	if err != nil {
		return ParcelOpenOutput{}, err
	}
	var cmd cloud.Command
	err = s.decideOn(ctx, of.DeviceID, of.ID, time.Now().UTC(), func(w *Work, d *cloud.Delivery) (err error) {
		if err := of.proven(w.v, *d); err != nil {
			return err
		}
		cmd, err = collecting{w.requests, of.actor}.open(d, in)
		return err
	})
	if err != nil {
		return ParcelOpenOutput{}, err
	}
	got, err := s.await(ctx, cmd, time.Duration(wait)*time.Second)
	return ParcelOpenOutput{Result: err == nil, Opening: got.Opening, Pending: got.Pending}, err
}

// collecting is the work of a recipient's collection by remote opening.
type collecting struct {
	requests
	actor string // of audit lines
}

func (w collecting) open(d *cloud.Delivery, in ParcelOpenInput) (cmd cloud.Command, err error) {
	if err := w.onSite(in); err != nil {
		return cmd, err
	}
	if !opensForRecipient(*d) {
		return cmd, conflict(*d)
	}
	if err := w.online(); err != nil {
		return cmd, err
	}
	running, err := w.newestOpening(d, isCollection)
	if err != nil {
		return cmd, err
	}
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: w.actor, Action: "parcel_opened", Target: d.Number, Detail: "{}"})
	if running != nil {
		return w.openAgain(d, *running)
	}
	o := w.newOpening(wire.OpenPickup, d.ID, cloud.Requester{Type: byRecipient}, "")
	if err := w.addDoorsOf(d, o); err != nil {
		return cmd, err
	}
	body := wire.OpenDoors{OpeningID: o.ID, Kind: o.Kind, Doors: doorsOf(*o), SessionSeconds: uint(w.s.cfg.Session / time.Second), DeliveryRef: d.Number}
	return w.send(o.ID, wire.CmdOpenDoors, body, doorsOf(*o), commandLife)
}

// isCollection reports whether an opening by which a delivery is collected runs.
func isCollection(o cloud.Opening) bool { return o.Kind == wire.OpenPickup && !o.Ended() }

// onSite refuses with NOT_AT_LOCKER who does not stand before the cabinet.
func (w collecting) onSite(in ParcelOpenInput) error {
	latitude, longitude := w.device.Place()
	if in.Latitude != nil && in.Longitude != nil && latitude != nil {
		if (cloud.Circle{Latitude: *in.Latitude, Longitude: *in.Longitude}).Distance(*latitude, *longitude) <= atLocker {
			return nil
		}
	}
	if in.OnSiteToken != "" && len(w.device.SealedCode) > 0 {
		secrets, err := OpenSecrets(w.s.cfg.Sealer, w.device.SealedCode)
		if err != nil {
			return err
		}
		if passcode.IsOnSite(secrets.Key, w.device.Code, in.OnSiteToken, w.received) {
			return nil
		}
	}
	return &cloud.Error{Kind: cloud.Forbidden, Code: "NOT_AT_LOCKER", Details: map[string]any{"allowed_meters": atLocker, "position_counts": latitude != nil}}
}
