package check

import (
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
)

// HoursInput are opening hours of one weekday.
type HoursInput struct {
	Day   *int   `json:"day" required:"true" min:"0" max:"6" doc:"0 is Sunday"`
	Open  string `json:"open" required:"true" max:"5" doc:"HH:MM"`
	Close string `json:"close" required:"true" max:"5" doc:"HH:MM after open, up to 24:00"`
}

// Hours are opening hours as they are kept.
func Hours(in []HoursInput) (out []cloud.OpeningHours) {
	for _, h := range in {
		day := 0
		if h.Day != nil {
			day = *h.Day
		}
		out = append(out, cloud.OpeningHours{Day: day, Open: h.Open, Close: h.Close})
	}
	return out
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

// Hours looks at opening hours: each ends after it begins, and none of a day overlap.
func (f Fields) Hours(hours []cloud.OpeningHours) {
	for i, h := range hours {
		path := "opening_hours." + strconv.Itoa(i)
		from, to := minutes(h.Open), minutes(h.Close)
		switch {
		case from < 0 || from == 24*60:
			f.Say(path+".open", MessageForm, "08:00")
		case to < 0:
			f.Say(path+".close", MessageForm, "20:00")
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
