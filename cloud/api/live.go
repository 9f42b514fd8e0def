package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/push"
)

// live are the operations of apps that listen, and of pushes.
func (c Config) live() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "user.live_token",
			Summary:     "Create live credentials for the caller's own topics",
			Description: "MQTT credentials for what concerns the caller, for a limited time. They end with the token of the call.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/live-token",
			Types:       []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.DriverAccount},
			Scopes:      []string{"orders:read"},
			Risk:        catalog.RiskMedium,
			Surface:     "live",
			Harmless:    true,
			Secret:      true,
		}, c.liveToken, nil),
		catalog.Define(catalog.Operation{
			Name:        "driver.push_token.set",
			Summary:     "Register the calling app for pushes",
			Description: "Pushes go to the app for as long as the login is good. A device has one driver: the last one who registered it.",
			Tag:         "Driver",
			Method:      http.MethodPost,
			Path:        "/api/v1/driver/push-token",
			Types:       drivers,
			Scopes:      []string{"routes:write"},
			Risk:        catalog.RiskMedium,
			Example:     `{"token":"fcm-registration-token","platform":"fcm"}`,
		}, func(ctx context.Context, caller cloud.Caller, in push.TokenInput) (push.Done, error) {
			t, err := tokenOf(ctx)
			if err != nil {
				return push.Done{}, err
			}
			return c.Pushes.Register(ctx, caller, t.Hash, in)
		}, nil),
		catalog.Define(catalog.Operation{
			Name:        "driver.push_token.remove",
			Summary:     "Unregister the calling app from pushes",
			Description: "The app of this login gets no pushes from then on.",
			Tag:         "Driver",
			Method:      http.MethodDelete,
			Path:        "/api/v1/driver/push-token",
			Types:       drivers,
			Scopes:      []string{"routes:write"},
			Risk:        catalog.RiskMedium,
		},
			func(ctx context.Context, _ cloud.Caller, _ none) (push.Done, error) {
				t, err := tokenOf(ctx)
				if err != nil {
					return push.Done{}, err
				}
				return c.Pushes.Forget(ctx, t.Hash)
			}, nil),
		catalog.Define(catalog.Operation{
			Name:        "driver.pushes.list",
			Summary:     "List the calling driver's pushes, oldest first",
			Description: "Pushes of the last seven days, for apps that poll; after goes on behind the one seen last.",
			Tag:         "Driver",
			Method:      http.MethodGet,
			Path:        "/api/v1/driver/pushes",
			Types:       drivers,
			Scopes:      []string{"routes:read"},
		}, c.Pushes.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "sandbox.pushes.list",
			Summary:     "List the sandbox's pushes, oldest first",
			Description: "Pushes that a live business would have sent to its drivers.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/sandbox/pushes",
			Types:       staff,
			Scopes:      []string{"orders:read"},
		}, c.Pushes.ListTests, nil),
	}
}

func tokenOf(ctx context.Context) (cloud.Token, error) {
	t, ok := catalog.TokenOf(ctx)
	if !ok {
		return t, errors.New("the call has no token")
	}
	return t, nil
}

type liveTokenOutput struct {
	Result bool             `json:"result"`
	MQTT   live.Credentials `json:"mqtt"`
}

func (c Config) liveToken(ctx context.Context, caller cloud.Caller, _ none) (liveTokenOutput, error) {
	t, err := tokenOf(ctx)
	if err != nil {
		return liveTokenOutput{}, err
	}
	out, err := c.Live.Issue(ctx, live.Listener{BusinessID: caller.Account.BusinessID, AccountID: caller.Account.ID, Token: t.Hash})
	return liveTokenOutput{Result: err == nil, MQTT: out}, err
}
