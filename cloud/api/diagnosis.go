package api

import (
	"context"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// diagnoses are the operations that ask a cabinet how it is, without a visit.
func diagnoses(c Config) []catalog.Operation {
	isAgent := func(_ context.Context, _ cloud.Caller, cabinet map[string]any) bool {
		return cabinet["protocol"] == cloud.ProtocolMQTT
	}
	isCabinet := func(ctx context.Context, c cloud.Caller, cabinet map[string]any) bool {
		return isAgent(ctx, c, cabinet) && hasDoors(ctx, c, cabinet)
	}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.diagnose",
			Offered:     isAgent,
			Summary:     "Ask a cabinet for its boards or a support bundle",
			Description: "The cabinet collects what is asked for and sends it as a file; the diagnosis shows it once it is there. It waits 15 minutes for a cabinet that is offline. A cabinet carries out one diagnosis at a time and refuses another one meanwhile. A warehouse post has no boards to ask for. No door opens.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/diagnoses",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "DEVICE_DISABLED", "DIAGNOSIS_NOT_POSSIBLE"},
			Example:     `{"id":88,"type":"board_view","reason":"Doors 3 and 4 do not answer"}`,
		}, c.Lockers.Diagnose, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.test_channel",
			Offered:     isCabinet,
			When:        []string{cloud.StatusOnline, cloud.StatusMaintenance},
			Summary:     "Test the channel of a compartment",
			Description: "Opens the door as staff, and reports which switches and sensors of its board moved, how fast the door opened, and whether it was closed within two minutes. Refused while another opening runs at the cabinet, and with a delivery inside unless test_occupied is true; the delivery stays as it is. An opened door cannot be undone.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/smart-lockers/devices/{id}/channel-tests",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "DEVICE_HAS_NO_DOORS", "GRID_NOT_FOUND", "GRID_NOT_EMPTY", "DEVICE_DISABLED", "DEVICE_OFFLINE", "DIAGNOSIS_NOT_POSSIBLE"},
			Example:     `{"id":88,"grid_id":8802,"reason":"The lock is stuck","attended":true}`,
		}, c.Lockers.TestChannel, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.devices.diagnoses",
			Summary:     "List the diagnoses of a cabinet",
			Description: "Channel tests, views of boards and support bundles of the last 30 days, newest first, with where each stands.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/devices/{id}/diagnoses",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"DEVICE_NOT_FOUND"},
			Example:     `{"id":88}`,
		}, c.Lockers.ListDiagnoses, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.diagnoses.find",
			Summary:     "Get a diagnosis with its answer",
			Description: "What the boards answered or the channel test has shown, and the address of the file. Files are removed after 30 days.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/diagnoses/{diagnosis_id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"DIAGNOSIS_NOT_FOUND"},
			Example:     `{"diagnosis_id":7}`,
		}, c.Lockers.FindDiagnosis, nil),
	}
}
