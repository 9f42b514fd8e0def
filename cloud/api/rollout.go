package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// rollouts are the operations that bring versions of the agent to many cabinets.
func rollouts(c Config) []catalog.Operation {
	const path = "/api/v1/smart-lockers/rollouts"
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.list",
			Summary:     "List roll-outs of the agent",
			Description: "Versions that were or are brought to cabinets ring by ring, with how many run them. A business has one that runs.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        path,
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "rollout", Path: "rollouts", Area: "lockers", Icon: "cabinet", Begin: "cabinet",
				Live: []string{"Rows"},
				ID:   "rollout_id", Refs: []string{"rollout_id"}, Title: []string{"version"}, State: "state", States: "rollout",
				Columns: []string{"version", "state", "updated_devices", "total_devices", "created_at"},
				Verbs:   []string{"smart_lockers.rollouts.stop", "smart_lockers.rollouts.resume"},
			},
		}, c.Lockers.ListRollouts, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.find",
			Summary:     "Get a roll-out with its cabinets",
			Description: "For each cabinet the version that it ran before, the one that is wanted, the one that it runs now, and where it stands.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        path + "/{rollout_id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"ROLLOUT_NOT_FOUND"},
			Example:     `{"rollout_id":7}`,
		}, c.Lockers.FindRollout, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.create",
			Summary:     "Start a roll-out of the agent",
			Description: "Updates cabinets in up to three rings. The next ring starts when every cabinet of the ring is connected and has run the version for a while; one whose update fails, that goes back or is not healthy in time stops the roll-out.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        path,
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "RELEASE_NOT_FOUND", "UPDATE_NOT_POSSIBLE", "ROLLOUT_EXISTS"},
			Example:     `{"version":"1.4.0","device_ids":[88],"first_devices":1,"second_percent":10,"healthy_minutes":60,"patience_minutes":720}`,
		}, c.Lockers.CreateRollout, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.stop",
			When:        states(cloud.RolloutRunning),
			Summary:     "Stop a roll-out",
			Description: "No further cabinet is updated. Cabinets that have their command already go on with it.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        path + "/{rollout_id}/stop",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"ROLLOUT_NOT_FOUND", "ROLLOUT_STATE_CONFLICT"},
			Example:     `{"rollout_id":7,"reason":"The first cabinet is slow"}`,
		}, c.Lockers.StopRollout, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.resume",
			When:        states(cloud.RolloutStopped),
			Summary:     "Resume a stopped roll-out",
			Description: "Goes on with the ring at which it stopped. Cabinets whose update failed, or that were not healthy in time, get another command; those that went back stay as they are and hold nothing up.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        path + "/{rollout_id}/resume",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Errors:      []string{"ROLLOUT_NOT_FOUND", "ROLLOUT_STATE_CONFLICT", "ROLLOUT_EXISTS"},
			Example:     `{"rollout_id":7}`,
		}, c.Lockers.ResumeRollout, nil),
	}
}
