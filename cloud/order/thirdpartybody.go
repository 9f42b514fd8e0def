package order

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// ThirdPartyBody is an assignment to a third party as answers show it.
type ThirdPartyBody struct {
	Number       string                 `json:"assignment_number"`
	Provider     ThirdPartyProvider     `json:"provider"`
	Order        thirdOrder             `json:"order"`
	Numbers      []string               `json:"package_tracking_numbers"`
	Status       cloud.ThirdPartyStatus `json:"status"`
	Reason       *string                `json:"reason"`
	EndNote      *string                `json:"end_note"`
	Service      *string                `json:"service_code"`
	Packages     []ThirdPartyParcel     `json:"packages"`
	Legs         []ThirdPartyLeg        `json:"legs"`
	Pickup       thirdPickup            `json:"pickup"`
	Dropoff      thirdDropoff           `json:"dropoff"`
	Note         *string                `json:"note"`
	CreatedAt    *string                `json:"created_at"`
	AcceptedAt   *string                `json:"accepted_at"`
	HandedOverAt *string                `json:"handed_over_at"`
	CompletedAt  *string                `json:"completed_at"`
	EndedAt      *string                `json:"ended_at"`
}

// ThirdPartyParcel is a package with what proves its outcome.
type ThirdPartyParcel struct {
	ThirdPartyPackage
	Proofs []string `json:"proof_files"`
}

// ThirdPartyRef is an order's latest assignment to a third party in short.
type ThirdPartyRef struct {
	Number       string                 `json:"assignment_number"`
	ProviderCode string                 `json:"provider_code"`
	ProviderName string                 `json:"provider_name"`
	Status       cloud.ThirdPartyStatus `json:"status"`
}

func thirdRef(v cloud.View, a cloud.ThirdPartyAssignment) (*ThirdPartyRef, error) {
	p, err := v.Provider(a.ProviderID)
	return &ThirdPartyRef{a.Number, p.Code, p.Name, a.Status}, err
}

// streetLine is an address on one line, without what it lacks.
func streetLine(a cloud.Address) string {
	parts := []string{a.Line1, a.Line2, strings.TrimSpace(a.City + " " + a.Province)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// thirdPartyData is the assignment as its events tell it.
func thirdPartyData(a cloud.ThirdPartyAssignment, o cloud.Order, b cloud.Business) thirdData {
	l := b.Location()
	d := thirdData{AssignmentNumber: a.Number, Order: thirdOrder{OrderID: a.OrderID, Ref: cloud.OrNull(o.Ref), Number: o.Number, ExternalID: cloud.OrNull(o.ExternalID)},
		Numbers: []string{}, Status: a.Status, Reason: cloud.OrNull(a.Reason), Packages: []ThirdPartyPackage{}, Legs: []ThirdPartyLeg{}, Note: cloud.OrNull(a.Note),
		Pickup: thirdPickup{Name: b.Name, ReadyAt: cloud.Stamp(a.CreatedAt, l)}, Dropoff: thirdDropoff{Name: b.Name}}
	for _, p := range a.Packages {
		d.Numbers = append(d.Numbers, p.Number)
		d.Packages = append(d.Packages, ThirdPartyPackage{Number: p.Number, ExternalNumber: cloud.OrNull(p.External), Outcome: p.Outcome, FailureCode: cloud.OrNull(p.Failure),
			OccurredAt: cloud.Stamp(p.OccurredAt, l)})
	}
	for _, x := range a.Legs {
		d.Legs = append(d.Legs, ThirdPartyLeg{LegID: int64(x.ID), CarrierCode: x.CarrierCode, ExternalID: cloud.OrNull(x.ExternalOrder), ExternalNumber: cloud.OrNull(x.ExternalNumber),
			LabelURL: cloud.OrNull(x.LabelURL), Status: x.Status, Numbers: orEmpty(x.Packages)})
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

// thirdBodyOf shows an assignment whose order may be gone.
func thirdBodyOf(v cloud.View, a cloud.ThirdPartyAssignment) (ThirdPartyBody, error) {
	o, err := v.Order(a.BusinessID, a.OrderID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return ThirdPartyBody{}, err
	}
	return showThird(v, a, o)
}

func showThird(v cloud.View, a cloud.ThirdPartyAssignment, o cloud.Order) (b ThirdPartyBody, err error) {
	business, err := v.Business(a.BusinessID)
	if err != nil {
		return b, err
	}
	p, err := v.Provider(a.ProviderID)
	if err != nil {
		return b, err
	}
	d, l := thirdPartyData(a, o, business), business.Location()
	at := func(t time.Time) *string { return cloud.Stamp(t, l) }
	b = ThirdPartyBody{Number: a.Number, Provider: ThirdPartyProvider{p.ID, p.Code, p.Name}, Order: d.Order, Numbers: d.Numbers, Status: a.Status, Reason: d.Reason,
		EndNote: cloud.OrNull(a.EndNote), Service: cloud.OrNull(a.Service), Packages: []ThirdPartyParcel{}, Legs: d.Legs, Pickup: d.Pickup, Dropoff: d.Dropoff, Note: d.Note,
		CreatedAt: at(a.CreatedAt), AcceptedAt: at(a.AcceptedAt), HandedOverAt: at(a.HandedOverAt), CompletedAt: at(a.CompletedAt), EndedAt: at(a.EndedAt)}
	for i, x := range d.Packages {
		b.Packages = append(b.Packages, ThirdPartyParcel{x, orEmpty(a.Packages[i].Proofs)})
	}
	return b, nil
}

// addThirdPartyEvents tells whoever carries the order what became of the assignment.
func (d *Decision) addThirdPartyEvents() error {
	for _, event := range d.thirdPartyEvents {
		a := d.thirdParty
		out, err := d.service.webhooks.FanOutToProvider(d.View, cloud.ProviderEvent{BusinessID: a.BusinessID, ProviderID: a.ProviderID, Channel: cloud.ChannelThirdParty, Event: event,
			Prefix: thirdPrefix, ReferenceType: "third_party_assignment", ReferenceID: a.Number, OccurredAt: d.Now,
			Body: func(id string) (any, error) {
				b, err := d.View.Business(a.BusinessID)
				if err != nil {
					return nil, err
				}
				p, err := d.View.Provider(a.ProviderID)
				return thirdBody{EventID: id, Event: event, APIVersion: "1", OccurredAt: cloud.Stamp(d.Now, b.Location()), BusinessID: a.BusinessID,
					Provider: ThirdPartyProvider{p.ID, p.Code, p.Name}, Data: thirdPartyData(*a, d.Order, b)}, err
			}})
		if err != nil {
			return err
		}
		d.Changes.Outbox = append(d.Changes.Outbox, out...)
	}
	return nil
}
