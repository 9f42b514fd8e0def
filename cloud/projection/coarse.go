package projection

import (
	"slices"

	"github.com/postern-io/postern/protocol/otep"
)

// coarse is the input of the formats that only know an order's fulfilment.
type coarse struct {
	otep.Coarse
	events  []otep.Event
	last    *otep.Event
	shipped *otep.Event
	label   string // of the latest event, "" when there is none
}

func (p *Projector) coarse(t otep.Timeline) coarse {
	events := actual(t)
	c := coarse{events: events, last: last(events), shipped: shipped(events)}
	code, phase := otep.InformationSubmitted, ""
	if c.last != nil {
		code, phase = c.last.StatusCode, c.last.Phase
		c.label = p.label(code)
	}
	c.Coarse = otep.Project(code, phase).CoarseIn(c.shipped != nil)
	return c
}

// carrier is a carrier as the platforms know it: the name that people read, and
// the codes in their own lists, "" where a list does not have it.
type carrier struct {
	code, name, walmart, bigCommerce, magento string
}

// carriers are those whose codes are beyond doubt, by the code of the provider.
var carriers = []carrier{
	{code: "ups", name: "UPS", walmart: "UPS", bigCommerce: "ups", magento: "ups"},
	{code: "usps", name: "USPS", walmart: "USPS", bigCommerce: "usps", magento: "usps"},
	{code: "fedex", name: "FedEx", walmart: "FedEx", bigCommerce: "fedex", magento: "fedex"},
	{code: "dhl", name: "DHL", walmart: "DHL", magento: "dhl"},
	{code: "ontrac", name: "OnTrac", walmart: "OnTrac"},
	{code: "canadapost", name: "Canada Post", walmart: "Canada Post", bigCommerce: "canadapost"},
	{code: "royalmail", name: "Royal Mail", walmart: "Royal Mail", bigCommerce: "royalmail"},
	{code: "auspost", name: "Australia Post", bigCommerce: "auspost"},
}

// carrier finds the carrier. One that is in no list has its code for a name.
func (c coarse) carrier() carrier {
	code := sourceName(c.last)
	if i := slices.IndexFunc(carriers, func(k carrier) bool { return k.code == code }); i >= 0 {
		return carriers[i]
	}
	return carrier{code: code, name: code}
}
