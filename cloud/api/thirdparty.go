package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/order/thirdparty"
)

// thirdParties are the orders that delivery companies carry: given and taken back
// by the business, reported on by the company.
func (c Config) thirdParties() []catalog.Operation {
	o := thirdparty.New(c.Orders)
	const all, one = "/api/v1/third-party-delivery/assignments", "/api/v1/third-party-delivery/assignments/{assignment_number}"
	both := []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.ProviderType}
	row := func(name, summary, method, path string, types []cloud.AccountType, example any, errs ...string) catalog.Operation {
		r := catalog.Operation{Name: "third_party.assignments." + name, Summary: summary, Tag: "ThirdPartyDelivery", Method: method, Path: path, Types: types, Scopes: ordersRead,
			Example: example, Errors: errs}
		if method != http.MethodGet {
			r.Scopes, r.Risk = ordersWrite, catalog.RiskMedium
		}
		return r
	}
	const unknown, state, foreign = "ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "PACKAGE_NOT_IN_ASSIGNMENT"
	give := row("create", "Assign an order to a delivery provider", "POST", all, staff, thirdparty.ThirdPartyInput{OrderID: 120045, ProviderID: 17, Service: "same_day"},
		missing, status, "HELD_BY_THIRD_PARTY", "HELD_BY_CONTRACTOR", "ORDER_ON_ROUTE")
	give.Status, give.Idempotent = http.StatusCreated, true
	leg := row("set_leg", "Save a carrier leg of an assignment", "POST", one+"/legs", providers,
		thirdparty.LegInput{ExternalOrder: "SW-55120", ExternalNumber: "SWP100200300"}, unknown, state, foreign)
	leg.Idempotent = true // a repeat would be another leg
	back := row("cancel", "Cancel an assignment to a delivery provider", "POST", one+"/cancel", staff, thirdparty.CancelThirdPartyInput{Reason: cloud.ThirdPartyFallback}, unknown, state, status)
	back.Risk = catalog.RiskHigh
	return []catalog.Operation{
		catalog.Define(give, o.Assign, nil),
		catalog.Define(row("list", "List assignments to delivery providers", "GET", all, both, nil), o.List, nil),
		catalog.Define(row("find", "Get an assignment to a delivery provider", "GET", one, both, nil, unknown), o.Find, nil),
		catalog.Define(row("hand_over", "Record the hand-over of packages to a provider", "POST", one+"/hand-over", staff, thirdparty.HandOverInput{}, unknown, state, foreign, status), o.HandOver, nil),
		catalog.Define(back, o.Cancel, nil),
		catalog.Define(row("accept", "Accept an assignment", "POST", one+"/accept", providers, nil, unknown, state), o.Accept, nil),
		catalog.Define(row("reject", "Reject an assignment", "POST", one+"/reject", providers, thirdparty.RejectThirdPartyInput{Reason: "No van today"}, unknown, state), o.Reject, nil),
		catalog.Define(leg, o.SetLeg, nil),
		catalog.Define(row("report", "Report the outcome of packages", "POST", one+"/outcomes", providers,
			thirdparty.OutcomesInput{Packages: []thirdparty.OutcomeInput{{Number: "SR204518837-1", Outcome: "delivered"}, {Number: "SR204518837-2", Outcome: "failed", FailureCode: "damaged"}}},
			unknown, state, foreign), o.Report, nil),
	}
}
