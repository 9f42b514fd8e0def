package order

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Events of deliveries that third parties make.
const (
	EventThirdPartyCreated    = "third_party_delivery.created"
	EventThirdPartyHandedOver = "third_party_delivery.packages_handed_over"
	eventThirdPartyCancelled  = "third_party_delivery.cancelled"
	eventThirdPartyPartial    = "third_party_delivery.partial_delivery"

	thirdPartyPrefix = "TPD-" // of their ids
)

// thirdPartyEvent is the body of an event to a third party. Nullable members are
// pointers and always present.
type thirdPartyEvent struct {
	cloud.EventHead
	Provider ThirdPartyProvider `json:"provider"`
	Data     ThirdData          `json:"data"`
}

type ThirdData struct {
	AssignmentNumber string                 `json:"assignment_number"`
	Order            ThirdOrder             `json:"order"`
	Numbers          []string               `json:"package_tracking_numbers"`
	Status           cloud.ThirdPartyStatus `json:"status"`
	Reason           *string                `json:"reason"`
	Packages         []ThirdPartyPackage    `json:"packages"`
	Legs             []ThirdPartyLeg        `json:"legs"`
	Pickup           ThirdPickup            `json:"pickup"`
	Dropoff          ThirdDropoff           `json:"dropoff"`
	Note             *string                `json:"note"`
	Test             bool                   `json:"test"`
}

// ThirdOrder names the order.
type ThirdOrder struct {
	OrderID    cloud.OrderID `json:"order_id"`
	Ref        *string       `json:"order_ref"`
	Number     string        `json:"tracking_number"`
	ExternalID *string       `json:"external_order_id"`
}

// ThirdPickup is where the packages wait.
type ThirdPickup struct {
	Name    string  `json:"name"`
	Address string  `json:"address"`
	ReadyAt *string `json:"ready_at"`
}

// ThirdDropoff is where the packages go.
type ThirdDropoff struct {
	Name    string      `json:"name"`
	Address string      `json:"address"`
	Window  *TimeWindow `json:"window"`
}

// ThirdPartyProvider names a third party.
type ThirdPartyProvider struct {
	ID   cloud.ProviderID `json:"id"`
	Code string           `json:"code"`
	Name string           `json:"name"`
}

// ThirdPartyPackage is what became of a package at a third party.
type ThirdPartyPackage struct {
	Number         string                  `json:"tracking_number"`
	ExternalNumber *string                 `json:"external_tracking_number"`
	Outcome        cloud.ThirdPartyOutcome `json:"outcome"`
	FailureCode    *string                 `json:"failure_code"`
	OccurredAt     *string                 `json:"occurred_at"`
}

// ThirdPartyLeg is an order at a carrier for some of the packages.
type ThirdPartyLeg struct {
	LegID          int64    `json:"leg_id"`
	CarrierCode    string   `json:"carrier_code"`
	ExternalID     *string  `json:"external_order_id"`
	ExternalNumber *string  `json:"external_tracking_number"`
	LabelURL       *string  `json:"label_url"`
	Status         string   `json:"status"`
	Numbers        []string `json:"package_tracking_numbers"`
}

// thirdPartyTest is the data of a sample as a test sends it: it says that it is one.
func thirdPartyTest(sample []byte) json.RawMessage {
	var b thirdPartyEvent
	if err := json.Unmarshal(sample, &b); err != nil {
		panic("order: embedded samples: " + err.Error())
	}
	b.Data.Test = true
	data, _ := json.Marshal(b.Data) // plain fields always encode
	return data
}

// ThirdPartyRef is an order's latest assignment to a third party in short.
type ThirdPartyRef struct {
	Number       string                 `json:"assignment_number"`
	ProviderCode string                 `json:"provider_code"`
	ProviderName string                 `json:"provider_name"`
	Status       cloud.ThirdPartyStatus `json:"status"`
}

func thirdPartyRef(v cloud.View, a cloud.ThirdPartyAssignment) (*ThirdPartyRef, error) {
	p, err := v.Provider(a.ProviderID)
	return &ThirdPartyRef{a.Number, p.Code, p.Name, a.Status}, err
}

// streetLine is an address on one line, without what it lacks.
func streetLine(a cloud.Address) string {
	parts := []string{a.Line1, a.Line2, strings.TrimSpace(a.City + " " + a.Province)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// NewThirdPartyData is the assignment as its events tell it.
func NewThirdPartyData(a cloud.ThirdPartyAssignment, o cloud.Order, b cloud.Business) ThirdData {
	l := b.Location()
	d := ThirdData{AssignmentNumber: a.Number, Order: ThirdOrder{OrderID: a.OrderID, Ref: cloud.OrNull(o.Ref), Number: o.Number, ExternalID: cloud.OrNull(o.ExternalID)},
		Numbers: []string{}, Status: a.Status, Reason: cloud.OrNull(a.Reason), Packages: []ThirdPartyPackage{}, Legs: []ThirdPartyLeg{}, Note: cloud.OrNull(a.Note),
		Pickup: ThirdPickup{Name: b.Name, ReadyAt: cloud.Stamp(a.CreatedAt, l)}, Dropoff: ThirdDropoff{Name: b.Name}}
	for _, p := range a.Packages {
		d.Numbers = append(d.Numbers, p.Number)
		d.Packages = append(d.Packages, ThirdPartyPackage{Number: p.Number, ExternalNumber: cloud.OrNull(p.External), Outcome: p.Outcome, FailureCode: cloud.OrNull(p.Failure),
			OccurredAt: cloud.Stamp(p.OccurredAt, l)})
	}
	for _, x := range a.Legs {
		d.Legs = append(d.Legs, ThirdPartyLeg{LegID: int64(x.ID), CarrierCode: x.CarrierCode, ExternalID: cloud.OrNull(x.ExternalOrder), ExternalNumber: cloud.OrNull(x.ExternalNumber),
			LabelURL: cloud.OrNull(x.LabelURL), Status: x.Status, Numbers: OrEmpty(x.Packages)})
	}
	if s := o.Sender; s != nil {
		d.Pickup.Name, d.Pickup.Address = s.Name, streetLine(*s)
	}
	if r := o.Recipient; r != nil {
		d.Dropoff.Name, d.Dropoff.Address = r.Name, streetLine(*r)
	}
	if o.WindowStart != "" {
		d.Dropoff.Window = &TimeWindow{Start: o.WindowStart, End: o.WindowEnd}
	}
	return d
}

// addThirdPartyEvents adds the events that say what became of the assignment, for the
// company that carries the order.
func addThirdPartyEvents(d *Decision) error {
	for _, event := range d.thirdPartyEvents {
		a := d.thirdParty
		out, err := d.service.webhooks.FanOutToProvider(d.View, cloud.ProviderEvent{BusinessID: a.BusinessID, ProviderID: a.ProviderID, Channel: cloud.ChannelThirdParty, Event: event,
			Prefix: thirdPartyPrefix, ReferenceType: "third_party_assignment", ReferenceID: a.Number, OccurredAt: d.Now,
			Body: func(head cloud.EventHead) (any, error) {
				b, err := d.View.Business(a.BusinessID)
				if err != nil {
					return nil, err
				}
				p, err := d.View.Provider(a.ProviderID)
				return thirdPartyEvent{EventHead: head, Provider: ThirdPartyProvider{p.ID, p.Code, p.Name}, Data: NewThirdPartyData(*a, d.Order, b)}, err
			}})
		if err != nil {
			return err
		}
		d.Changes.Outbox = append(d.Changes.Outbox, out...)
	}
	return nil
}
