package locker

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// DeviceRow is a device in a list of those of the business.
type DeviceRow struct {
	DeviceID   cloud.DeviceID       `json:"device_id"`
	DeviceCode string               `json:"device_code"`
	DeviceName string               `json:"device_name"`
	DeviceType string               `json:"device_type" doc:"smart_locker, kiosk or smart_drop"`
	Address    string               `json:"address"`
	Timezone   string               `json:"timezone"`
	Protocol   string               `json:"protocol"`
	Livemode   bool                 `json:"livemode"`
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
	OpeningHours []cloud.OpeningHours `json:"opening_hours"` // null: always open
	IndoorGuide  *cloud.IndoorGuide   `json:"indoor_guide"`
	// Exceptions are those that are open, oldest first.
	Exceptions []DeviceExceptionBody `json:"exceptions"`
	Shelves    []string              `json:"shelves" doc:"Shelf codes from left to right"`
	Grids      []GridBody            `json:"grids"`
}

// DeviceOutput shows a device with its compartments.
type DeviceOutput struct {
	Result bool       `json:"result"`
	Device DeviceBody `json:"device"`
}

// DevicesInput asks for a part of the business's devices.
type DevicesInput struct {
	Status  string `query:"status" enum:"online,offline,maintenance,disabled,retired" doc:"Retired devices are listed with retired only"`
	Type    string `query:"device_type" enum:"smart_locker,kiosk,smart_drop"`
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
			cells, err := v.Compartments(d.ID)
			if err != nil {
				return err
			}
			row, err := deviceRow(v, d, cells, biz.Location())
			if err != nil {
				return err
			}
			out.Devices = append(out.Devices, row)
		}
		return nil
	})
	return out, err
}

func deviceRow(v cloud.View, d cloud.Device, cells []cloud.Compartment, l *time.Location) (DeviceRow, error) {
	session, err := v.Session(d.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return DeviceRow{}, err
	}
	out := DeviceRow{DeviceID: d.ID, DeviceCode: d.Code, DeviceName: d.Name, DeviceType: d.Type, Address: d.Address, Timezone: d.Timezone, Protocol: d.Protocol,
		Livemode: d.Livemode, Status: d.Status(session.Online), EnrolledAt: cloud.Stamp(d.EnrolledAt, l), LastSeenAt: cloud.Stamp(d.LastSeenAt, l), RetiredAt: cloud.Stamp(d.RetiredAt, l),
		Firmware: d.Firmware, Features: d.Profile.Features, GridCounts: map[string]int{}, AwaitsHardware: d.IsCutOff() && d.RetiredAt.IsZero(),
		ConfigVersion: d.ConfigVersion, ConfigApplied: min(d.Applied, d.ConfigVersion)}
	for _, size := range sizes {
		out.GridCounts[size] = 0
	}
	for _, c := range cells {
		if c.PickupEnabled {
			out.GridCounts[c.Size]++
		}
	}
	return out, nil
}

// FindDevice shows a device of the caller's business with its compartments.
// Error: DEVICE_NOT_FOUND.
func (s staff) FindDevice(ctx context.Context, c cloud.Caller, id cloud.DeviceID) (out DeviceOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := ours(v, c, id)
		if err != nil {
			return err
		}
		out, err = showDevice(v, d)
		return err
	})
	return out, err
}

func showDevice(v cloud.View, d cloud.Device) (out DeviceOutput, err error) {
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return out, err
	}
	cells, err := v.Compartments(d.ID)
	if err != nil {
		return out, err
	}
	faults, err := v.DeviceExceptions(d.ID)
	if err != nil {
		return out, err
	}
	shelves, err := v.Shelves(d.ID)
	if err != nil {
		return out, err
	}
	row, err := deviceRow(v, d, cells, biz.Location())
	if err != nil {
		return out, err
	}
	b := DeviceBody{DeviceRow: row, IndoorGuide: d.Profile.Guide, Exceptions: []DeviceExceptionBody{}, Shelves: []string{}, Grids: []GridBody{}}
	if len(d.Profile.Hours) > 0 {
		b.OpeningHours = d.Profile.Hours
	}
	for _, f := range faults {
		b.Exceptions = append(b.Exceptions, DeviceExceptionBody{Type: f.Type, Detail: f.Detail, Count: f.Count,
			OpenedAt: cloud.Stamp(f.OpenedAt, biz.Location()), SeenAt: cloud.Stamp(f.SeenAt, biz.Location())})
	}
	for _, x := range shelves {
		b.Shelves = append(b.Shelves, x.Code)
	}
	for _, cell := range cells {
		if !cell.IsRemoved() || isInUse(cell) {
			b.Grids = append(b.Grids, gridBody(cell))
		}
	}
	return DeviceOutput{Result: true, Device: b}, nil
}

// DeviceEdit changes a device. Members that are absent stay as they are.
type DeviceEdit struct {
	Device   cloud.DeviceID        `path:"id" json:"-"`
	Name     *string               `json:"device_name" max:"120"`
	Code     *string               `json:"device_code" pattern:"^[A-Za-z0-9_-]{1,32}$" example:"PIER-7" doc:"Until it enrols; fixed from then on"`
	Type     *string               `json:"device_type" enum:"smart_locker,kiosk,smart_drop"`
	Address  *string               `json:"address" max:"200" doc:"One line"`
	Timezone *string               `json:"timezone" max:"64" example:"America/Toronto" doc:"Of its opening hours: a name of the IANA time zone database"`
	Status   *string               `json:"status" enum:"active,maintenance,disabled" doc:"maintenance takes no new deliveries, and parcels inside can be collected; disabled ends its connection as well; active is in use"`
	Hours    *[]cloud.OpeningHours `json:"opening_hours" max:"42" doc:"All hours; an empty list is always open"`
	Guide    *cloud.IndoorGuide    `json:"indoor_guide" doc:"An empty text without photos removes it"`
	Features *cloud.DeviceFeatures `json:"features" doc:"All features: those that are left out are false"`
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
	if in.Timezone != nil {
		if _, err := time.LoadLocation(*in.Timezone); err != nil || *in.Timezone == "" || *in.Timezone == "Local" {
			f.Say("timezone", check.MessageForm, "America/Toronto")
		}
	}
	if in.Hours != nil {
		checkHours(f, *in.Hours)
	}
	if in.Guide != nil {
		for i, p := range in.Guide.Photos {
			if !isPicture(p) {
				f.Say("indoor_guide.photos."+strconv.Itoa(i), check.MessageForm, "https://files.example.com/lobby.jpg")
			}
		}
	}
	return f.Err()
}

// isPicture reports whether an address can be a picture's: https, a host, and no
// user or control characters.
func isPicture(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= 500 && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// minutes of a day that HH:MM names; -1 for another text.
func minutes(s string) int {
	if s == "24:00" {
		return 24 * 60
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != 5 {
		return -1
	}
	return t.Hour()*60 + t.Minute()
}

func checkHours(f fields, hours []cloud.OpeningHours) {
	for i, h := range hours {
		path := "opening_hours." + strconv.Itoa(i)
		from, to := minutes(h.Open), minutes(h.Close)
		switch {
		case from < 0 || from == 24*60:
			f.Say(path+".open", check.MessageForm, "08:00")
		case to < 0:
			f.Say(path+".close", check.MessageForm, "20:00")
		case to <= from:
			f.Add(path+".close", "close must be after open. Hours that go past midnight are two entries: up to 24:00, and from 00:00 on the next day.")
		}
		for _, other := range hours[:i] {
			if other.Day == h.Day && minutes(other.Open) < to && from < minutes(other.Close) {
				f.Add(path, "These hours overlap with others of the same day. Join them into one entry.")
				break
			}
		}
	}
}

// EditDevice changes a device of the caller's business. Changed opening hours and a
// changed code reach the cabinet as a configuration of the next version. Errors:
// DEVICE_NOT_FOUND, DEVICE_ENROLLED (the code is fixed), DEVICE_DISABLED (retired, or
// stolen: it enrols again), VALIDATION_FAILED.
func (s staff) EditDevice(ctx context.Context, c cloud.Caller, in DeviceEdit) (out DeviceOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := ours(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, time.Now().UTC())
		if err := w.editDevice(c, in); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	if errors.Is(err, cloud.ErrExists) {
		f := newFields()
		f.Add("device_code", "A cabinet with this code exists.")
		err = f.Err()
	}
	if err != nil {
		return out, err
	}
	return s.FindDevice(ctx, c, in.Device)
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
	was := d.Code
	set("device_name", in.Name, &d.Name)
	set("device_code", in.Code, &d.Code)
	set("device_type", in.Type, &d.Type)
	set("address", in.Address, &d.Address)
	set("timezone", in.Timezone, &d.Timezone)
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
	if in.Hours != nil && !slices.Equal(*in.Hours, d.Profile.Hours) {
		d.Profile.Hours, changed["opening_hours"] = *in.Hours, *in.Hours
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
