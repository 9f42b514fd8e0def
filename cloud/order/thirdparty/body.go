package thirdparty

import (
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

// ThirdPartyBody is an assignment to a third party as answers show it.
type ThirdPartyBody struct {
	Number       string                   `json:"assignment_number"`
	Provider     order.ThirdPartyProvider `json:"provider"`
	Order        order.ThirdOrder         `json:"order"`
	Numbers      []string                 `json:"package_tracking_numbers"`
	Status       cloud.ThirdPartyStatus   `json:"status"`
	Reason       *string                  `json:"reason"`
	EndNote      *string                  `json:"end_note"`
	Service      *string                  `json:"service_code"`
	Packages     []ThirdPartyParcel       `json:"packages"`
	Legs         []order.ThirdPartyLeg    `json:"legs"`
	Pickup       order.ThirdPickup        `json:"pickup"`
	Dropoff      order.ThirdDropoff       `json:"dropoff"`
	Note         *string                  `json:"note"`
	CreatedAt    *string                  `json:"created_at"`
	AcceptedAt   *string                  `json:"accepted_at"`
	HandedOverAt *string                  `json:"handed_over_at"`
	CompletedAt  *string                  `json:"completed_at"`
	EndedAt      *string                  `json:"ended_at"`
}

// ThirdPartyParcel is a package with what proves its outcome.
type ThirdPartyParcel struct {
	order.ThirdPartyPackage
	Proofs []string `json:"proof_files"`
}

// showAssignment shows an assignment whose order may be gone.
func showAssignment(v cloud.View, a cloud.ThirdPartyAssignment) (ThirdPartyBody, error) {
	o, err := v.Order(a.BusinessID, a.OrderID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return ThirdPartyBody{}, err
	}
	return showWithOrder(v, a, o)
}

func showWithOrder(v cloud.View, a cloud.ThirdPartyAssignment, o cloud.Order) (b ThirdPartyBody, err error) {
	business, err := v.Business(a.BusinessID)
	if err != nil {
		return b, err
	}
	p, err := v.Provider(a.ProviderID)
	if err != nil {
		return b, err
	}
	d, l := order.NewThirdPartyData(a, o, business), business.Location()
	at := func(t time.Time) *string { return cloud.Stamp(t, l) }
	b = ThirdPartyBody{Number: a.Number, Provider: order.ThirdPartyProvider{ID: p.ID, Code: p.Code, Name: p.Name}, Order: d.Order, Numbers: d.Numbers, Status: a.Status, Reason: d.Reason,
		EndNote: cloud.OrNull(a.EndNote), Service: cloud.OrNull(a.Service), Packages: []ThirdPartyParcel{}, Legs: d.Legs, Pickup: d.Pickup, Dropoff: d.Dropoff, Note: d.Note,
		CreatedAt: at(a.CreatedAt), AcceptedAt: at(a.AcceptedAt), HandedOverAt: at(a.HandedOverAt), CompletedAt: at(a.CompletedAt), EndedAt: at(a.EndedAt)}
	for i, x := range d.Packages {
		b.Packages = append(b.Packages, ThirdPartyParcel{x, order.OrEmpty(a.Packages[i].Proofs)})
	}
	return b, nil
}
