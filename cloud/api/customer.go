package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
)

// recipientProof says by what a recipient is known, in operations about one parcel.
const recipientProof = "The proof of who asks is the key of the parcel's link in X-Tracking-Key, or the account of a customer with the recipient's mail address"

// senderProof says the same of the person who brings a parcel.
const senderProof = "The proof of who asks is the key of the sender's link in X-Tracking-Key, or the account of a customer with the sender's mail address; the key of a recipient's link is none"

// customers are the operations of recipients and senders, whose proof is the link of a parcel or the
// account of a customer. They take calls with a token and without one. Those about one
// parcel are Secret also where the answer shows no code: their input may have a link's key,
// which no approval and no document keeps.
func (c Config) customers() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "public.pickup_points",
			Summary:     "List pickup points",
			Description: "Lockers that a business shows to everybody, with their address, hours, indoor guide and sizes. With latitude and longitude those within radius_km come, the nearest first. For a customer of the business who is signed in, the preferred one is before all others on the first page, if the filters leave it in.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/public/pickup-points",
			Errors:      []string{"CLIENT_NOT_FOUND"},
			Example:     `{"client_code":"acme","latitude":43.6446,"longitude":-79.3849}`,
		}, c.Lockers.ListPickupPoints, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.list",
			Summary:     "List the parcels of a recipient that wait in lockers",
			Description: "For the recipient: where the parcel is, how long it waits, and the code that opens its doors. The proof is the key of the parcel's link in X-Tracking-Key, with its tracking_number, or the account of a customer who is signed in and whose verified mail address is the recipient's. Digits of a telephone number are no proof here.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/customer/lockers/parcels",
			Scopes:      []string{"lockers:read"},
			Secret:      true,
			Errors:      []string{"TRACKING_NOT_FOUND", "EMAIL_NOT_VERIFIED"},
			Example:     `{"tracking_number":"SWP100200300"}`,
		}, c.Lockers.ListParcels, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.open",
			Summary:     "Open the doors of a waiting parcel",
			Description: "For the recipient who stands before the locker. " + recipientProof + "; a position within 200 m, or the six characters on the locker's screen, is that of where. What is taken out is collected as with the code. The answer is 200 with what the locker said, or 202 after wait_seconds while it has not answered yet. At most six times a minute for a delivery.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/open",
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Also:        []int{http.StatusAccepted},
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "NOT_AT_LOCKER", "DEVICE_OFFLINE", "DEVICE_TIMEOUT"},
			Example:     `{"delivery_number":"LD-000064021","latitude":43.6447,"longitude":-79.3851}`,
		}, c.openParcel, orAccepted(func(out locker.ParcelOpenOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.hand_over",
			Summary:     "Hand a waiting parcel over to another person",
			Description: "The recipient names who collects. " + recipientProof + ". The answer has the code for that person; the code before is dead at the cabinet as soon as it has the new list.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/handover",
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"delivery_number":"LD-000064021","name":"Sam Smith","phone":"+14165550199"}`,
		}, c.Lockers.HandOverParcel, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.take_back",
			Summary:     "Take a waiting parcel back from another person",
			Description: "The handover code dies, and the answer has a new pickup code for the recipient. " + recipientProof + ".",
			Tag:         "Customer",
			Method:      http.MethodDelete,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/handover",
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.TakeBackParcel, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.find_return",
			Summary:     "Get the return of a collected parcel",
			Description: "For the recipient: where and until when the return can be brought, with the drop-off code and its QR code while it works, and how far it has come. " + recipientProof + ".",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/return",
			Scopes:      []string{"lockers:read"},
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.FindReturn, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.return",
			Summary:     "Return a collected parcel at its locker",
			Description: "The recipient brings back what was collected at most 14 days ago, where the business offers it (locker_returns in its settings). " + recipientProof + ". The answer has the drop-off code for the locker; a courier of the partner collects the parcel there. A delivery has one return: asked again, it is shown, with 200 in place of 201. One that was cancelled, has failed or was not brought in time makes room for another.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/return",
			Status:      http.StatusCreated,
			Also:        []int{http.StatusOK},
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "RETURN_NOT_OFFERED", "RETURN_WINDOW_CLOSED", "DEVICE_DISABLED", "NO_COMPARTMENT", "PARCEL_TOO_LARGE"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.ReturnParcel, func(out locker.ParcelReturnOutput) catalog.Answer {
			if out.Created {
				return catalog.Answer{Status: http.StatusCreated, Body: out}
			}
			return catalog.Answer{Status: http.StatusOK, Body: out}
		}),
		catalog.Define(catalog.Operation{
			Name:        "customer.dropoffs.find",
			Summary:     "Get a delivery that its sender brings",
			Description: "For the sender of a send or return: where and until when the parcel can be brought, with the drop-off code and its QR code while it works, and how far it has come. " + senderProof + ". Nothing of its recipient is shown.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/customer/lockers/dropoffs/{delivery_number}",
			Scopes:      []string{"lockers:read"},
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.FindDropoff, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.dropoffs.cancel",
			Summary:     "Cancel a delivery that its sender was to bring",
			Description: "The sender of a send or return cancels it before the parcel lies in the locker: the drop-off code stops working and the compartment is free again. " + senderProof + ". While the doors are open for it the locker has to answer first. Once the parcel was brought, and on every other end, the answer is 409 with the status.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/dropoffs/{delivery_number}/cancel",
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_OFFLINE", "DEVICE_TIMEOUT"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.CancelDropoff, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.preferred_locker.find",
			Summary:     "Get the preferred locker of a customer",
			Description: "The pickup point that the caller has chosen. While it is none, because it is out of service or no longer shown, preferred is null and unavailable_device_id names it. Partners are not shown it.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/customer/lockers/preferred",
			Types:       []cloud.AccountType{cloud.Customer},
			Scopes:      []string{"lockers:read"},
		}, c.Lockers.FindPreferred, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.preferred_locker.set",
			Summary:     "Set the preferred locker of a customer",
			Description: "One of the pickup points of the caller's business, or null for none. It is the first of the list of pickup points and changes no delivery: partners choose the locker, and are not shown it.",
			Tag:         "Customer",
			Method:      http.MethodPut,
			Path:        "/api/v1/customer/lockers/preferred",
			Types:       []cloud.AccountType{cloud.Customer},
			Scopes:      []string{"lockers:write"},
			Errors:      []string{"DEVICE_NOT_FOUND"},
			Example:     `{"device_id":88}`,
		}, c.Lockers.SetPreferred, nil),
	}
}

// parcelOpenings is how often a minute the recipient of a delivery opens its doors.
const parcelOpenings = 6

// openParcel opens doors for a recipient. It counts for the delivery, not for the cabinet,
// whose partners would else be kept out.
func (c Config) openParcel(ctx context.Context, caller cloud.Caller, in locker.ParcelOpenInput) (out locker.ParcelOpenOutput, err error) {
	id, err := c.Lockers.FindParcel(ctx, caller, in.Number, in.Key)
	if err != nil {
		return out, err
	}
	if st := c.Pipeline.Take("parcel/"+strconv.FormatInt(int64(id), 10), parcelOpenings); !st.OK {
		return out, &catalog.Limited{State: st}
	}
	return c.Lockers.OpenParcel(ctx, caller, in)
}
