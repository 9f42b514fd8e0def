package route

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

// date checks a day, which may be missing.
func (f fields) date(path, s string) {
	if _, err := time.Parse(time.DateOnly, s); s != "" && err != nil {
		f.Add(path, "Use a date such as 2026-11-20.")
	}
}

// place checks coordinates, of which both are given or none.
func (f fields) place(latitude, longitude *float64) { f.Place("", latitude, longitude) }

func (f fields) within(path string, v *float64, least, most float64) {
	if v != nil && !(*v >= least && *v <= most) {
		f.Add(path, "The value is out of range.")
	}
}

// moment reads a date-time in a time zone, the zero time when it is empty.
func (f fields) moment(path, s string, zone *time.Location) time.Time {
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateTime} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t.UTC().Truncate(time.Millisecond)
		}
	}
	f.Add(path, "Use a date-time with offset, such as 2026-06-10T11:30:00-04:00.")
	return time.Time{}
}

var clock = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// shift checks the hours of a day's work; both are empty when there are none.
// One that ends before it begins goes over midnight.
func (f fields) shift(s *Shift) {
	if s.Start == "" && s.End == "" {
		return
	}
	for path, at := range map[string]string{"shift.start": s.Start, "shift.end": s.End} {
		if !clock.MatchString(at) {
			f.Add(path, "Use a time such as 13:30.")
		}
	}
}

func (f fields) vehicle(v *cloud.Vehicle) {
	f.Line("vehicle.type", v.Type, 32)
	f.Line("vehicle.plate", v.Plate, 16)
	for path, n := range map[string]float64{"vehicle.id": float64(v.ID), "vehicle.capacity_weight": v.CapacityWeight, "vehicle.capacity_volume": v.CapacityVolume,
		"vehicle.capacity_packages": float64(v.CapacityPackages)} {
		if n < 0 || n > 1e9 {
			f.Add(path, "The value is out of range.")
		}
	}
}

func (f fields) skills(list []string) {
	if len(list) > 50 {
		f.Add("skills", "The value is out of range.")
		return
	}
	for i, s := range list {
		path := "skills." + strconv.Itoa(i)
		if s == "" {
			f.Add(path, "This is required.")
		}
		f.Line(path, s, 64)
	}
}

// PageInput asks for a part of a list.
type PageInput struct {
	Page    int    `query:"page" json:"page" doc:"From 1"`
	PerPage int    `query:"per_page" json:"per_page" doc:"1 to 200, 20 when absent"`
	Sort    string `query:"sort" json:"sort" doc:"A member, or - and a member; -id when absent"`
}

// PageOutput says which part of a list it is.
type PageOutput struct {
	Total   int `json:"total"`
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
}

// page fills in what was left out and is the part that is asked for.
func (f fields) page(in *PageInput, sorts ...string) cloud.Page {
	if in.Page == 0 {
		in.Page = 1
	}
	if in.PerPage == 0 {
		in.PerPage = defaultPage
	}
	if in.Page < 1 || in.Page > lastPage {
		f.Add("page", "The value is out of range.")
	}
	if in.PerPage < 1 || in.PerPage > maxPage {
		f.Add("per_page", "The value is out of range.")
	}
	p := cloud.Page{Sort: "id", Down: true, Offset: (in.Page - 1) * in.PerPage, Limit: in.PerPage}
	if in.Sort != "" {
		p.Sort, p.Down = strings.CutPrefix(in.Sort, "-")
		if !slices.Contains(sorts, p.Sort) {
			f.Add("sort", "Lists cannot be sorted by this.")
		}
	}
	return p
}

func (in PageInput) output(total int) PageOutput { return PageOutput{total, in.Page, in.PerPage} }
