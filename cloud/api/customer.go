package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
)

// customers are the operations of recipients, whose proof is the link of a parcel.
func (c Config) customers() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "public.pickup_points",
			Summary:     "List pickup points",
			Description: "Lockers that a business shows to everybody, with their address, hours, indoor guide and sizes. With latitude and longitude those within radius_km come, the nearest first.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/public/pickup-points",
			NoToken:     true,
			Errors:      []string{"CLIENT_NOT_FOUND"},
			Example:     `{"client_code":"acme","latitude":43.6446,"longitude":-79.3849}`,
		}, c.Lockers.ListPickupPoints, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.list",
			Summary:     "List the parcels of a link that wait in lockers",
			Description: "For the recipient, whose key of the parcel's link in X-Tracking-Key is the proof: where the parcel is, how long it waits, and the code that opens its doors. Digits of a telephone number are no proof here.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/customer/lockers/parcels",
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"TRACKING_NOT_FOUND"},
			Example:     `{"tracking_number":"SWP100200300"}`,
		}, c.Lockers.ListParcels, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.open",
			Summary:     "Open the doors of a waiting parcel",
			Description: "For the recipient who stands before the locker. The key of the recipient's link in X-Tracking-Key is the proof of who asks; a position within 200 m, or the six characters on the locker's screen, is that of where. What is taken out is collected as with the code. The answer is 200 with what the locker said, or 202 after wait_seconds while it has not answered yet. At most six times a minute for a delivery.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/open",
			NoToken:     true,
			Risk:        catalog.RiskHigh,
			Also:        []int{http.StatusAccepted},
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "NOT_AT_LOCKER", "DEVICE_OFFLINE", "DEVICE_TIMEOUT"},
			Example:     `{"delivery_number":"LD-000064021","latitude":43.6447,"longitude":-79.3851}`,
		}, c.openParcel, orAccepted(func(out locker.ParcelOpenOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.hand_over",
			Summary:     "Hand a waiting parcel over to another person",
			Description: "The recipient names who collects. The key of the recipient's link in X-Tracking-Key is the proof. The answer has the code for that person; the code before is dead at the cabinet as soon as it has the new list.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/handover",
			NoToken:     true,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"delivery_number":"LD-000064021","name":"Sam Smith","phone":"+14165550199"}`,
		}, c.Lockers.HandOverParcel, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.take_back",
			Summary:     "Take a waiting parcel back from another person",
			Description: "The handover code dies, and the answer has a new pickup code for the recipient. The key of the recipient's link in X-Tracking-Key is the proof.",
			Tag:         "Customer",
			Method:      http.MethodDelete,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/handover",
			NoToken:     true,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.TakeBackParcel, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.find_return",
			Summary:     "Get the return of a collected parcel",
			Description: "For the recipient, whose key of the parcel's link in X-Tracking-Key is the proof: where and until when the return can be brought, with the drop-off code and its QR code while it works, and how far it has come.",
			Tag:         "Customer",
			Method:      http.MethodGet,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/return",
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"delivery_number":"LD-000064021"}`,
		}, c.Lockers.FindReturn, nil),
		catalog.Define(catalog.Operation{
			Name:        "customer.parcels.return",
			Summary:     "Return a collected parcel at its locker",
			Description: "The recipient brings back what was collected at most 14 days ago, where the business offers it (locker_returns in its settings). The key of the parcel's link in X-Tracking-Key is the proof. The answer has the drop-off code for the locker; a courier of the partner collects the parcel there. A delivery has one return: asked again, it is shown, with 200 in place of 201. One that was cancelled, has failed or was not brought in time makes room for another.",
			Tag:         "Customer",
			Method:      http.MethodPost,
			Path:        "/api/v1/customer/lockers/parcels/{delivery_number}/return",
			Status:      http.StatusCreated,
			Also:        []int{http.StatusOK},
			NoToken:     true,
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
	}
}

// parcelOpenings is how often a minute the link of a delivery opens its doors.
const parcelOpenings = 6

// openParcel opens doors for a recipient. It counts for the delivery, not for the cabinet,
// whose partners would else be kept out.
func (c Config) openParcel(ctx context.Context, caller cloud.Caller, in locker.ParcelOpenInput) (out locker.ParcelOpenOutput, err error) {
	id, err := c.Lockers.HasLink(ctx, in.Number, in.Key)
	if err != nil {
		return out, err
	}
	if st := c.Pipeline.Take("parcel/"+strconv.FormatInt(int64(id), 10), parcelOpenings); !st.OK {
		return out, &catalog.Limited{State: st}
	}
	return c.Lockers.OpenParcel(ctx, caller, in)
}
