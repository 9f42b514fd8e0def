package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
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
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "third_party.me",
			Summary:     "Get the calling provider",
			Description: "The provider behind the token, with its services and limits per minute.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/me",
			Types:       providers,
		}, c.partnerMe, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.lockers.list",
			Summary:     "List lockers",
			Description: "Lockers that the provider may use and that take deliveries, with their free compartments by size. With latitude and longitude those within radius_km come, the nearest first.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/lockers",
			Types:       providers,
			Example:     `{"latitude":43.6446,"longitude":-79.3849,"radius_km":5,"size":"M"}`,
		}, l.ListLockers, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.lockers.find",
			Summary:     "Get a locker with its compartments",
			Description: "The locker with its shelves and compartments for pickup, and which of them are free; nothing of what lies inside.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/lockers/{device_id}",
			Types:       providers,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_NOT_SHARED"},
			Example:     `{"device_id":88}`,
		}, l.FindLocker, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.lockers.availability",
			Summary:     "Get the free compartments of a locker",
			Description: "How many compartments are free now, by size. A delivery reserves one when it is created.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/lockers/{device_id}/availability",
			Types:       providers,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_NOT_SHARED"},
			Example:     `{"device_id":88,"size":"M"}`,
		}, l.ShowAvailability, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.create",
			Summary:     "Create a locker delivery",
			Description: "Codes are drawn, compartments reserved, and the cabinet learns both, so that the courier can deposit while the cabinet is offline. Repeating a reference_number with the same content answers 200 with the delivery that exists.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Also:        []int{http.StatusCreated},
			Idempotent:  true,
			Secret:      true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED", "NO_COMPARTMENT", "PARCEL_TOO_LARGE", "DUPLICATE_REFERENCE", "DEVICE_NOT_SHARED", "LIVEMODE_NOT_ALLOWED"},
			Example:     `{"reference_number":"SWP-REF-88","device_id":88,"packages":[{"tracking_number":"SWP100200300","size":"M","weight":2.4}],"recipient":{"name":"Jane Smith","phone":"+14165550123"}}`,
		}, l.Create, created),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.list",
			Summary:     "List locker deliveries",
			Description: "A part of the provider's deliveries with the codes that are live now, newest first: by state, cabinet, reference_number, the tracking_number of a package, and the time of their creation.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/deliveries",
			Types:       providers,
			Secret:      true,
			Example:     `{"status":"delivered","device_id":88}`,
		}, l.ListDeliveries, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.find",
			Summary:     "Get a locker delivery with its codes",
			Description: "The delivery with its packages, compartments and the codes that are live now. id is the delivery_id, or ref: and the provider's own reference.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}",
			Types:       providers,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"id":"64021"}`,
		}, of(l.Find), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.edit",
			Summary:     "Update a locker delivery",
			Description: "Changes courier, recipient, deadline or metadata; members that are left out stay. The recipient is fixed once parcels were collected, the deadline once they were deposited.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPatch,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"ref:SWP-REF-88","recipient":{"name":"Jane Smith","phone":"+14165550123"}}`,
		}, l.Edit, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.cancel",
			Summary:     "Cancel a locker delivery",
			Description: "Codes die and compartments are released. While doors of the delivery are open the cabinet has to answer first.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/cancel",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_OFFLINE"},
			Example:     `{"id":"ref:SWP-REF-88","reason":"The sender cancelled the order"}`,
		}, l.Cancel, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.add_package",
			Summary:     "Add a package to a locker delivery",
			Description: "Only before any door has opened for the delivery. Another compartment is reserved when the package needs one.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/packages",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"ref:SWP-REF-88","tracking_number":"SWP100200301"}`,
		}, l.AddPackage, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.remove_package",
			Summary:     "Remove a package from a locker delivery",
			Description: "Only before any door has opened for the delivery. The last package stays: cancel the delivery instead.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodDelete,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/packages/{tracking_number}",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "PACKAGE_NOT_IN_DELIVERY"},
			Example:     `{"id":"ref:SWP-REF-88","tracking_number":"SWP100200300"}`,
		}, l.RemovePackage, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.rotate_delivery_code",
			Summary:     "Rotate the delivery code",
			Description: "The courier's code before is dead at the cabinet as soon as it has the new list.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/delivery-code/rotate",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"ref:SWP-REF-88","reason":"security"}`,
		}, l.RotateDeliveryCode, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.open_doors",
			Summary:     "Open doors for a deposit and wait for the cabinet",
			Description: "Opens the reserved compartments from afar, or those named: with fewer compartments than packages the last packages share the last one. The answer is 200 with what the cabinet said, or 202 after wait_seconds while it has not answered yet. Repeated during an opening it shows that opening and opens nothing again.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/open-doors",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Also:        []int{http.StatusAccepted},
			Idempotent:  true,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_OFFLINE", "DEVICE_DISABLED", "NO_COMPARTMENT", "PARCEL_TOO_LARGE", "GRID_NOT_FREE", "DEVICE_TIMEOUT"},
			Example:     `{"id":"ref:SWP-REF-88","wait_seconds":0}`,
		}, opening(c, func(in locker.OpenInput) locker.DeliveryKey { return in.Delivery }, l.OpenDoors), orAccepted(func(out locker.OpenOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.courier_qr",
			Summary:     "Create a signed QR code for the courier",
			Description: "For a cabinet without a network, also one that has not heard of the delivery: its scanner reads the QR code, and the reserved compartments open once for the deposit. It works offline until it expires, even if the delivery is cancelled or its code rotated meanwhile; a cabinet that the change has reached refuses it. So keep its life short. Where the cabinet does not have the pickup code yet, the recipient can collect once it is connected again.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/courier-qr",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      courierQRErrors,
			Example:     `{"id":"ref:SWP-REF-88","hours":2}`,
		}, l.IssueCourierQR, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.doors",
			Summary:     "Get the doors of the current opening",
			Description: "The doors of the last opening as they are now. While the cabinet is offline the opening stays as it was last seen.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/doors",
			Types:       providers,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"id":"64021"}`,
		}, of(l.Doors), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.reassign",
			Summary:     "Reassign a delivery to another compartment",
			Description: "Opens other compartments in place of those the delivery has, by size or by grid_id. The old ones are released at once, or when the cabinet has ended the opening on them.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/reassign",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Also:        []int{http.StatusAccepted},
			Idempotent:  true,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_OFFLINE", "DEVICE_DISABLED", "NO_COMPARTMENT", "PARCEL_TOO_LARGE", "GRID_NOT_FREE", "DEVICE_TIMEOUT"},
			Example:     `{"id":"ref:SWP-REF-88","size":"L"}`,
		}, opening(c, func(in locker.ReassignInput) locker.DeliveryKey { return in.Delivery }, l.Reassign), orAccepted(func(out locker.OpenOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.confirm",
			Summary:     "Confirm a deposit that the doors did not prove",
			Description: "Settles a deposit that the doors did not prove, and makes the pickup code live. Packages that the list leaves out have failed; no list means all of them.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/confirm",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "PACKAGE_NOT_IN_DELIVERY", "DEVICE_DISABLED"},
			Example:     `{"id":"ref:SWP-REF-88"}`,
		}, l.Confirm, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.fail",
			Summary:     "Report packages that could not be delivered",
			Description: "Packages that the list leaves out are not concerned; no list means all of them. With none left the delivery has failed, and its compartments are released. In a correction it reports what the courier took back, while other packages stay.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/fail",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"ref:SWP-REF-88","failure_code":"OTHER","note":"The courier found the lobby closed"}`,
		}, l.Fail, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.retrieve",
			Summary:     "Open doors for a courier who takes a delivery back",
			Description: "Opens the compartments that hold a deposited delivery. Nothing else changes until the retrieval is confirmed: the delivery waits, and the recipient's code goes on working. The answer is 200 with what the cabinet said, or 202 after wait_seconds while it has not answered yet.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/retrieve",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Also:        []int{http.StatusAccepted},
			Idempotent:  true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_OFFLINE", "DEVICE_TIMEOUT"},
			Example:     `{"id":"64021","reason":"recall","courier":{"id":"C-20","name":"Ana"}}`,
		}, opening(c, func(in locker.RetrieveInput) locker.DeliveryKey { return in.Delivery }, l.Retrieve), orAccepted(func(out locker.RetrieveOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.confirm_retrieval",
			Summary:     "Confirm that a courier took packages back",
			Description: "Ends the packages that lay behind the doors which the retrieval opened, or those that the list names, once the doors are closed. Their compartments are free again, and the cabinet forgets them. With none left the delivery is picked up by the courier, and its codes stop working.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/retrieve/confirm",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "PACKAGE_NOT_IN_DELIVERY"},
			Example:     `{"id":"64021","packages":["SW-PK-1"]}`,
		}, l.RetrieveConfirm, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.correct",
			Summary:     "Open a deposit again for a correction",
			Description: "Opens a deposit again within the correction window, for instance after a parcel went into the wrong compartment. The pickup code does not work meanwhile; closing the doors confirms the deposit again.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/correction",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Also:        []int{http.StatusAccepted},
			Idempotent:  true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "CORRECTION_WINDOW_CLOSED", "CORRECTION_LIMIT", "DEVICE_OFFLINE", "DEVICE_TIMEOUT"},
			Example:     `{"id":"64021","reason":"Wrong parcel"}`,
		}, opening(c, func(in locker.CorrectInput) locker.DeliveryKey { return in.Delivery }, l.Correct), orAccepted(func(out locker.CorrectOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.pickup",
			Summary:     "Get the pickup of a delivery",
			Description: "Packages with their times of collection, and the end of the collection period.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/pickup",
			Types:       providers,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"id":"64021"}`,
		}, of(l.Pickup), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.events",
			Summary:     "List the events of a locker delivery",
			Description: "What happened to the delivery, oldest first, with the data that webhooks carry, whether or not an endpoint received it: the 200 newest, for as long as the log of webhooks is kept. Codes are in it; one that was replaced since opens nothing once the cabinet has the new list.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/events",
			Types:       providers,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"id":"64021"}`,
		}, of(l.ListDeliveryEvents), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.rotate_pickup_code",
			Summary:     "Rotate the pickup code",
			Description: "The recipient's code before is dead at the cabinet as soon as it has the new list. The new code is in the answer.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/pickup-code/rotate",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021","reason":"security"}`,
		}, l.RotatePickupCode, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.resend_delivery_code",
			Summary:     "Send the delivery code to the courier",
			Description: "The courier of a delivery that was not brought yet gets its code by SMS, at the courier's telephone number. At most one a minute for a delivery. Couriers have no email address.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/delivery-code/resend",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "CHANNEL_NOT_CONFIGURED"},
			Example:     `{"id":"64021","channel":"sms"}`,
		}, c.resending("delivery", l.ResendDeliveryCode), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.resend_pickup_code",
			Summary:     "Send the pickup code again",
			Description: "The person who collects a delivery that waits, the recipient or the one named in the recipient's place, gets the code once more. At most one a minute for a delivery.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/pickup-code/resend",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "CHANNEL_NOT_CONFIGURED"},
			Example:     `{"id":"64021","channel":"email"}`,
		}, c.resending("pickup", l.ResendPickupCode), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.hand_over",
			Summary:     "Hand the pickup over to another person",
			Description: "A handover code takes the place of the recipient's pickup code, which is dead at the cabinet as soon as it has the new list. The code is in the answer and in the event, and goes to the telephone number by SMS where the deployment has a gateway; a second handover takes the place of the first.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/handover",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021","name":"Sam Smith","phone":"+14165550199"}`,
		}, l.HandOver, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.take_back",
			Summary:     "Take a handover of the pickup back",
			Description: "The handover code dies, and the recipient has a new pickup code, which is in the answer and in the event.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodDelete,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/handover",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021"}`,
		}, l.TakeBack, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.deliveries.extend",
			Summary:     "Extend the collection period",
			Description: "Moves the end of the collection period by 1 to 168 hours. An overdue delivery counts from now and can be collected again.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/deliveries/{id}/extend",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021","hours":24}`,
		}, l.Extend, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_endpoint.find",
			Summary:     "Get the webhook endpoint",
			Description: "The address that the provider's events go to, with its filter and health. kind chooses between the endpoint for locker events and that for deliveries.",
			Tag:         "Webhooks",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/webhook-endpoint",
			Types:       providers,
			Errors:      []string{"WEBHOOK_ENDPOINT_NOT_FOUND"},
		}, r.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_endpoint.save",
			Summary:     "Save the webhook endpoint",
			Description: "Members that are left out stay. The first address comes with a secret, shown once. Saving resumes an endpoint that was paused.",
			Tag:         "Webhooks",
			Method:      http.MethodPut,
			Path:        "/api/v1/third-party-delivery/webhook-endpoint",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Example:     `{"url":"https://hooks.example.com/postern"}`,
		}, r.Save, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_endpoint.rotate_secret",
			Summary:     "Rotate the signing secret",
			Description: "Webhooks carry signatures of both secrets for overlap_hours. The new secret is in this answer and nowhere else.",
			Tag:         "Webhooks",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/webhook-endpoint/secret",
			Types:       providers,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"WEBHOOK_ENDPOINT_NOT_FOUND"},
			Example:     `{"overlap_hours":24}`,
		}, r.RotateSecret, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_endpoint.test",
			Summary:     "Test the webhook endpoint with a mock event",
			Description: "Sends one signed event with made-up content, marked as a test, and shows what the receiver answered.",
			Tag:         "Webhooks",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/webhook-endpoint/test",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Group:       catalog.Replay,
			Errors:      []string{"WEBHOOK_ENDPOINT_NOT_FOUND"},
			Example:     `{"event":"locker_delivery.delivered"}`,
		}, r.TestEndpoint, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_deliveries.list",
			Summary:     "List the provider's webhook deliveries",
			Description: "Newest first, with the outcome of each; filters by event, status, reference and time.",
			Tag:         "Webhooks",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/webhook-deliveries",
			Types:       providers,
		}, r.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_deliveries.find",
			Summary:     "Get one of the provider's webhook deliveries",
			Description: "The body as it was sent, and every attempt with the receiver's answer.",
			Tag:         "Webhooks",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/webhook-deliveries/{id}",
			Types:       providers,
			Errors:      []string{"WEBHOOK_DELIVERY_NOT_FOUND"},
			Example:     `{"id":9001}`,
		}, r.FindDelivery, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.webhook_deliveries.redeliver",
			Summary:     "Replay one of the provider's webhook deliveries",
			Description: "Sends the same bytes under the same event id once more, as a delivery of its own.",
			Tag:         "Webhooks",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/webhook-deliveries/{id}/redeliver",
			Types:       providers,
			Risk:        catalog.RiskMedium,
			Group:       catalog.Replay,
			Idempotent:  true, // a repeat would send it twice
			Errors:      []string{"WEBHOOK_DELIVERY_NOT_FOUND"},
			Example:     `{"id":9001}`,
		}, r.Redeliver, nil),
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

// orAccepted answers 202 while the outcome is not known.
func orAccepted[Out any](pending func(Out) bool) func(Out) catalog.Answer {
	return func(out Out) catalog.Answer {
		if pending(out) {
			return catalog.Answer{Status: http.StatusAccepted, Body: out}
		}
		return catalog.Answer{Body: out}
	}
}

// count counts a call about a delivery under a name that the delivery gives: so many a
// minute. giveBack undoes it.
func (c Config) count(ctx context.Context, caller cloud.Caller, key locker.DeliveryKey, perMinute int, name func(locker.DeliveryBody) string) (giveBack func(), err error) {
	found, err := c.Lockers.Find(ctx, caller, key)
	if err != nil {
		return nil, err
	}
	bucket := name(found.Delivery)
	if st := c.Pipeline.Take(bucket, perMinute); !st.OK {
		return nil, &catalog.Limited{State: st}
	}
	return func() { c.Pipeline.Give(bucket) }, nil
}

// takeDoors counts an opening of a delivery's cabinet.
func (c Config) takeDoors(ctx context.Context, caller cloud.Caller, key locker.DeliveryKey) error {
	_, err := c.count(ctx, caller, key, c.Pipeline.Limits().Doors, func(d locker.DeliveryBody) string { return "doors/" + strconv.FormatInt(int64(d.DeviceID), 10) })
	return err
}

// resending is an operation that sends a code again, once a minute for a delivery and kind: a
// refused call sends nothing and does not count.
func (c Config) resending(kind string, send func(context.Context, cloud.Caller, locker.ResendInput) (locker.ResendOutput, error)) func(context.Context, cloud.Caller, locker.ResendInput) (locker.ResendOutput, error) {
	return func(ctx context.Context, caller cloud.Caller, in locker.ResendInput) (out locker.ResendOutput, err error) {
		giveBack, err := c.count(ctx, caller, in.Delivery, 1, func(d locker.DeliveryBody) string {
			return "resend/" + kind + "/" + strconv.FormatInt(int64(d.DeliveryID), 10)
		})
		if err != nil {
			return out, err
		}
		if out, err = send(ctx, caller, in); err != nil {
			giveBack()
		}
		return out, err
	}
}

// opening is an operation that opens doors of a delivery's cabinet, counted.
func opening[In, Out any](c Config, of func(In) locker.DeliveryKey, open func(context.Context, cloud.Caller, In) (Out, error)) func(context.Context, cloud.Caller, In) (Out, error) {
	return func(ctx context.Context, caller cloud.Caller, in In) (out Out, err error) {
		if err := c.takeDoors(ctx, caller, of(in)); err != nil {
			return out, err
		}
		return open(ctx, caller, in)
	}
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
