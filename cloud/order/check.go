package order

import (
	"math"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// fields collects what is wrong with an input beyond the rules of its members.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

// window checks a window of which both ends are given or none.
func (f fields) window(start, end string) {
	if (start != "" || end != "") && (start == "" || end <= start) && len(f.Fields["time_window_start"])+len(f.Fields["time_window_end"]) == 0 {
		f.Add("time_window_end", "Give both ends of the window, the end after the start.")
	}
}

// ends checks that an order of a type has the stops that it needs.
func (f fields) ends(t cloud.OrderType, from string, hasFrom bool, to string, hasTo bool) {
	if !hasFrom && t != cloud.DeliveryOrder {
		f.Say(from, check.MessageRequired)
	}
	if !hasTo && t != cloud.PickupOrder {
		f.Say(to, check.MessageRequired)
	}
}

// CloneAddress is a copy of an address, which may be changed, with its country in capitals.
func CloneAddress(a *cloud.Address) *cloud.Address {
	if a == nil {
		return nil
	}
	b := *a
	b.Country = strings.ToUpper(b.Country)
	return &b
}

// thousandth rounds to three decimals.
func thousandth(x float64) float64 { return math.Round(x*1000) / 1000 }
