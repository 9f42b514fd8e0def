package order

import (
	"encoding/json"

	"github.com/postern-io/postern/cloud"
)

// Events of deliveries that third parties make.
const (
	eventThirdCreated    = "third_party_delivery.created"
	eventThirdHandedOver = "third_party_delivery.packages_handed_over"
	eventThirdCancelled  = "third_party_delivery.cancelled"
	eventThirdPartial    = "third_party_delivery.partial_delivery"

	thirdPrefix = "TPD-" // of their ids
)

// thirdBody is the body of an event to a third party. Nullable members are
// pointers and always present.
type thirdBody struct {
	EventID    string             `json:"event_id"`
	Event      string             `json:"event"`
	APIVersion string             `json:"api_version"`
	OccurredAt *string            `json:"occurred_at"`
	BusinessID cloud.BusinessID   `json:"business_id"`
	Provider   ThirdPartyProvider `json:"provider"`
	Data       thirdData          `json:"data"`
}

type thirdData struct {
	AssignmentNumber string                 `json:"assignment_number"`
	Order            thirdOrder             `json:"order"`
	Numbers          []string               `json:"package_tracking_numbers"`
	Status           cloud.ThirdPartyStatus `json:"status"`
	Reason           *string                `json:"reason"`
	Packages         []ThirdPartyPackage    `json:"packages"`
	Legs             []ThirdPartyLeg        `json:"legs"`
	Pickup           thirdPickup            `json:"pickup"`
	Dropoff          thirdDropoff           `json:"dropoff"`
	Note             *string                `json:"note"`
	Test             bool                   `json:"test"`
}

// thirdOrder names the order.
type thirdOrder struct {
	OrderID    cloud.OrderID `json:"order_id"`
	Ref        *string       `json:"order_ref"`
	Number     string        `json:"tracking_number"`
	ExternalID *string       `json:"external_order_id"`
}

// thirdPickup is where the packages wait.
type thirdPickup struct {
	Name    string  `json:"name"`
	Address string  `json:"address"`
	ReadyAt *string `json:"ready_at"`
}

// thirdDropoff is where the packages go.
type thirdDropoff struct {
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

// thirdTest is the data of a sample as a test sends it: it says that it is one.
func thirdTest(sample []byte) json.RawMessage {
	var b thirdBody
	if err := json.Unmarshal(sample, &b); err != nil {
		panic("order: embedded samples: " + err.Error())
	}
	b.Data.Test = true
	data, _ := json.Marshal(b.Data) // plain fields always encode
	return data
}
