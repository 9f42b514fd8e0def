package cloud

import "time"

// ThirdPartyAssignment is an order, or some of its packages, that a delivery
// company carries. Of the assignments of an order at most one is open.
type ThirdPartyAssignment struct {
	ID         ThirdPartyID        `json:"ID"`
	BusinessID BusinessID          `json:"BusinessID"`
	OrderID    OrderID             `json:"OrderID"`
	ProviderID ProviderID          `json:"ProviderID"` // who carries it
	Number     string              `json:"Number"`     // TPA-2026-000001, unique in the deployment
	Status     ThirdPartyStatus    `json:"Status"`
	Reason     string              `json:"Reason"`  // of a cancellation: one of the ThirdParty…
	EndNote    string              `json:"EndNote"` // in words
	Service    string              `json:"Service"` // of the company, as it calls it
	Note       string              `json:"Note"`    // for the company
	Own        string              `json:"Own"`     // external number that the order had before
	Packages   []ThirdPartyPackage `json:"Packages"`
	Legs       []ThirdPartyLeg     `json:"Legs"`
	By         AccountID           `json:"By"` // who made it

	CreatedAt    time.Time `json:"CreatedAt"`
	AcceptedAt   time.Time `json:"AcceptedAt"`
	HandedOverAt time.Time `json:"HandedOverAt"`
	CompletedAt  time.Time `json:"CompletedAt"`
	EndedAt      time.Time `json:"EndedAt"`
}

// Open reports whether the assignment has not ended.
func (a ThirdPartyAssignment) Open() bool {
	return a.Status == ThirdPartyCreated || a.Status == ThirdPartyHandedOver
}

// ThirdPartyStatus is where an assignment stands.
type ThirdPartyStatus string

// States of an assignment.
const (
	ThirdPartyCreated    ThirdPartyStatus = "created"
	ThirdPartyHandedOver ThirdPartyStatus = "handed_over"
	ThirdPartyCancelled  ThirdPartyStatus = "cancelled"
	ThirdPartyPartly     ThirdPartyStatus = "partially_delivered" // every package has an outcome, some were delivered
	ThirdPartyCompleted  ThirdPartyStatus = "completed"           // every package has an outcome, all or none were delivered
)

// Values are all of them.
func (ThirdPartyStatus) Values() []string {
	return []string{string(ThirdPartyCreated), string(ThirdPartyHandedOver), string(ThirdPartyCancelled), string(ThirdPartyPartly), string(ThirdPartyCompleted)}
}

// Why an assignment is cancelled.
const (
	ThirdPartyCalledOff  = "cancelled"
	ThirdPartyFallback   = "fallback_to_self_delivery"
	ThirdPartyReassigned = "reassigned" // another company gets it
)

// ThirdPartyPackage is a package of an order as the company has it.
type ThirdPartyPackage struct {
	ID         PackageID         `json:"ID"`
	Number     string            `json:"Number"`   // of the order's package
	External   string            `json:"External"` // the company's own
	Own        string            `json:"Own"`      // external number that the package had before
	Outcome    ThirdPartyOutcome `json:"Outcome"`
	Failure    string            `json:"Failure"` // what went wrong, as the company calls it
	OccurredAt time.Time         `json:"OccurredAt"`
	Proofs     []string          `json:"Proofs"` // addresses of pictures and papers
}

// ThirdPartyOutcome is what became of a package.
type ThirdPartyOutcome string

// Outcomes.
const (
	OutcomePending    ThirdPartyOutcome = "pending"
	OutcomeHandedOver ThirdPartyOutcome = "handed_over"
	OutcomeDelivered  ThirdPartyOutcome = "delivered"
	OutcomeFailed     ThirdPartyOutcome = "failed"
	OutcomeReturned   ThirdPartyOutcome = "returned"
	OutcomeCancelled  ThirdPartyOutcome = "cancelled"
)

// Values are all of them.
func (ThirdPartyOutcome) Values() []string {
	return []string{string(OutcomePending), string(OutcomeHandedOver), string(OutcomeDelivered), string(OutcomeFailed), string(OutcomeReturned), string(OutcomeCancelled)}
}

// Final reports whether the company is done with the package.
func (o ThirdPartyOutcome) Final() bool {
	return o == OutcomeDelivered || o == OutcomeFailed || o == OutcomeReturned
}

// ThirdPartyLeg is an order that the company made of an assignment in its own
// system, or at a carrier.
type ThirdPartyLeg struct {
	ID             int      `json:"ID"` // from 1, within the assignment
	CarrierCode    string   `json:"CarrierCode"`
	ExternalOrder  string   `json:"ExternalOrder"`
	ExternalNumber string   `json:"ExternalNumber"`
	LabelURL       string   `json:"LabelURL"`
	Status         string   `json:"Status"`
	Packages       []string `json:"Packages"` // numbers of the order's packages
}

// ThirdPartyQuery asks for a page of assignments, newest first. Zero fields do
// not filter.
type ThirdPartyQuery struct {
	BusinessID BusinessID // required
	ProviderID ProviderID
	OrderID    OrderID
	Status     ThirdPartyStatus
	Page       // its sort is the list's own
}

// ThirdPartyView reads the present of assignments to carriers.
type ThirdPartyView interface {
	ThirdParty(BusinessID, ThirdPartyID) (ThirdPartyAssignment, error)
	ThirdPartyByNumber(BusinessID, string) (ThirdPartyAssignment, error)
}

// ThirdPartyChanges are the changes of assignments to carriers.
type ThirdPartyChanges struct {
	ThirdParties []ThirdPartyAssignment // those that end before those that begin
}

func (s *ThirdPartyChanges) preview(e *effectList) {
	previewEach(e, "ThirdParties", s.ThirdParties, func(x ThirdPartyAssignment) {
		old, err := e.view.ThirdParty(x.BusinessID, x.ID)
		showChanged(e, "third_party", x.ID, "", x, old, err, ThirdPartyAssignment.members)
	})
}

// members are those that a preview shows.
func (a ThirdPartyAssignment) members() map[string]any { return map[string]any{"status": a.Status} }

// Conclusion is the status in which an assignment ends of which every package has an
// outcome.
func (a ThirdPartyAssignment) Conclusion() ThirdPartyStatus {
	delivered := 0
	for _, p := range a.Packages {
		if p.Outcome == OutcomeDelivered {
			delivered++
		}
	}
	if delivered > 0 && delivered < len(a.Packages) {
		return ThirdPartyPartly
	}
	return ThirdPartyCompleted
}
