package api

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
)

type byDevice struct {
	ID cloud.DeviceID `path:"id"`
}

const devicesPath = "/api/v1/smart-lockers/devices"

// cabinets are the operations that let cabinets enrol. They show a token: no tool is
// behind them, no approval waits for them, and they take no Idempotency-Key, because
// the kept answer would hold it.
func (c Config) cabinets() []catalog.Operation {
	row := func(name, summary, path string, errors ...string) catalog.Operation {
		return catalog.Operation{Name: name, Summary: summary, Tag: "Smart Locker", Method: "POST", Path: devicesPath + path, Types: staff, Scopes: lockersWrite,
			Risk: catalog.RiskHigh, Secret: true, Status: 201, Errors: errors}
	}
	create := row("smart_lockers.devices.create", "Create a cabinet with a one-time enrolment token", "")
	create.GraphQL = &catalog.GraphQL{Field: "smartLockerDeviceCreate", Type: "SmartLockerEnrolment", Input: true, Mutation: true}
	create.Example = setup.CabinetInput{Name: "Pier 7", Code: "PIER-7", Address: "7 Quay Street, Toronto", Layout: "medium"}
	renew := row("smart_lockers.devices.renew_token", "Create another enrolment token for a cabinet that never enrolled", "/{id}/enrolment-token", "DEVICE_NOT_FOUND", "DEVICE_ENROLLED")
	renew.GraphQL = &catalog.GraphQL{Field: "smartLockerDeviceRenewToken", Type: "SmartLockerEnrolment", Mutation: true}
	return []catalog.Operation{catalog.Define(create, c.Setup.AddCabinet, nil), catalog.Define(renew, c.Setup.RenewToken, nil)}
}

func (c Config) staff() []catalog.Operation {
	const devices = devicesPath + "/{id}"
	return []catalog.Operation{
		catalog.Define(catalog.Operation{Name: "smart_lockers.devices.find", Summary: "Get a cabinet with its compartments", Tag: "Smart Locker", Method: "GET", Path: devices,
			Types: staff, Scopes: lockersRead, Errors: []string{"DEVICE_NOT_FOUND"}}, func(ctx context.Context, caller cloud.Caller, in byDevice) (locker.DeviceOutput, error) {
			return c.Lockers.FindDevice(ctx, caller, in.ID)
		}, nil),
		catalog.Define(catalog.Operation{Name: "smart_lockers.grids.unblock", Summary: "Unblock a compartment", Tag: "Smart Locker", Method: "POST", Path: devices + "/grids/{grid_id}/unblock",
			Types: staff, Scopes: lockersWrite, Risk: catalog.RiskMedium, Errors: []string{"DEVICE_NOT_FOUND", "GRID_NOT_FOUND"}}, c.Lockers.Unblock, nil),
		catalog.Define(catalog.Operation{Name: "smart_lockers.devices.command", Summary: "Send a command to a cabinet", Tag: "Smart Locker", Method: "POST", Path: devices + "/command",
			Types: staff, Scopes: lockersWrite, Risk: catalog.RiskMedium, Errors: []string{"DEVICE_NOT_FOUND", "DEVICE_DISABLED"}}, c.Lockers.SendDeviceCommand, nil),
		catalog.Define(catalog.Operation{Name: "smart_lockers.deliveries.confirm", Summary: "Confirm a deposit that the cabinet could not verify", Tag: "Smart Locker", Method: "POST", Path: "/api/v1/smart-lockers/deliveries/{id}/confirm",
			Types: staff, Scopes: lockersWrite, Risk: catalog.RiskMedium, Errors: []string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "PACKAGE_NOT_IN_DELIVERY", "GRID_NOT_FOUND"}}, c.Lockers.Confirm, nil),
	}
}

type enrolInput struct {
	DeviceCode string `json:"device_code" required:"true" max:"32"`
	Token      string `json:"token" required:"true" max:"256" doc:"One-time token, bound to the device code"`
	PublicKey  string `json:"public_key" max:"64" doc:"The device's own Ed25519 public key, 32 bytes in base64: from then on only what it signs is taken. Without it the device signs nothing."`
}

func (c Config) enrolment() []catalog.Operation {
	return []catalog.Operation{catalog.Define(catalog.Operation{Name: "devices.enrol", Summary: "Enrol a cabinet", Tag: "Device Operations", Method: "POST", Path: "/api/v1/devices/enrol",
		NoToken: true, Secret: true, Risk: catalog.RiskHigh, Errors: []string{"TOKEN_INVALID"}}, c.enrol, nil)}
}

func (c Config) enrol(ctx context.Context, _ cloud.Caller, in enrolInput) (any, error) {
	fields := map[string][]string{}
	if in.DeviceCode == "" || len(in.DeviceCode) > 32 {
		fields["device_code"] = []string{"The value is required."}
	}
	if in.Token == "" || len(in.Token) > 256 {
		fields["token"] = []string{"The value is required."}
	}
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
