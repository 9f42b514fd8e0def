package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/push"
)

// live are the operations of apps that listen, and of pushes.
func (c Config) live() []catalog.Operation {
	row := func(name, summary, tag, method, path string, types []cloud.AccountType, scopes ...string) catalog.Operation {
		o := catalog.Operation{Name: name, Summary: summary, Tag: tag, Method: method, Path: "/api/v1" + path, Types: types, Scopes: scopes}
		if method != http.MethodGet {
			o.Risk = catalog.RiskMedium
		}
		return o
	}
	register := row("driver.push_token.set", "Register the calling app for pushes", "Driver", "POST", "/driver/push-token", drivers, "routes:write")
	register.Example = push.TokenInput{Token: "fcm-registration-token", Platform: "fcm"}
	token := row("user.live_token", "Create live credentials for the caller's own topics", "User", "POST", "/user/live-token", slices.Concat(staff, drivers), "orders:read")
	token.Secret, token.Surface = true, "live"
	return []catalog.Operation{
		catalog.Define(token, c.liveToken, nil),
		catalog.Define(register, func(ctx context.Context, caller cloud.Caller, in push.TokenInput) (push.Done, error) {
			t, err := tokenOf(ctx)
			if err != nil {
				return push.Done{}, err
			}
			return c.Pushes.Register(ctx, caller, t.Hash, in)
		}, nil),
		catalog.Define(row("driver.push_token.remove", "Unregister the calling app from pushes", "Driver", "DELETE", "/driver/push-token", drivers, "routes:write"),
			func(ctx context.Context, _ cloud.Caller, _ none) (push.Done, error) {
				t, err := tokenOf(ctx)
				if err != nil {
					return push.Done{}, err
				}
				return c.Pushes.Forget(ctx, t.Hash)
			}, nil),
		catalog.Define(row("driver.pushes.list", "List the calling driver's pushes, oldest first", "Driver", "GET", "/driver/pushes", drivers, "routes:read"), c.Pushes.List, nil),
		catalog.Define(row("sandbox.pushes.list", "List the sandbox's pushes, oldest first", "Client", "GET", "/sandbox/pushes", staff, "orders:read"), c.Pushes.ListTests, nil),
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
