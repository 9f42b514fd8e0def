package tracking

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// PublicInput asks for what is known of a tracking number. Verify is the last
// four digits of the recipient's telephone number, or empty.
type PublicInput struct {
	Number string `path:"tracking_number" doc:"Order, package or carrier number"`
	Verify string `query:"verify" doc:"Last four digits of the recipient's telephone number: shows what the recipient may see"`
	Key    string `header:"X-Tracking-Key"` // secret of the parcel's link
}

// PublicOutput is the public tracking answer. Members of orders are null for a
// partner's parcel in a locker.
type PublicOutput struct {
	Result         bool        `json:"result"`
	TrackingNumber string      `json:"tracking_number"`
	External       *string     `json:"external_tracking_number"`
	OrderRef       *string     `json:"order_ref"`
	Family         string      `json:"family"`
	Type           *string     `json:"type"`
	OrderStatusID  *int        `json:"order_status_id"`
	OrderStatus    *string     `json:"order_status"`
	OTEPStatus     *otep.Code  `json:"otep_status"`
	StatusLabel    *string     `json:"status_label"`
	StatusAt       *string     `json:"status_at" graphql:"DateTime"`
	ScheduledDate  *string     `json:"scheduled_date" graphql:"Date"`
	TimeWindow     *TimeWindow `json:"time_window" graphql:"JSON"`
	ETA            *string     `json:"eta" graphql:"DateTime"`
	StopsBefore    *int        `json:"stops_before"`
	Recipient      Recipient   `json:"recipient" graphql:"JSON"`
	Carrier        Carrier     `json:"carrier" graphql:"JSON"`
	Driver         *Driver     `json:"driver" graphql:"JSON"`
	Packages       []Package   `json:"packages" graphql:"[JSON!]"`
	Events         []Event     `json:"events" graphql:"!"` // newest first
	Proof          Proof       `json:"proof" graphql:"JSON"`
	Locker         *Locker     `json:"locker" graphql:"JSON"`
	Chat           Chat        `json:"chat" graphql:"JSON"`
	Business       BusinessRef `json:"business" graphql:"JSON"`
	Access         Access      `json:"access" graphql:"JSON"`

	// For pages, not part of the answer.

	OrderID  cloud.OrderID  `json:"-"` // 0: a partner's parcel
	Plan     Plan           `json:"-"` // of the order's next stop
	Device   *DeviceNow     `json:"-"` // the locker of the parcel's delivery, also before its deposit
	Zone     *time.Location `json:"-"` // of the business
	LastAt   time.Time      `json:"-"` // occurred_at of the latest event
	Terminal bool           `json:"-"`
	DayProof string         `json:"-"` // as good as the link for a day; where digits were right
	About    Subject        `json:"-"` // what changes concern the parcel
	// Apart are the packages of an order that stand in different places, each with its status in words; Part is
	// the number of the one that was asked for, "" for the order.
	Apart []ApartPackage `json:"-"`
	Part  string         `json:"-"`
}

// ApartPackage is where one of several packages is.
type ApartPackage struct {
	Number  string
	Code    otep.Code
	Label   string
	IsAsked bool
}

// Plan is what is planned for an order that waits for its stop or for a driver; the zero Plan:
// nothing, or the goods are on their way.
type Plan struct {
	Routed  bool   // it is on a route
	Driver  bool   // whose driver is named
	Partner bool   // a contractor has it and has not planned it yet
	Day     string // YYYY-MM-DD, "" while it is not set
}

// Subject is what a parcel is made of; members are 0 where there is none.
type Subject struct {
	Shipment cloud.ShipmentID
	Order    cloud.OrderID
	Delivery cloud.DeliveryID
	Device   cloud.DeviceID
}

// DeviceNow is how a locker stands towards the platform.
type DeviceNow struct {
	Name       string
	Online     bool
	Since      time.Time // of the connection; zero when offline
	LastSeenAt time.Time // zero when it was never seen
}

// The blocks of the answer. Members that are not known are null.
type (
	// Recipient is who the parcel is for, masked unless the caller may see.
	Recipient struct {
		Name       *string `json:"name"`
		City       *string `json:"city"`
		Province   *string `json:"province"`
		PostalCode *string `json:"postal_code"`
		Country    *string `json:"country"`
	}
	// TimeWindow is when the stop is to be, in local time.
	TimeWindow struct {
		Start string `json:"start"` // HH:MM
		End   string `json:"end"`
	}
	// Carrier is who brings it.
	Carrier struct {
		Code    *string `json:"code"`
		Name    *string `json:"name"`
		LogoURL *string `json:"logo_url"`
		Phone   *string `json:"phone"`
	}
	// Driver is who is on the way, and where that was within the last quarter of an
	// hour.
	Driver struct {
		FirstName string   `json:"first_name"`
		Latitude  *float64 `json:"latitude"` // three decimals; the place is null when it is older than 15 minutes
		Longitude *float64 `json:"longitude"`
		UpdatedAt *string  `json:"updated_at"`
	}
	// Package is the parcel itself.
	Package struct {
		TrackingNumber string   `json:"tracking_number"`
		Status         *string  `json:"status"` // of an order's package its own, else the parcel's OTEP code
		Weight         *float64 `json:"weight"`
		WeightUnit     string   `json:"weight_unit"`
	}
	// Event is one entry of the history.
	Event struct {
		ID             *int64    `json:"tracking_event_id" graphql:"Long"`
		StatusID       int       `json:"tracking_event_status_id"`
		Key            otep.Code `json:"tracking_event_key"`
		Phase          string    `json:"phase"`
		Description    string    `json:"description"`
		OccurredAt     string    `json:"occurred_at" graphql:"DateTime"`
		RecordedAt     string    `json:"recorded_at" graphql:"DateTime"`
		Location       *Place    `json:"location" graphql:"JSON"`
		PackageNumber  *string   `json:"package_tracking_number"`
		IncidentReason *string   `json:"incident_reason"`

		At time.Time `json:"-"`
	}
	// Place is where an event happened, never a street.
	Place struct {
		Name     *string `json:"name"`
		City     *string `json:"city"`
		Province *string `json:"province"`
		Country  *string `json:"country"`
	}
	// Proof is the proof of delivery.
	Proof struct {
		Available     bool     `json:"available"`
		RecipientName *string  `json:"recipient_name"`
		Files         []string `json:"files"`
	}
	// Locker is the cabinet that the parcel is or was in. It holds no code.
	Locker struct {
		DeviceID     cloud.DeviceID `json:"device_id"`
		DeviceName   string         `json:"device_name"`
		Address      *string        `json:"address"`
		Latitude     *float64       `json:"latitude"`
		Longitude    *float64       `json:"longitude"`
		Label        *string        `json:"pickup_locker_code"`
		Status       string         `json:"status"` // waiting, overdue, collected, returned
		DueAt        *string        `json:"due_at"`
		OpeningHours *struct{}      `json:"opening_hours"` // null: always

		Due time.Time `json:"-"`
	}
	// Chat is the order chat.
	Chat struct {
		Enabled bool           `json:"enabled"`
		Token   *string        `json:"token"`
		OrderID *cloud.OrderID `json:"order_id" doc:"Whose chat the token is for"`
	}
	// BusinessRef is who runs the service.
	BusinessRef struct {
		Name         string  `json:"name"`
		LogoURL      *string `json:"logo_url"`
		SupportPhone *string `json:"support_phone"`
		SupportEmail *string `json:"support_email"`
	}
)

// Public gives what is known of a tracking number. Error: TRACKING_NOT_FOUND.
func (s *Service) Public(ctx context.Context, c cloud.Caller, in PublicInput) (PublicOutput, error) {
	p, err := s.find(ctx, c, in.Number, codeNotFound, proof{in.Verify, in.Key}, time.Now())
	if err != nil {
		return PublicOutput{}, err
	}
	var out PublicOutput
	if p.access.Level == LevelReduced {
		out, err = s.answer(nil, c, p)
	} else {
		err = s.store.Look(ctx, func(v cloud.View) (err error) {
			out, err = s.answer(v, c, p)
			return err
		})
	}
	if err != nil {
		return PublicOutput{}, err
	}
	out.word(p, c.Language)
	return out, nil
}

// answer is what a caller with the parcel's level sees, without the words of a language.
// At the reduced level v is not looked at.
func (s *Service) answer(v cloud.View, c cloud.Caller, p parcel) (PublicOutput, error) {
	out := PublicOutput{Result: true, TrackingNumber: p.shipment.Number, External: cloud.OrNull(p.shipment.External), Family: "device", About: Subject{Shipment: p.shipment.ID, Order: p.shipment.OrderID, Delivery: p.shipment.DeliveryID},
		OTEPStatus: p.timeline.Current, Terminal: p.timeline.Terminal, Packages: []Package{}, Events: []Event{}, Proof: Proof{Files: []string{}}, Zone: time.UTC, Access: p.access, DayProof: p.proof}
	if p.timeline.Current != nil {
		out.LastAt = p.timeline.LastEventAt.Time
	}
	if p.access.Level == LevelReduced {
		out.External, out.StatusAt = nil, cloud.Stamp(out.LastAt, time.UTC)
		return out, nil
	}
	if err := business(v, p, &out); err != nil {
		return PublicOutput{}, err
	}
	if p.shipment.OrderID != 0 {
		if err := s.order(v, c, p, &out); err != nil {
			return PublicOutput{}, err
		}
	} else {
		pack := Package{TrackingNumber: p.shipment.Number, Status: (*string)(p.timeline.Current), WeightUnit: "kg"}
		if err := delivery(v, p, &out, &pack); err != nil {
			return PublicOutput{}, err
		}
		out.Packages = append(out.Packages, pack)
	}
	if out.StatusAt = cloud.Stamp(out.LastAt, out.Zone); !p.whole() {
		out.hide()
	}
	return out, nil
}

// word fills in what is said in a language.
func (out *PublicOutput) word(p parcel, lang string) {
	if cur := p.timeline.Current; cur != nil {
		label := locale.Status(lang, *cur)
		out.StatusLabel = &label
	}
	if out.Access.Level != LevelReduced && timeline.IsSplit(p.all) {
		out.Apart = make([]ApartPackage, 0, len(p.packages))
		for _, x := range p.packages {
			a := ApartPackage{Number: x.Number, IsAsked: x.id == p.part}
			if x.Current != nil {
				a.Code, a.Label = *x.Current, locale.Status(lang, *x.Current)
			}
			if a.IsAsked {
				out.Part = x.Number
			}
			out.Apart = append(out.Apart, a)
		}
	}
	if out.Access.Level != LevelReduced {
		out.Events = history(p.timeline, lang, out.Zone)
	}
}

// hide takes out what is for the recipient.
func (out *PublicOutput) hide() {
	out.OrderRef, out.Recipient.PostalCode, out.Proof.RecipientName, out.Proof.Files = nil, nil, nil, []string{}
	out.Chat = Chat{Enabled: out.Chat.Enabled}
	if out.Driver != nil {
		out.Driver = &Driver{FirstName: out.Driver.FirstName}
	}
	for i := range out.Packages {
		out.Packages[i].Weight = nil
	}
	if out.Locker != nil {
		out.Locker.Label = nil
	}
}

// business fills in who runs the service and who brings the parcel.
func business(v cloud.View, p parcel, out *PublicOutput) error {
	b, err := v.Business(p.shipment.BusinessID)
	if err != nil {
		return err
	}
	out.Zone = b.Location()
	out.Business = BusinessRef{Name: b.Name, SupportPhone: cloud.OrNull(b.SupportPhone), SupportEmail: cloud.OrNull(b.SupportEmail)}
	if p.shipment.ProviderID == 0 {
		return nil
	}
	prov, err := v.Provider(p.shipment.ProviderID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	out.Carrier = Carrier{Code: cloud.OrNull(prov.Code), Name: cloud.OrNull(prov.Name)}
	return err
}

// delivery fills in what the parcel's locker delivery tells.
func delivery(v cloud.View, p parcel, out *PublicOutput, pack *Package) error {
	if p.shipment.DeliveryID == 0 {
		return nil
	}
	d, err := v.Delivery(p.shipment.DeliveryID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	name := d.Recipient.Name
	if !p.whole() {
		name = maskName(name)
	}
	out.Recipient.Name = cloud.OrNull(name)
	i := slices.IndexFunc(d.Packages, func(x cloud.Package) bool { return strings.EqualFold(x.TrackingNumber, p.shipment.Number) })
	if i < 0 {
		return inDevice(v, d, nil, out)
	}
	pack.Weight = cloud.OrNull(d.Packages[i].Weight)
	return inDevice(v, d, &d.Packages[i], out)
}

// orderLocker fills in the locker that packages of an order are or were in: of
// several packages the one that waits there, else the last.
func orderLocker(v cloud.View, o cloud.Order, out *PublicOutput) error {
	if o.DeliveryID == 0 {
		return nil
	}
	d, err := v.Delivery(o.DeliveryID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var shown *cloud.Package
	for i := range d.Packages {
		p := &d.Packages[i]
		if p.OrderID == o.ID && (shown == nil || shown.Status != cloud.PackageInCompartment) {
			shown = p
		}
	}
	if shown == nil {
		return nil
	}
	return inDevice(v, d, shown, out)
}

// inDevice fills in the device of a delivery, and the locker that a package of
// it is or was in.
func inDevice(v cloud.View, d cloud.Delivery, p *cloud.Package, out *PublicOutput) error {
	dev, err := v.Device(d.DeviceID)
	if err != nil {
		return err
	}
	session, err := v.Session(d.DeviceID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	out.Device, out.About.Device, out.About.Delivery = deviceNow(dev, session), d.DeviceID, d.ID
	if p == nil || d.DepositedAt.IsZero() || p.GridID == 0 || d.IsOutgoing() { // it waits for no recipient
		return nil
	}
	out.Locker, err = lockerBlock(v, d, *p, dev, out.Zone)
	return err
}

func deviceNow(d cloud.Device, s cloud.Session) *DeviceNow {
	n := &DeviceNow{Name: d.Name, Online: s.Online, LastSeenAt: d.LastSeenAt}
	if s.LastSeenAt.After(n.LastSeenAt) {
		n.LastSeenAt = s.LastSeenAt
	}
	if s.Online {
		n.Since = s.ConnectedAt
	}
	return n
}

func lockerBlock(v cloud.View, d cloud.Delivery, p cloud.Package, dev cloud.Device, zone *time.Location) (*Locker, error) {
	status, ok := pickupStatus(d, p)
	if !ok {
		return nil, nil
	}
	l := &Locker{DeviceID: dev.ID, DeviceName: dev.Name, Address: cloud.OrNull(dev.Address), Status: status, DueAt: cloud.Stamp(d.DueAt, zone), Due: d.DueAt}
	l.Latitude, l.Longitude = dev.Place()
	cells, err := v.Compartments(dev.ID)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.GridID == p.GridID }); i >= 0 {
		l.Label = cloud.OrNull(cells[i].Label)
	}
	return l, nil
}

// pickupStatus is how far a package in a locker has come. ok is false for one
// that was never in it.
func pickupStatus(d cloud.Delivery, p cloud.Package) (status string, ok bool) {
	switch p.Status {
	case cloud.PackagePickedUp:
		return "collected", true
	case cloud.PackageReturned:
		return "returned", true
	case cloud.PackageInCompartment, cloud.PackageCorrecting:
		if d.Status == cloud.DeliveryExpired {
			return "overdue", true
		}
		return "waiting", true
	}
	return "", false
}

// history is the timeline newest first.
func history(t otep.Timeline, lang string, zone *time.Location) []Event {
	out := make([]Event, 0, len(t.Events))
	for _, e := range slices.Backward(t.Events) {
		x := Event{StatusID: cloud.TrackingEventID(e), Key: e.StatusCode, Phase: e.Phase, Description: locale.Description(lang, e.StatusCode), OccurredAt: *cloud.Stamp(e.OccurredAt.Time, zone),
			RecordedAt: *cloud.Stamp(e.RecordedAt.Time, zone), IncidentReason: cloud.OrNull(e.IncidentReason), At: e.OccurredAt.Time}
		if l := e.Location.Public(); l != nil {
			x.Location = &Place{Name: cloud.OrNull(l.Name), City: cloud.OrNull(l.City), Province: cloud.OrNull(l.Region), Country: cloud.OrNull(l.Country)}
		}
		out = append(out, x)
	}
	return out
}

// verified reports whether digits are the last four of a telephone number.
func verified(phone, digits string) bool {
	var all []byte
	for _, c := range []byte(phone) {
		if c >= '0' && c <= '9' {
			all = append(all, c)
		}
	}
	if len(all) < 4 || len(digits) != 4 {
		return false
	}
	return subtle.ConstantTimeCompare(all[len(all)-4:], []byte(digits)) == 1
}

// maskName leaves the initial of each word of a name.
func maskName(name string) string {
	words := strings.Fields(name)
	for i, w := range words {
		for _, r := range w {
			words[i] = string(r) + "***"
			break
		}
	}
	return strings.Join(words, " ")
}

// maskPostalCode leaves the first half of a postal code: M5V *** of M5V 2T6.
func maskPostalCode(code string) string {
	if first, _, parts := strings.Cut(code, " "); parts {
		return first + " ***"
	}
	runes := []rune(code)
	if len(runes) == 0 {
		return ""
	}
	return string(runes[:len(runes)/2]) + "***"
}

// GraphQLName is the type's name there.
func (Event) GraphQLName() string { return "TrackingEvent" }
