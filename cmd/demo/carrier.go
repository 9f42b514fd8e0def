package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const assignments = "/api/v1/third-party-delivery/assignments"

// carrierPath is where the delivery company receives events of orders.
const carrierPath = "/carrier"

// openCarrier sets where the company gets events of the orders that it carries. The
// same company fills lockers, and has another address and secret for that.
func (s *stage) openCarrier(ctx context.Context) error {
	var out struct {
		Secret string `json:"secret"`
	}
	err := s.api.call(ctx, http.MethodPut, s.api.base+"/api/v1/third-party-delivery/webhook-endpoint",
		map[string]any{"kind": "third_party_delivery", "url": s.receiver.at(carrierPath)}, &out)
	if err != nil {
		return fmt.Errorf("set the company's webhooks: %w", err)
	}
	s.receiver.secret(carrierPath, out.Secret)
	return nil
}

// carry has the company bring an order. It knows of it what its webhooks say.
func (s script) carry(ctx context.Context) error {
	made, err := s.tool(ctx, "create_order", someOrder())
	if err != nil {
		return err
	}
	admin := s.admin()
	one := func(method, path string, in any) (a assignment, err error) {
		var out struct {
			Assignment assignment `json:"assignment"`
		}
		err = admin.call(ctx, method, admin.base+assignments+path, in, &out)
		return out.Assignment, err
	}
	a, err := one(http.MethodPost, "", map[string]any{"order_id": made["order_id"], "provider_id": s.box.ProviderCaller.Provider.ID, "service_code": "same_day"})
	if err != nil {
		return err
	}
	s.logStory("clerk", "gives the order %v to %s as %s", made["tracking_number"], s.box.ProviderCaller.Provider.Name, a.Number)
	is := func(what string, ok func(a assignment) bool) error {
		return s.awaits(ctx, what, time.Minute, func() bool {
			a, err := one(http.MethodGet, "/"+a.Number, nil)
			return err == nil && ok(a)
		})
	}
	if err := is("the company's own order", func(a assignment) bool { return a.Accepted != nil && len(a.Legs) == 1 }); err != nil {
		return err
	}
	if _, err := one(http.MethodPost, "/"+a.Number+"/hand-over", map[string]any{}); err != nil {
		return err
	}
	s.logStory("clerk", "hands it over; see who has it at http://%s/track/%v, which SWP-%s finds too", s.http, made["tracking_number"], a.Number)
	return is("the order brought by the company", func(a assignment) bool { return a.Status == "completed" })
}

// assignment is an order that the company carries.
type assignment struct {
	Number   string   `json:"assignment_number"`
	Status   string   `json:"status"`
	Accepted *string  `json:"accepted_at"`
	Packages []string `json:"package_tracking_numbers"`
	Legs     []struct {
		ID int `json:"leg_id"`
	} `json:"legs"`
}

// company does what is to be done when it receives an event.
func (s *stage) company(event string, a assignment) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	post := func(path string, in any) error {
		return s.api.call(ctx, http.MethodPost, s.api.base+assignments+"/"+a.Number+path, in, nil)
	}
	var err error
	switch event {
	case "third_party_delivery.created":
		if err = post("/accept", nil); err == nil {
			err = post("/legs", map[string]any{"external_order_id": "SW-" + a.Number, "external_tracking_number": "SWP-" + a.Number})
		}
	case "third_party_delivery.packages_handed_over":
		var packages []any
		for _, number := range a.Packages {
			packages = append(packages, map[string]any{"tracking_number": number, "outcome": "delivered"})
		}
		err = post("/outcomes", map[string]any{"packages": packages})
	}
	if err != nil {
		s.logStory("company", "%s of %s: %v", event, a.Number, err)
	}
}
