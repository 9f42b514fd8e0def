package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
)

// byDelivery names a delivery in the path and nothing else: its id, or ref: and
// the partner's own reference.
type byDelivery struct {
	ID string `path:"id" doc:"delivery_id, or ref: and the partner's own reference"`
}

// of makes an operation on a delivery of a function of its key.
func of[Out any](fn func(context.Context, cloud.Caller, locker.DeliveryKey) (Out, error)) func(context.Context, cloud.Caller, byDelivery) (Out, error) {
	return func(ctx context.Context, c cloud.Caller, in byDelivery) (Out, error) {
		return fn(ctx, c, locker.DeliveryKey(in.ID))
	}
}

func (c Config) partner() []catalog.Operation {
	l, r := c.Lockers, c.Receivers
	// row has what all of a partner's operations have in common.
	row := func(name, summary, method, path string, also ...func(*catalog.Operation)) catalog.Operation {
		o := catalog.Operation{Name: "third_party." + name, Summary: summary, Tag: "ThirdPartyDelivery", Method: method, Path: "/api/v1/third-party-delivery" + path, Types: providers}
		if method != http.MethodGet {
			o.Risk = catalog.RiskMedium
		}
		for _, f := range also {
			f(&o)
		}
		return o
	}
	once := func(o *catalog.Operation) { o.Idempotent = true }
	// or is a good answer's other status.
	or := func(status int) func(*catalog.Operation) {
		return func(o *catalog.Operation) { o.Also = []int{status} }
	}
	secret := func(o *catalog.Operation) { o.Secret = true }
	risky := func(o *catalog.Operation) { o.Risk = catalog.RiskHigh }
	replay := func(o *catalog.Operation) { o.Group = catalog.Replay }
	hook := func(o *catalog.Operation) { o.Tag = "Webhooks" }
	errs := func(codes ...string) func(*catalog.Operation) {
		return func(o *catalog.Operation) { o.Errors = codes }
	}
	like := func(in any) func(*catalog.Operation) { return func(o *catalog.Operation) { o.Example = in } }
	unknown, state := "DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"
	opens := errs(unknown, state, "DEVICE_OFFLINE", "DEVICE_DISABLED", "NO_COMPARTMENT", "GRID_NOT_FREE", "DEVICE_TIMEOUT")
	return []catalog.Operation{
		catalog.Define(row("me", "Get the calling provider", "GET", "/me"), c.partnerMe, nil),
		catalog.Define(row("deliveries.create", "Create a locker delivery", "POST", "/deliveries", once, or(http.StatusCreated), secret,
			errs("DEVICE_NOT_FOUND", "DEVICE_DISABLED", "NO_COMPARTMENT", "PARCEL_TOO_LARGE", "DUPLICATE_REFERENCE", "DEVICE_NOT_SHARED", "LIVEMODE_NOT_ALLOWED"),
			like(locker.CreateInput{ReferenceNumber: "SWP-REF-88", DeviceID: 88, Packages: []locker.PackageInput{{TrackingNumber: "SWP100200300", Size: "M", Weight: 2.4}},
				Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}})), l.Create, created),
		catalog.Define(row("deliveries.find", "Get a locker delivery with its codes", "GET", "/deliveries/{id}", secret, errs(unknown)), of(l.Find), nil),
		catalog.Define(row("deliveries.edit", "Update a locker delivery", "PATCH", "/deliveries/{id}", secret, errs(unknown, state)), l.Edit, nil),
		catalog.Define(row("deliveries.cancel", "Cancel a locker delivery", "POST", "/deliveries/{id}/cancel", secret, risky, errs(unknown, state, "DEVICE_OFFLINE")), l.Cancel, nil),
		catalog.Define(row("deliveries.add_package", "Add a package to a locker delivery", "POST", "/deliveries/{id}/packages", secret, errs(unknown, state)), l.AddPackage, nil),
		catalog.Define(row("deliveries.remove_package", "Remove a package from a locker delivery", "DELETE", "/deliveries/{id}/packages/{tracking_number}", secret, errs(unknown, state, "PACKAGE_NOT_IN_DELIVERY")), l.RemovePackage, nil),
		catalog.Define(row("deliveries.rotate_delivery_code", "Rotate the delivery code", "POST", "/deliveries/{id}/delivery-code/rotate", secret, errs(unknown, state)), l.RotateDeliveryCode, nil),
		catalog.Define(row("deliveries.open_doors", "Open doors for a deposit and wait for the cabinet", "POST", "/deliveries/{id}/open-doors", once, or(http.StatusAccepted), secret, risky, opens), c.openDoors, openAnswer),
		catalog.Define(row("deliveries.doors", "Get the doors of the current opening", "GET", "/deliveries/{id}/doors", errs(unknown)), of(l.Doors), nil),
		catalog.Define(row("deliveries.reassign", "Reassign a delivery to another compartment", "POST", "/deliveries/{id}/reassign", once, or(http.StatusAccepted), secret, risky, opens), c.reassign, openAnswer),
		catalog.Define(row("deliveries.confirm", "Confirm a deposit that the doors did not prove", "POST", "/deliveries/{id}/confirm", secret, errs(unknown, state, "PACKAGE_NOT_IN_DELIVERY")), l.Confirm, nil),
		catalog.Define(row("deliveries.fail", "Report packages that could not be delivered", "POST", "/deliveries/{id}/fail", secret, errs(unknown, state)), l.Fail, nil),
		catalog.Define(row("deliveries.correct", "Open a deposit again for a correction", "POST", "/deliveries/{id}/correction", once, or(http.StatusAccepted), risky,
			errs(unknown, state, "CORRECTION_WINDOW_CLOSED", "CORRECTION_LIMIT", "DEVICE_OFFLINE", "DEVICE_TIMEOUT")), c.correct, correctAnswer),
		catalog.Define(row("deliveries.pickup", "Get the pickup of a delivery", "GET", "/deliveries/{id}/pickup", errs(unknown)), of(l.Pickup), nil),
		catalog.Define(row("deliveries.rotate_pickup_code", "Rotate the pickup code", "POST", "/deliveries/{id}/pickup-code/rotate", secret, risky, errs(unknown, state)), l.RotatePickupCode, nil),
		catalog.Define(row("deliveries.extend", "Extend the collection period", "POST", "/deliveries/{id}/extend", errs(unknown, state)), l.Extend, nil),
		catalog.Define(row("webhook_endpoint.find", "Get the webhook endpoint", "GET", "/webhook-endpoint", hook, errs("WEBHOOK_ENDPOINT_NOT_FOUND")), r.Find, nil),
		catalog.Define(row("webhook_endpoint.save", "Save the webhook endpoint", "PUT", "/webhook-endpoint", secret, hook), r.Save, nil),
		catalog.Define(row("webhook_endpoint.rotate_secret", "Rotate the signing secret", "POST", "/webhook-endpoint/secret", secret, risky, hook, errs("WEBHOOK_ENDPOINT_NOT_FOUND")), r.RotateSecret, nil),
		catalog.Define(row("webhook_endpoint.test", "Test the webhook endpoint with a mock event", "POST", "/webhook-endpoint/test", replay, hook, errs("WEBHOOK_ENDPOINT_NOT_FOUND"),
			like(webhook.MockInput{Event: locker.EventDelivered})), r.TestEndpoint, nil),
		catalog.Define(row("webhook_deliveries.list", "List the provider's webhook deliveries", "GET", "/webhook-deliveries", hook), r.List, nil),
		catalog.Define(row("webhook_deliveries.find", "Get one of the provider's webhook deliveries", "GET", "/webhook-deliveries/{id}", hook, errs("WEBHOOK_DELIVERY_NOT_FOUND")), r.FindDelivery, nil),
		catalog.Define(row("webhook_deliveries.redeliver", "Replay one of the provider's webhook deliveries", "POST", "/webhook-deliveries/{id}/redeliver", replay, hook, errs("WEBHOOK_DELIVERY_NOT_FOUND")), r.Redeliver, nil),
	}
}

// created answers 201 for a new delivery, 200 for one that the reference named
// already.
func created(out locker.DeliveryOutput) catalog.Answer {
	if out.Created {
		return catalog.Answer{Status: http.StatusCreated, Body: out}
	}
	return catalog.Answer{Body: out}
}

// openAnswer answers 202 while the outcome is not known.
func openAnswer(out locker.OpenOutput) catalog.Answer {
	if out.Pending {
		return catalog.Answer{Status: http.StatusAccepted, Body: out}
	}
	return catalog.Answer{Body: out}
}

func correctAnswer(out locker.CorrectOutput) catalog.Answer {
	if out.Pending {
		return catalog.Answer{Status: http.StatusAccepted, Body: out}
	}
	return catalog.Answer{Body: out}
}

// takeDoors counts an opening of a delivery's cabinet: so many a minute.
func (c Config) takeDoors(ctx context.Context, caller cloud.Caller, key locker.DeliveryKey) error {
	found, err := c.Lockers.Find(ctx, caller, key)
	if err != nil {
		return err
	}
	if st := c.Pipeline.Take("doors/"+strconv.FormatInt(int64(found.Delivery.DeviceID), 10), c.Pipeline.Limits().Doors); !st.OK {
		return &catalog.Limited{State: st}
	}
	return nil
}

func (c Config) openDoors(ctx context.Context, caller cloud.Caller, in locker.OpenInput) (locker.OpenOutput, error) {
	if err := c.takeDoors(ctx, caller, in.Delivery); err != nil {
		return locker.OpenOutput{}, err
	}
	return c.Lockers.OpenDoors(ctx, caller, in)
}

func (c Config) reassign(ctx context.Context, caller cloud.Caller, in locker.ReassignInput) (locker.OpenOutput, error) {
	if err := c.takeDoors(ctx, caller, in.Delivery); err != nil {
		return locker.OpenOutput{}, err
	}
	return c.Lockers.Reassign(ctx, caller, in)
}

func (c Config) correct(ctx context.Context, caller cloud.Caller, in locker.CorrectInput) (locker.CorrectOutput, error) {
	if err := c.takeDoors(ctx, caller, in.Delivery); err != nil {
		return locker.CorrectOutput{}, err
	}
	return c.Lockers.Correct(ctx, caller, in)
}

type partnerMeOutput struct {
	Result   bool         `json:"result"`
	Provider providerBody `json:"provider"`
}

type providerBody struct {
	ID              cloud.ProviderID `json:"id"`
	Code            string           `json:"code"`
	Name            string           `json:"name"`
	Status          string           `json:"status"`
	LivemodeAllowed bool             `json:"livemode_allowed"`
	Services        []string         `json:"services"`
	Limits          map[string]int   `json:"limits"`
}

func (c Config) partnerMe(_ context.Context, caller cloud.Caller, _ none) (partnerMeOutput, error) {
	p := caller.Provider
	services := p.Services
	if services == nil {
		services = []string{}
	}
	l := c.Pipeline.Limits()
	return partnerMeOutput{Result: true, Provider: providerBody{ID: p.ID, Code: p.Code, Name: p.Name, Status: "active", LivemodeAllowed: p.LivemodeAllowed,
		Services: services, Limits: map[string]int{"requests_per_minute": l.Authenticated, "door_openings_per_minute": l.Doors, "replays_per_minute": l.Replay}}}, nil
}
