package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// rollouts are the operations that bring versions of the agent and profiles to many cabinets.
func rollouts(c Config) []catalog.Operation {
	const path = "/api/v1/smart-lockers/rollouts"
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.list",
			Summary:     "List roll-outs",
			Description: "Versions of the agent and configuration profiles that were or are brought to cabinets ring by ring, with how many have them. A business has one that runs.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        path,
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "rollout", Path: "rollouts", Area: "lockers", Icon: "cabinet", Begin: "cabinet",
				Live: []string{"Rows"},
				ID:   "rollout_id", Refs: []string{"rollout_id"}, Title: []string{"version", "cabinet_profile_name"}, State: "state", States: "rollout",
				Columns: []string{"version", "cabinet_profile_name", "state", "updated_devices", "total_devices", "created_at"},
				Verbs:   []string{"smart_lockers.rollouts.stop", "smart_lockers.rollouts.resume"},
			},
		}, c.Lockers.ListRollouts, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.find",
			Summary:     "Get a roll-out with its cabinets",
			Description: "For each cabinet where it stands, the versions of its agent before and now, and those of its configuration.",
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
			Summary:     "Start a roll-out",
			Description: "Brings a version of the agent, or the settings of a configuration profile, to cabinets in up to three rings. The next ring starts when every cabinet of the ring is connected and has run the version, or had the settings, for a while. One whose update fails, that goes back, refuses the configuration or is not healthy in time stops the roll-out; of a profile, cabinets of the ring that have not proven the settings get their former ones back.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        path,
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"DEVICE_NOT_FOUND", "RELEASE_NOT_FOUND", "CABINET_PROFILE_NOT_FOUND", "UPDATE_NOT_POSSIBLE", "CONFIG_NOT_POSSIBLE", "ROLLOUT_EXISTS"},
			Example:     `{"version":"1.4.0","device_ids":[88],"first_devices":1,"second_percent":10,"healthy_minutes":60,"patience_minutes":720}`,
		}, c.Lockers.CreateRollout, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.rollouts.stop",
			When:        states(cloud.RolloutRunning),
			Summary:     "Stop a roll-out",
			Description: "No further cabinet is changed. Cabinets that have their command or settings already keep them.",
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
			Description: "Goes on with the ring at which it stopped. Cabinets whose update failed, that refused the configuration or were not healthy in time, get another command or the settings once more; those whose agent went back stay as they are and hold nothing up.",
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
