package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
)

// mocks are the operations of a provider's mock cabinet.
func (c Config) mocks() []catalog.Operation {
	m := c.Mocks
	errors := []string{"DEVICE_NOT_FOUND", "DEVICE_NOT_SHARED", "NOT_A_TEST_LOCKER", "DEVICE_OFFLINE"}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "third_party.mock.doors",
			Summary:     "Move a door of the mock locker",
			Description: "Closes, opens or jams a door of the provider's mock locker, and says what its sensor sees. Doors of a mock locker open by orders and codes, as those of a real one, and close by this alone; a deposit settles a moment after its doors are closed. done is the courier's at the screen, staff_confirm the operator's at the console.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/mock/lockers/{device_id}/doors",
			Types:       providers,
			Errors:      append([]string{"GRID_NOT_FOUND", "DELIVERY_STATE_CONFLICT"}, errors...),
			Example:     `{"device_id":91,"grid_id":9101,"action":"close","occupied":true}`,
		}, m.MoveDoor, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.mock.pickup",
			Summary:     "Enter a pickup code at the mock locker",
			Description: "The recipient of a delivery comes to the provider's mock locker, or a code is entered at it; the doors open. The parcels are collected when the doors are closed.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/mock/lockers/{device_id}/pickup",
			Types:       providers,
			Errors:      append([]string{"DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", "CODE_REFUSED"}, errors...),
			Example:     `{"device_id":91,"delivery_id":64023}`,
		}, m.PickUp, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.mock.faults",
			Summary:     "Set the faults of the mock locker",
			Description: "Takes the provider's mock locker off the network, lets its next order to open doors go without an answer, loses the reports of doors that are closed, or puts it out of service. clear resets it: faults and openings end, doors are closed, and every compartment is empty and free. advance_seconds lets its time run ahead, so that door sessions, deliver_before and due_at end in seconds. The answer has its exceptions and device orders, which staff see of real lockers.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/mock/lockers/{device_id}/faults",
			Types:       providers,
			Errors:      errors,
			Example:     `{"device_id":91,"offline":true}`,
		}, m.SetFaults, nil),
	}
}
