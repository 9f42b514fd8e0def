package locker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/protocol/wire"
)

// DeviceRow is a device in a list of those of the business.
type DeviceRow struct {
	DeviceID   cloud.DeviceID       `json:"device_id"`
	DeviceCode string               `json:"device_code"`
	DeviceName string               `json:"device_name"`
	DeviceType string               `json:"device_type" doc:"smart_locker, kiosk, smart_drop or scan_post"`
	Address    string               `json:"address"`
	PostalCode string               `json:"postal_code" doc:"Empty while it is not known"`
	Country    string               `json:"country" doc:"ISO 3166-1 alpha-2; empty while it is not known"`
	LocationID *cloud.SiteID        `json:"location_id" doc:"Site at which it stands"`
	Timezone   string               `json:"timezone"`
	Protocol   string               `json:"protocol"`
	Livemode   bool                 `json:"livemode"`
	Public     bool                 `json:"public" doc:"Listed among the pickup points that everybody sees"`
	Status     string               `json:"status" doc:"online, offline, maintenance, disabled or retired"`
	EnrolledAt *string              `json:"enrolled_at"` // null: never
	LastSeenAt *string              `json:"last_seen_at"`
	RetiredAt  *string              `json:"retired_at"`
	Firmware   string               `json:"firmware"`
	Features   cloud.DeviceFeatures `json:"features"`
	GridCounts map[string]int       `json:"grid_counts" graphql:"JSON" doc:"Compartments for pickup, by size"`
	// AwaitsHardware is set from a replacement or a report of theft until hardware enrols.
	AwaitsHardware bool `json:"awaits_hardware" doc:"Its hardware was replaced or stolen: enrol new hardware with an enrolment token"`
	// ConfigVersion counts layouts and other settings; ConfigApplied is that of the cabinet.
	ConfigVersion uint64 `json:"config_version" graphql:"Long!"`
	ConfigApplied uint64 `json:"config_applied" graphql:"Long!" doc:"Below config_version while the cabinet has not applied the newest layout and hours"`
}

// DeviceBody is a device as staff see it.
type DeviceBody struct {
	DeviceRow
	Latitude     *float64              `json:"latitude" doc:"Degrees; null while it is not known where it stands"`
	Longitude    *float64              `json:"longitude"`
	OpeningHours *[]cloud.OpeningHours `json:"opening_hours"` // null: always open
	IndoorGuide  *cloud.IndoorGuide    `json:"indoor_guide"`
	// Exceptions are those that are open, oldest first.
	Exceptions []DeviceExceptionBody `json:"exceptions"`
	Shelves    []string              `json:"shelves" doc:"Shelf codes from left to right"`
	Grids      []GridBody            `json:"grids"`
	Wiring     []WiringBody          `json:"wiring" doc:"How the lock of each compartment is wired, as its configuration says; empty without one"`
}

// WiringBody is how the lock of a compartment is wired.
type WiringBody struct {
	Door     uint   `json:"compartment_number"`
	Board    string `json:"board" doc:"Name of its lock controller board"`
	Channel  uint   `json:"channel" doc:"Of the lock on its board"`
	Inverted bool   `json:"inverted" doc:"The raw bit of the door's switch is set while the door is open"`
}

// wiring is that of a device that runs the agent.
func (f deviceFacts) wiring() []WiringBody {
	var conf wire.Config
	out := []WiringBody{}
	if f.device.Protocol != cloud.ProtocolMQTT || wire.Decode(f.device.Config, &conf) != nil {
		return out
	}
	for _, l := range conf.Layout {
		out = append(out, WiringBody{Door: l.Door, Board: l.Board, Channel: l.Channel, Inverted: l.Inverted})
	}
	return out
}

// DeviceOutput shows a device with its compartments.
type DeviceOutput struct {
	Result bool       `json:"result"`
	Device DeviceBody `json:"device"`
}

// DevicesInput asks for a part of the business's devices.
type DevicesInput struct {
	Status  string `query:"status" enum:"online,offline,maintenance,disabled,retired" doc:"Retired devices are listed with retired only"`
	Type    string `query:"device_type" enum:"smart_locker,kiosk,smart_drop,scan_post"`
	Keyword string `query:"keyword" max:"80" doc:"Part of the name, the code or the address"`
	Sort    string `query:"sort" enum:"id,-id,device_name,-device_name,device_code,-device_code" doc:"-id when absent"`
	check.Keyset
}

// DevicesOutput lists devices.
type DevicesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Devices []DeviceRow `json:"devices"`
}

// ListDevices lists a part of the devices of the caller's business.
func (s staff) ListDevices(ctx context.Context, c cloud.Caller, in DevicesInput) (out DevicesOutput, err error) {
	page, err := in.Part(in, strings.Replace(cmp.Or(in.Sort, "-id"), "device_", "", 1))
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := v.Devices(cloud.DeviceFilter{BusinessID: biz.ID, Status: in.Status, Type: in.Type, Keyword: in.Keyword, Page: page})
		if err != nil {
			return err
		}
		out = DevicesOutput{Result: true, PageOutput: in.Output(in, listed), Devices: []DeviceRow{}}
		for _, d := range list {
			f, err := readFacts(v, d, biz.Location())
			if err != nil {
				return err
			}
			out.Devices = append(out.Devices, f.row())
		}
		return nil
	})
	return out, err
}

// deviceFacts are what a device is shown by.
type deviceFacts struct {
	device  cloud.Device
	online  bool
	cells   []cloud.Compartment
	shelves []cloud.Shelf
	faults  []cloud.DeviceException // that are open
	zone    *time.Location
}

// readFacts reads what a device is shown by.
func readFacts(v cloud.View, d cloud.Device, zone *time.Location) (f deviceFacts, err error) {
	f.device, f.zone = d, zone
	session, err := v.Session(d.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return f, err
	}
	f.online = session.Online
	if f.cells, err = v.Compartments(d.ID); err != nil {
		return f, err
	}
	if f.shelves, err = v.Shelves(d.ID); err != nil {
		return f, err
	}
	f.faults, err = v.DeviceExceptions(d.ID)
	return f, err
}

// facts are what the device is shown by once this decision is written.
func (w requests) facts() (deviceFacts, error) {
	biz, err := w.v.Business(w.device.BusinessID)
	if err != nil {
		return deviceFacts{}, err
	}
	f, err := readFacts(w.v, w.device, biz.Location())
	if err != nil {
		return f, err
	}
	cells, err := w.allCells()
	if err != nil {
		return f, err
	}
	for i, c := range cells {
		f.cells[i] = *c
	}
	f.cells = append(f.cells, w.ch.Compartments...)
	slices.SortFunc(f.cells, func(a, b cloud.Compartment) int { return cmp.Compare(a.Door, b.Door) })
	if shelves := w.ch.Shelves[w.device.ID]; shelves != nil {
		f.shelves = shelves
	}
	for _, x := range w.ch.Sessions {
		f.online = x.Online
	}
	for _, x := range w.ch.DeviceFaults {
		f.faults = slices.DeleteFunc(f.faults, func(o cloud.DeviceException) bool { return o.Type == x.Type && !x.ClosedAt.IsZero() })
	}
	return f, nil
}

func (f deviceFacts) row() DeviceRow {
	d := f.device
	return DeviceRow{DeviceID: d.ID, DeviceCode: d.Code, DeviceName: d.Name, DeviceType: d.Type, Address: d.Address, PostalCode: d.PostalCode, Country: d.Country, LocationID: cloud.OrNull(d.Profile.SiteID), Timezone: d.Timezone, Protocol: d.Protocol,
		Livemode: d.Livemode, Public: d.Public, Status: d.Status(f.online), EnrolledAt: cloud.Stamp(d.EnrolledAt, f.zone), LastSeenAt: cloud.Stamp(d.LastSeenAt, f.zone), RetiredAt: cloud.Stamp(d.RetiredAt, f.zone),
		Firmware: d.Firmware, Features: f.features(), GridCounts: f.gridCounts(), AwaitsHardware: d.IsCutOff() && d.RetiredAt.IsZero(),
		ConfigVersion: d.ConfigVersion, ConfigApplied: min(d.Applied, d.ConfigVersion)}
}

// features are what the device can do: what staff have said of it, and opening by order, which
// every device with compartments can.
func (f deviceFacts) features() cloud.DeviceFeatures {
	out := f.device.Profile.Features
	out.RemoteOpen = out.RemoteOpen || slices.ContainsFunc(f.cells, func(c cloud.Compartment) bool { return !c.IsRemoved() })
	return out
}

// gridCounts are the compartments for pickup by size.
func (f deviceFacts) gridCounts() map[string]int {
	out := map[string]int{}
	for _, size := range sizes {
		out[size] = 0
	}
	for _, c := range f.cells {
		if c.PickupEnabled {
			out[c.Size]++
		}
	}
	return out
}

// hours are the opening hours, nil for always.
func (f deviceFacts) hours() *[]cloud.OpeningHours {
	if hours := f.device.Profile.Hours; len(hours) > 0 {
		return &hours
	}
	return nil
}

func (f deviceFacts) body() DeviceBody {
	b := DeviceBody{DeviceRow: f.row(), OpeningHours: f.hours(), IndoorGuide: f.device.Profile.Guide, Exceptions: []DeviceExceptionBody{}, Shelves: []string{}, Grids: []GridBody{}, Wiring: f.wiring()}
	b.Latitude, b.Longitude = f.device.Place()
	for _, x := range f.faults {
		b.Exceptions = append(b.Exceptions, DeviceExceptionBody{Type: x.Type, Detail: x.Detail, Count: x.Count,
			OpenedAt: cloud.Stamp(x.OpenedAt, f.zone), SeenAt: cloud.Stamp(x.SeenAt, f.zone)})
	}
	for _, x := range f.shelves {
		b.Shelves = append(b.Shelves, x.Code)
	}
	for _, cell := range f.cells {
		if !cell.IsRemoved() || isInUse(cell) {
			b.Grids = append(b.Grids, gridBody(cell))
		}
	}
	return b
}

// FindDevice shows a device of the caller's business with its compartments.
// Error: DEVICE_NOT_FOUND.
func (s staff) FindDevice(ctx context.Context, c cloud.Caller, id cloud.DeviceID) (out DeviceOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := ours(v, c, id)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		f, err := readFacts(v, d, biz.Location())
		out = DeviceOutput{Result: true, Device: f.body()}
		return err
	})
	return out, err
}

// changeDevice runs one decision about a device of the caller's business, and shows
// the device as it is then: calls with a key are answered that. fn may run more than
// once. Error: DEVICE_NOT_FOUND and those of fn.
func (s staff) changeDevice(ctx context.Context, c cloud.Caller, id cloud.DeviceID, fn func(*Work) error) (out DeviceOutput, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
		device, err := owned(v, c, id)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		if err := fn(w); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		if err := w.Finish(ch); err != nil {
			return nil, err
		}
		f, err := w.facts()
		out = DeviceOutput{Result: true, Device: f.body()}
		ch.Answer = out
		return ch, err
	})
	if err != nil {
		return DeviceOutput{}, err
	}
	return out, nil
}

// DeviceEdit changes a device. Members that are absent stay as they are.
type DeviceEdit struct {
	Device     cloud.DeviceID        `path:"id" json:"-"`
	Name       *string               `json:"device_name" max:"120"`
	Code       *string               `json:"device_code" pattern:"^[A-Za-z0-9_-]{1,32}$" example:"PIER-7" doc:"Until it enrols; fixed from then on"`
	Type       *string               `json:"device_type" enum:"smart_locker,kiosk,smart_drop,scan_post" doc:"A warehouse post, scan_post, stays one, and no other device becomes one"`
	Address    *string               `json:"address" max:"200" doc:"One line"`
	PostalCode *string               `json:"postal_code" max:"20" pattern:"^ *[0-9A-Za-z][0-9A-Za-z -]*$" example:"M5V 2T6" doc:"Of the address: carriers look for lockers by it. An empty text removes it"`
	Country    *string               `json:"country" format:"country" doc:"Of the address: ISO 3166-1 alpha-2, such as CA. An empty text removes it"`
	Latitude   *float64              `json:"latitude" min:"-90" max:"90" with:"longitude" example:"43.6446" doc:"Degrees: where people look for it, and may open it by their link. 0 and 0 is not known"`
	Longitude  *float64              `json:"longitude" min:"-180" max:"180" with:"latitude" example:"-79.3849" doc:"Degrees"`
	Public     *bool                 `json:"public" doc:"List it among the pickup points that everybody sees; test lockers and warehouse posts never are"`
	Location   *cloud.SiteID         `json:"location_id" min:"0" doc:"Site at which it stands; 0 is none"`
	Timezone   *string               `json:"timezone" max:"64" format:"time-zone" example:"America/Toronto" doc:"Of its opening hours: a name of the IANA time zone database"`
	Status     *string               `json:"status" enum:"active,maintenance,disabled" doc:"maintenance takes no new deliveries, and parcels inside can be collected; disabled ends its connection as well; active is in use"`
	Hours      *[]check.HoursInput   `json:"opening_hours" max:"42" doc:"All hours; an empty list is always open"`
	Guide      *cloud.IndoorGuide    `json:"indoor_guide" doc:"An empty text without photos removes it"`
	Features   *cloud.DeviceFeatures `json:"features" doc:"All features: those that are left out are false, but for remote_open, which is true of every device with compartments"`
}

func (in DeviceEdit) check() error {
	f := newFields()
	for path, v := range map[string]*string{"device_name": in.Name, "address": in.Address, "device_code": in.Code} {
		if v == nil {
			continue
		}
		f.Line(path, *v, 200)
		if path != "address" && strings.TrimSpace(*v) == "" {
			f.Say(path, check.MessageRequired)
		}
	}
	if in.Hours != nil {
		f.Hours(check.Hours(*in.Hours))
	}
	return f.Err()
}

// checkPost refuses what makes a device a warehouse post or a post another device, and what
// a post cannot be.
func (in DeviceEdit) checkPost(d cloud.Device) error {
	f := newFields()
	if in.Type != nil && *in.Type != d.Type && (d.IsPost() || *in.Type == cloud.TypeScanPost) {
		f.Add("device_type", "A warehouse post stays one, and no other device becomes one: create another device.")
	}
	if d.IsPost() && in.Public != nil && *in.Public {
		f.Add("public", "A warehouse post is no pickup point.")
	}
	return f.Err()
}

// EditDevice changes a device of the caller's business. Changed opening hours and a
// changed code reach the cabinet as a configuration of the next version. Errors:
// DEVICE_NOT_FOUND, DEVICE_ENROLLED (the code is fixed), DEVICE_DISABLED (retired, or
// stolen: it enrols again), VALIDATION_FAILED.
func (s staff) EditDevice(ctx context.Context, c cloud.Caller, in DeviceEdit) (out DeviceOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	out, err = s.changeDevice(ctx, c, in.Device, func(w *Work) error { return w.editDevice(c, in) })
	if errors.Is(err, cloud.ErrExists) {
		f := newFields()
		f.Add("device_code", "A cabinet with this code exists.")
		err = f.Err()
	}
	return out, err
}

func (w requests) editDevice(c cloud.Caller, in DeviceEdit) error {
	d := &w.device
	if !d.RetiredAt.IsZero() {
		return outOfService(*d)
	}
	changed := map[string]any{}
	set := func(name string, to, from *string) {
		if to != nil && *to != *from {
			*from, changed[name] = *to, *to
		}
	}
	if in.Code != nil && *in.Code != d.Code && !d.EnrolledAt.IsZero() {
		return cloud.E(cloud.Conflict, "DEVICE_CODE_FIXED")
	}
	if err := in.checkPost(*d); err != nil {
		return err
	}
	was := d.Code
	set("device_name", in.Name, &d.Name)
	set("device_code", in.Code, &d.Code)
	set("device_type", in.Type, &d.Type)
	set("address", in.Address, &d.Address)
	if in.PostalCode != nil {
		set("postal_code", new(cloud.CleanPostalCode(*in.PostalCode)), &d.PostalCode)
	}
	if in.Country != nil {
		set("country", new(strings.ToUpper(*in.Country)), &d.Country)
	}
	set("timezone", in.Timezone, &d.Timezone)
	if in.Latitude != nil && in.Longitude != nil && (*in.Latitude != d.Latitude || *in.Longitude != d.Longitude) {
		d.Latitude, d.Longitude = *in.Latitude, *in.Longitude
		changed["latitude"], changed["longitude"] = d.Latitude, d.Longitude
	}
	if in.Public != nil && *in.Public != d.Public {
		d.Public, changed["public"] = *in.Public, *in.Public
	}
	if in.Location != nil && *in.Location != d.Profile.SiteID {
		if *in.Location != 0 {
			if _, err := collection.FindIn(w.v, cloud.Site{Kept: cloud.Kept[cloud.SiteID]{ID: *in.Location, BusinessID: d.BusinessID}}); err != nil {
				return err
			}
		}
		d.Profile.SiteID, changed["location_id"] = *in.Location, *in.Location
	}
	if in.Features != nil && *in.Features != d.Profile.Features {
		d.Profile.Features, changed["features"] = *in.Features, in.Features
	}
	if in.Guide != nil {
		changed["indoor_guide"] = in.Guide
		if d.Profile.Guide = in.Guide; in.Guide.Text == "" && len(in.Guide.Photos) == 0 {
			d.Profile.Guide = nil
		} else if in.Guide.Photos == nil {
			in.Guide.Photos = []string{}
		}
	}
	if in.Hours != nil && !slices.Equal(check.Hours(*in.Hours), d.Profile.Hours) {
		d.Profile.Hours, changed["opening_hours"] = check.Hours(*in.Hours), in.Hours
	}
	if in.Status != nil {
		if err := w.setStatus(*in.Status, changed); err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	w.listed = true // the device's row is written
	if changed["opening_hours"] != nil || was != d.Code {
		if err := w.publish(nil); err != nil {
			return err
		}
	}
	return w.auditStaff(c, "cabinet_edited", d.Code, changed)
}

func (w requests) setStatus(status string, changed map[string]any) error {
	d := &w.device
	if d.Disabled && d.IsCutOff() {
		return outOfService(*d) // stolen: it enrols again
	}
	is := "active"
	if d.Disabled {
		is = cloud.StatusDisabled
	} else if !d.MaintenanceAt.IsZero() {
		is = cloud.StatusMaintenance
	}
	if status == is {
		return nil
	}
	changed["status"] = status
	d.Disabled, d.MaintenanceAt = status == cloud.StatusDisabled, time.Time{}
	if status == cloud.StatusMaintenance {
		d.MaintenanceAt = w.received
	}
	if !d.Disabled {
		return nil
	}
	return w.endSession()
}

// endSession ends the device's connection: what it still sends counts for nothing.
func (w requests) endSession() error {
	session, err := w.v.Session(w.device.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	session.DeviceID, session.Online, session.LastSeenAt = w.device.ID, false, w.received
	session.Generation++
	w.ch.Sessions = append(w.ch.Sessions, session)
	return nil
}

// outOfService says why a device takes nothing: its status is in the details.
func outOfService(d cloud.Device) error {
	status := d.Status(false)
	if d.Disabled && d.IsCutOff() && d.RetiredAt.IsZero() {
		status = cloud.DevReportedStolen
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: "DEVICE_DISABLED", Details: map[string]any{"status": status}}
}
