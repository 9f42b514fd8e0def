package api

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
)

type byDevice struct {
	ID cloud.DeviceID `path:"id"`
}

// cabinets are the operations that let cabinets enrol. They show a token: no tool is
// behind them, no approval waits for them, and they take no Idempotency-Key, because
// the kept answer would hold it.
func (c Config) cabinets() []catalog.Operation {
	return []catalog.Operation{catalog.Define(catalog.Operation{
		Name:        "smart_lockers.devices.create",
		Summary:     "Create a cabinet with a one-time enrolment token",
		Description: "The layout is one of three templates with 8, 12 or 24 compartments; a warehouse post (device_type scan_post) has no doors and no layout. The enrolment token is in this answer and nowhere else; it is good for one cabinet and one use.",
		Tag:         "Smart Locker",
		Method:      http.MethodPost,
		Path:        "/api/v1/smart-lockers/devices",
		Types:       staff,
		Scopes:      []string{"lockers:write"},
		Risk:        catalog.RiskHigh,
		Status:      http.StatusCreated,
		Secret:      true,
		Errors:      []string{"CABINET_LIMIT_REACHED"},
		GraphQL:     &catalog.GraphQL{Field: "smartLockerDeviceCreate", Type: "SmartLockerEnrolment", Input: true, Mutation: true},
		Example:     `{"device_name":"Pier 7","device_code":"PIER-7","address":"7 Quay Street, Toronto","layout":"medium"}`,
	}, c.Setup.AddCabinet, nil), catalog.Define(catalog.Operation{
		Name: "smart_lockers.devices.renew_token",
		When: []string{cloud.StatusOnline, cloud.StatusOffline, cloud.StatusMaintenance, cloud.StatusDisabled},
		Offered: func(_ context.Context, _ cloud.Caller, cabinet map[string]any) bool {
			return cabinet["enrolled_at"] == nil || cabinet["awaits_hardware"] == true
		},
		Summary:     "Create another enrolment token for a cabinet",
		Description: "For a cabinet that never enrolled, whose hardware was replaced, or that was reported as stolen: with it the cabinet, or new hardware in its place, enrols and is in use again. Parcels that staff find inside are theirs to settle. Earlier tokens stay good until they end or one of them is used.",
		Tag:         "Smart Locker",
		Method:      http.MethodPost,
		Path:        "/api/v1/smart-lockers/devices/{id}/enrolment-token",
		Types:       staff,
		Scopes:      []string{"lockers:write"},
		Risk:        catalog.RiskHigh,
		Status:      http.StatusCreated,
		Secret:      true,
		Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_ENROLLED", "DEVICE_DISABLED"},
		GraphQL:     &catalog.GraphQL{Field: "smartLockerDeviceRenewToken", Type: "SmartLockerEnrolment", Mutation: true},
		Example:     `{"id":88}`,
	}, c.Setup.RenewToken, nil)}
}

// hasDoors reports whether a device has doors: a warehouse post has none.
func hasDoors(_ context.Context, _ cloud.Caller, cabinet map[string]any) bool {
	return cabinet["device_type"] != cloud.TypeScanPost
}

func (c Config) staff() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.list",
			Summary:     "List the cabinets of the business",
			Description: "Cabinets, kiosks, smart drops and warehouse posts with their state, filtered by state, type or a part of name, code or address. Retired ones are listed on request.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/devices",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Example:     `{"keyword":"quay","sort":"device_name"}`,
			Noun: &catalog.Noun{
				Name: "cabinet", Path: "cabinets", Area: "lockers", Icon: "cabinet", Key: "c",
				Live: []string{"Devices", "Sessions", "Doors", "Compartments", "Shelves", "DeviceFaults"},
				ID:   "device_id", Refs: []string{"device_id"}, Named: true, Title: []string{"device_name", "device_code"}, State: "status", States: "device",
				Columns: []string{"device_name", "status", "grid_counts", "address", "device_code", "last_seen_at"},
				Verbs: []string{"smart_lockers.devices.open", "smart_lockers.devices.opening_qr", "smart_lockers.devices.test_channel", "smart_lockers.devices.diagnose", "smart_lockers.devices.command", "smart_lockers.devices.edit", "smart_lockers.devices.renew_token",
					"smart_lockers.devices.replace_hardware", "smart_lockers.devices.report_stolen", "smart_lockers.devices.retire", "smart_lockers.grids.block", "smart_lockers.grids.unblock", "smart_lockers.grids.clear"},
				Keys:    map[string]string{"smart_lockers.devices.open": "o", "smart_lockers.grids.block": "b", "smart_lockers.grids.unblock": "b", "smart_lockers.grids.clear": "b"},
				Related: []catalog.Relation{{Noun: "delivery", By: "device_id"}, {Noun: "cabinet_exception", By: "device_id"}, {Noun: "door_report", By: "id"}},
				Parts:   []catalog.Part{{Input: "grid_ids", Of: "grids", ID: "grid_id", Title: "door_name"}, {Input: "grid_id", Of: "grids", ID: "grid_id", Title: "door_name"}},
			},
		}, c.Lockers.ListDevices, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.edit",
			Summary:     "Update a cabinet",
			Description: "Members that are left out stay. Opening hours reach the cabinet as its next configuration. The device code can be changed until the cabinet enrols.",
			Tag:         "Smart Locker",
			Method:      http.MethodPatch,
			Path:        "/api/v1/smart-lockers/devices/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_CODE_FIXED", "DEVICE_DISABLED", "SITE_NOT_FOUND"},
			Example:     `{"id":88,"device_name":"Pier 7, hall","opening_hours":[{"day":1,"open":"08:00","close":"20:00"}],"indoor_guide":{"text":"Behind the lifts","photos":["https://files.example.com/lobby.jpg"]}}`,
		}, c.Lockers.EditDevice, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.set_layout",
			Summary:     "Save the layout of a cabinet",
			Description: "Describes all shelves and compartments; those left out are removed. Pickup numbers count by shelf, column and row. A compartment in use keeps its place, label and lock. The cabinet gets the layout as its next configuration and uses new compartments once it has applied it. A warehouse post has none.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/layout",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED", "LAYOUT_IN_USE", "LAYOUT_CHANGED"},
			Example:     layoutExample,
		}, c.Lockers.SetLayout, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.replace_hardware",
			Summary:     "Replace the hardware of a cabinet",
			Description: "Ends the secret, key, session and commands of the old hardware at once; deliveries and codes stay. Next, create an enrolment token and enrol the new hardware: it is given the codes of what lies inside.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/replace-hardware",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED"},
			Example:     `{"id":88,"reason":"The controller is broken"}`,
		}, c.Lockers.ReplaceHardware, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.retire",
			Summary:     "Retire a cabinet",
			Description: "Takes a cabinet out of use for good: its secret, key, session, commands and codes end, and no hardware enrols for it again. Deliveries on their way fail. With parcels inside it is refused unless leave_contents is true.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/retire",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED", "CABINET_NOT_EMPTY"},
			Example:     `{"id":88,"reason":"The lease has ended"}`,
		}, c.Lockers.Retire, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.door_reports",
			Summary:     "List the door history of a cabinet",
			Description: "Openings of the last 90 days, newest first: who had which doors opened and why, and when each door was seen open and closed. Doors opened by force are exceptions.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/devices/{id}/door-reports",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"DEVICE_NOT_FOUND"},
			Example:     `{"id":88}`,
			Noun: &catalog.Noun{
				Name: "door_report", Path: "door-reports",
				Live:  []string{"Openings"},
				Title: []string{"kind"}, State: "state", States: "opening",
				Columns: []string{"requested_at", "kind", "requested_by_name", "state", "reason", "ended_at"},
			},
		}, c.Lockers.ListDoorHistory, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.health",
			Summary:     "Get what a cabinet reported of its health",
			Description: "The newest health report of the cabinet: how full its store is, its link, its clock, its boards and temperatures; and the records that it could not deliver.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/devices/{id}/health",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"DEVICE_NOT_FOUND"},
			Example:     `{"id":88}`,
		}, c.Lockers.FindHealth, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.find",
			Summary:     "Get a cabinet with its compartments",
			Description: "The cabinet with its state, and its compartments with what the cloud believes lies in each.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/devices/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"DEVICE_NOT_FOUND"},
			Example:     `{"id":88}`,
		}, func(ctx context.Context, caller cloud.Caller, in byDevice) (locker.DeviceOutput, error) {
			return c.Lockers.FindDevice(ctx, caller, in.ID)
		}, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.open",
			Offered:     hasDoors,
			When:        []string{cloud.StatusOnline, cloud.StatusMaintenance},
			Summary:     "Open doors of a cabinet for staff",
			Description: "Opens compartments, whatever lies inside, and waits for the cabinet's answer: 200 with it, or 202 after wait_seconds without one. Say why, and confirm that a person stands there: an opened door cannot be undone. Deliveries inside stay as they are; who opened what and why is kept.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/open",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Also:        []int{http.StatusAccepted},
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "GRID_NOT_FOUND", "DEVICE_DISABLED", "DEVICE_OFFLINE", "DELIVERY_STATE_CONFLICT", "DEVICE_TIMEOUT"},
			Example:     `{"id":88,"grid_ids":[8801],"reason":"Clean a spill","attended":true,"wait_seconds":0}`,
		}, c.Lockers.OpenGrids, orAccepted(func(out locker.StaffOpenOutput) bool { return out.Pending })),
		catalog.Define(catalog.Operation{
			Name: "smart_lockers.devices.opening_qr",
			Offered: func(_ context.Context, _ cloud.Caller, cabinet map[string]any) bool {
				return cabinet["protocol"] == cloud.ProtocolMQTT && cabinet["device_type"] != cloud.TypeScanPost
			},
			Summary:     "Create a signed QR code that opens doors for staff",
			Description: "For a cabinet without a network: its scanner reads the QR code within 15 minutes, and up to 10 compartments open once, whatever lies inside. Say why: the door history keeps it with your name once the cabinet is connected again. Nothing calls the QR code back before it expires.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/opening-qr",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "GRID_NOT_FOUND", "DEVICE_DISABLED", "QR_NOT_SUPPORTED"},
			Example:     `{"id":88,"grid_ids":[8801],"reason":"The cabinet is offline"}`,
		}, c.Lockers.IssueOpeningQR, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.report_stolen",
			Summary:     "Report a cabinet as stolen",
			Description: "Ends its session, secret, key, commands and codes at once; nothing that it sends counts. Deliveries on their way fail, and parcels inside become exceptions. After a mistake, or when it is found, it enrols with another enrolment token, and codes are drawn anew.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/report-stolen",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED"},
			Example:     `{"id":88,"reason":"Police report 2026-1187"}`,
		}, c.Lockers.ReportStolen, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.grids.block",
			Offered:     hasDoors,
			Summary:     "Block a compartment",
			Description: "Takes an empty compartment out of use until staff unblock it. One with a delivery inside or on its way to it is refused, because its recipient could not collect.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/grids/{grid_id}/block",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "GRID_NOT_FOUND", "GRID_NOT_FREE"},
			Example:     `{"id":88,"grid_id":8802,"reason":"The hinge is bent"}`,
		}, c.Lockers.Block, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.grids.unblock",
			Offered:     hasDoors,
			Summary:     "Unblock a compartment",
			Description: "The compartment can be reserved again. Say why it is in order: the reason is kept.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/grids/{grid_id}/unblock",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "GRID_NOT_FOUND"},
			Example:     `{"id":88,"grid_id":8809,"reason":"Hinge repaired"}`,
		}, c.Lockers.Unblock, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.grids.clear",
			Offered:     hasDoors,
			Summary:     "Clear a compartment",
			Description: "Declares a compartment empty after a person has looked inside. A package that counts as inside is given up: its delivery fails when nothing else is left of it, its codes are dead, and doubts about the contents are resolved. A dry run names it. The cabinet gets a command, for 24 hours.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/grids/{grid_id}/clear",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "GRID_NOT_FOUND", "DEVICE_DISABLED", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":88,"grid_id":8801,"reason":"A technician found it empty"}`,
		}, c.Lockers.Clear, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.command",
			Summary:     "Send a command to a cabinet",
			Description: "The cabinet carries the command out when it is connected, and says what came of it. Commands that are not fetched in time expire.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Many:        500,
			Path:        "/api/v1/smart-lockers/devices/{id}/command",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Shows:       true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED", "RELEASE_NOT_FOUND", "UPDATE_NOT_POSSIBLE"},
			Example:     `{"id":88,"type":"reset_tries","reason":"A child played with the keypad"}`,
		}, c.Lockers.SendDeviceCommand, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.confirm",
			When:        states(cloud.DeliveryDoorsOpened, cloud.DeliveryCorrecting), // later it only adds photos
			Summary:     "Confirm a deposit that the cabinet could not verify",
			Description: "Staff settle a deposit that the doors did not prove, and make the pickup code live. The answer shows no codes.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/deliveries/{id}/confirm",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "PACKAGE_NOT_IN_DELIVERY", "GRID_NOT_FOUND", "DEVICE_DISABLED"},
			Example:     `{"id":"64021"}`,
		}, c.Lockers.Confirm, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.courier_qr",
			When:        states(cloud.DeliveryCreated, cloud.DeliveryDoorsOpened),
			Summary:     "Create a signed QR code for the courier of a delivery",
			Description: "As the partner's own: the scanner of a cabinet without a network reads it, and the reserved compartments open once for the deposit. It works offline until it expires, even if the delivery is cancelled meanwhile.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/deliveries/{id}/courier-qr",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      courierQRErrors,
			Example:     `{"id":"64022","hours":2}`,
		}, c.Lockers.IssueCourierQR, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.cancel",
			When:        states(cloud.DeliveryCreated, cloud.DeliveryDoorsOpened),
			Summary:     "Cancel a delivery before its deposit",
			Description: "Staff end a delivery that was not deposited; its partner is sent the event with your reason. With doors opened the cabinet has to answer first. The answer shows no codes.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Many:        1000,
			Path:        "/api/v1/smart-lockers/deliveries/{id}/cancel",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_OFFLINE", "DEVICE_TIMEOUT"},
			Example:     `{"id":"64022","reason":"The site is closed"}`,
		}, c.Lockers.CancelDelivery, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.expire",
			When:        states(cloud.DeliveryCreated, cloud.DeliveryDelivered),
			Summary:     "Mark a delivery as expired",
			Description: "Moves the deadline to now. A delivery that was not brought ends. One that waits for its recipient becomes overdue: the parcel stays in its compartment and its code works. The answer shows no codes.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Many:        1000,
			Path:        "/api/v1/smart-lockers/deliveries/{id}/expire",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021","reason":"The recipient asked to send it back"}`,
		}, c.Lockers.ExpireDelivery, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.hand_over",
			Summary:     "Hand the pickup of a delivery over to another person",
			Description: "For a recipient who asks for it. A handover code takes the place of the pickup code; its partner is sent the code with the event, the person named gets it by SMS where there is a gateway and a telephone number, and the answer shows none.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/deliveries/{id}/handover",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021","name":"Sam Smith","phone":"+14165550199"}`,
		}, c.Lockers.HandOverByStaff, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.take_back",
			Summary:     "Take a handover of a delivery back",
			Description: "The handover code dies, and the recipient has a new pickup code, which its partner is sent with the event. The answer shows no codes.",
			Tag:         "Smart Locker",
			Method:      http.MethodDelete,
			Path:        "/api/v1/smart-lockers/deliveries/{id}/handover",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Errors:      []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT"},
			Example:     `{"id":"64021"}`,
		}, c.Lockers.TakeBackByStaff, nil),
	}
}

// courierQRErrors are those of a courier's QR code, for partners and for staff alike.
var courierQRErrors = []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "DEVICE_DISABLED", "NO_COMPARTMENT", "QR_NOT_SUPPORTED", "QR_TOO_LARGE"}

const layoutExample = `{"id":88,"shelves":[{"shelf_code":"A","grids":[{"compartment_number":1,"column":1,"row":1,"size":"S"},{"compartment_number":2,"column":1,"row":2,"size":"M"},{"compartment_number":3,"column":2,"row":1,"size":"L","pickup_enabled":false}]}]}`

type enrolInput struct {
	DeviceCode string `json:"device_code" required:"true" max:"32"`
	Token      string `json:"token" required:"true" max:"256" doc:"One-time token, bound to the device code"`
	PublicKey  string `json:"public_key" max:"64" doc:"The device's own Ed25519 public key, 32 bytes in base64: from then on only what it signs is taken. Without it the device signs nothing."`
}

func (c Config) enrolment() []catalog.Operation {
	return []catalog.Operation{catalog.Define(catalog.Operation{
		Name:        "devices.enrol",
		Summary:     "Enrol a cabinet",
		Description: "The cabinet gives its one-time token and its own public key, and gets the credentials and keys that it talks to the cloud with. The answer is given once; a token that was used is dead.",
		Tag:         "Device Operations",
		Method:      http.MethodPost,
		Path:        "/api/v1/devices/enrol",
		Risk:        catalog.RiskHigh,
		NoToken:     true,
		Secret:      true,
		Errors:      []string{"TOKEN_INVALID"},
		Example:     `{"device_code":"PIER-7","token":"K7QM-2RXD-9FHT-4WZB"}`,
	}, c.enrol, nil)}
}

func (c Config) enrol(ctx context.Context, _ cloud.Caller, in enrolInput) (any, error) {
	fields := map[string][]string{}
	var key []byte
	if in.PublicKey != "" {
		var err error
		if key, err = base64.StdEncoding.DecodeString(in.PublicKey); err != nil || len(key) != ed25519.PublicKeySize {
			fields["public_key"] = []string{"The value must be an Ed25519 public key: 32 bytes in standard base64 with padding, 44 characters."}
		}
	}
	if len(fields) > 0 {
		return nil, &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: fields}
	}
	return c.Enrol(ctx, in.DeviceCode, in.Token, key)
}
