package api

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
)

func (c Config) accounts() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{Name: "user.login", Summary: "Log in with email and password", Tag: "User", Method: "POST", Path: "/api/v1/user/login",
			Group: catalog.Unlimited, NoToken: true, Secret: true, Risk: catalog.RiskMedium, Errors: []string{"INVALID_CREDENTIALS", "ACCOUNT_DISABLED", "ACCOUNT_LOCKED", "CLIENT_CODE_REQUIRED"},
			GraphQL: &catalog.GraphQL{Field: "userLogin", Type: "LoginResult", Mutation: true},
			Example: loginInput{Email: "admin@acme.example", Password: "correct horse battery"}}, c.login, nil),
		catalog.Define(catalog.Operation{Name: "user.me", Summary: "Get the calling account", Tag: "User", Method: "GET", Path: "/api/v1/user/me", Types: everyone,
			GraphQL: &catalog.GraphQL{Field: "me", Type: "User", Pick: "user"}}, c.me, nil),
		catalog.Define(catalog.Operation{Name: "user.logout", Summary: "Log out and revoke the token of the call", Tag: "User", Method: "POST", Path: "/api/v1/user/logout", Types: everyone, EndsToken: true}, c.logout, nil),
	}
}

// keeping are the operations by which a business keeps who may call. What has a
// scope has it for reads too: there is none to read settings.
func (c Config) keeping() []catalog.Operation {
	a := c.Accounts
	row := func(name, summary, method, path string, errors ...string) catalog.Operation {
		o := catalog.Operation{Name: name, Summary: summary, Tag: "User", Method: method, Path: "/api/v1" + path, Errors: errors}
		if method != "GET" {
			o.Risk = catalog.RiskMedium
		}
		switch name { // who logs in without a key's policy, and who decides about what waits
		case "users.create", "users.edit", "settings.save":
			o.Risk = catalog.RiskHigh
		}
		return o
	}
	// key is an operation on the caller's own keys.
	key := func(o catalog.Operation) catalog.Operation {
		o.Types, o.Errors = people, append(o.Errors, "LOGIN_REQUIRED")
		return o
	}
	// admin is an operation on what a business keeps.
	admin := func(o catalog.Operation) catalog.Operation {
		o.Types, o.Scopes, o.Tag = admins, settingsWrite, "Client"
		return o
	}
	feature := func(o catalog.Operation, types []cloud.AccountType) catalog.Operation {
		o.Types, o.Tag = types, "Features"
		if o.Method != "GET" {
			o.Scopes = settingsWrite
		}
		return o
	}
	like := func(o catalog.Operation, example any) catalog.Operation {
		o.Example = example
		return o
	}
	made := func(o catalog.Operation) catalog.Operation {
		o.Status, o.Idempotent = 201, true
		return o
	}
	// token is an operation that shows a secret.
	token := func(o catalog.Operation, example any) catalog.Operation {
		o.Secret, o.Risk, o.Status, o.Example = true, catalog.RiskHigh, 201, example
		return o
	}
	return []catalog.Operation{
		catalog.Define(key(row("user.api_keys.list", "List the calling user's API keys", "GET", "/user/api-keys")), byPerson(a.ListKeys), nil),
		catalog.Define(key(row("user.api_keys.find", "Get an API key", "GET", "/user/api-keys/{id}", "API_KEY_NOT_FOUND")), byPerson(a.FindKey), nil),
		catalog.Define(token(key(row("user.api_keys.create", "Create an API key, shown once", "POST", "/user/api-keys", "KEY_LIMIT")),
			account.KeyInput{Name: "Nightly report", Scopes: []string{"orders:read"}, IPAllowlist: []string{"192.0.2.0/24"}}), byPerson(a.MakeKey), nil),
		catalog.Define(key(row("user.api_keys.revoke", "Revoke an API key", "DELETE", "/user/api-keys/{id}", "API_KEY_NOT_FOUND")), byPerson(a.RevokeKey), nil),
		catalog.Define(key(row("user.agents.list", "List agents with access to the account", "GET", "/user/agents")), byPerson(a.ListAgents), nil),
		catalog.Define(key(row("user.agents.end", "Revoke an agent's access", "DELETE", "/user/agents/{id}", "AGENT_NOT_FOUND")), byPerson(a.EndAgent), nil),
		catalog.Define(admin(row("users.list", "List the users of the business", "GET", "/users")), a.ListUsers, nil),
		catalog.Define(admin(row("users.find", "Get a user", "GET", "/users/{id}", "USER_NOT_FOUND")), a.FindUser, nil),
		catalog.Define(made(admin(row("users.create", "Create a user", "POST", "/users", "LOGIN_REQUIRED"))), withPerson(catalog.RiskHigh, a.AddUser, nil), nil),
		catalog.Define(admin(row("users.edit", "Update or disable a user", "PATCH", "/users/{id}", "USER_NOT_FOUND", "LAST_ADMIN", "LOGIN_REQUIRED")), withPerson(catalog.RiskHigh, a.ChangeUser, nil), nil),
		catalog.Define(admin(row("customers.list", "List the customers of the business", "GET", "/customers")), a.ListCustomers, nil),
		catalog.Define(admin(row("customers.find", "Get a customer", "GET", "/customers/{id}", "CUSTOMER_NOT_FOUND")), a.FindCustomer, nil),
		catalog.Define(made(admin(row("customers.create", "Create a customer", "POST", "/customers", "LOGIN_REQUIRED"))), withPerson(catalog.RiskMedium, a.AddCustomer, account.CustomerInput.SetsPassword), nil),
		catalog.Define(admin(row("customers.edit", "Update or disable a customer", "PATCH", "/customers/{id}", "CUSTOMER_NOT_FOUND", "LOGIN_REQUIRED")), withPerson(catalog.RiskMedium, a.ChangeCustomer, account.ChangeCustomerInput.SetsPassword), nil),
		catalog.Define(admin(row("settings.find", "Get the settings of the business", "GET", "/settings")), a.FindSettings, nil),
		catalog.Define(admin(row("settings.save", "Update the settings of the business", "PUT", "/settings")), a.SaveSettings, nil),
		catalog.Define(admin(row("settings.prices.find", "Get the price list of local deliveries", "GET", "/settings/prices")), a.FindPrices, nil),
		catalog.Define(like(admin(row("settings.prices.save", "Save the price list of local deliveries", "PUT", "/settings/prices")), account.PricesInput{Prices: &cloud.PriceList{Base: 899, IncludedKilograms: 5,
			PerKilogram: 50, PerPackage: 200, CODFee: 150, TaxCode: "tax_hst", TaxPercent: 13, Countries: []string{"CA"}, MaxKilograms: 500}}), a.SavePrices, nil),
		catalog.Define(feature(row("features.list", "List feature families", "GET", "/features"), staff), a.ListFeatures, nil),
		catalog.Define(feature(row("features.switch", "Enable or disable a feature family", "PUT", "/features/{family}", "FEATURE_NOT_FOUND", "FEATURE_REVOKED", "FEATURE_NOT_MIGRATED"), admins), a.Switch, nil),
		catalog.Define(feature(row("admin.features.grant", "Grant or revoke a feature family", "PUT", "/admin/features/{family}/{business_id}", "FEATURE_NOT_FOUND", "BUSINESS_NOT_FOUND"), platform), a.Grant, nil),
		catalog.Define(admin(row("providers.list", "List the providers of the business", "GET", "/providers")), a.ListProviders, nil),
		catalog.Define(admin(row("providers.find", "Get a provider", "GET", "/providers/{id}", "PROVIDER_NOT_FOUND")), a.FindProvider, nil),
		catalog.Define(made(admin(row("providers.create", "Create a provider", "POST", "/providers"))), a.AddProvider, nil),
		catalog.Define(admin(row("providers.edit", "Update a provider", "PATCH", "/providers/{id}", "PROVIDER_NOT_FOUND")), a.ChangeProvider, nil),
		catalog.Define(admin(row("providers.tokens.list", "List the tokens of a provider", "GET", "/providers/{id}/tokens", "PROVIDER_NOT_FOUND")), a.ListTokens, nil),
		catalog.Define(token(admin(row("providers.tokens.create", "Create a token of a provider, shown once", "POST", "/providers/{id}/tokens", "PROVIDER_NOT_FOUND", "KEY_LIMIT", "LOGIN_REQUIRED")),
			account.TokenInput{Name: "Production"}), withPerson(catalog.RiskHigh, a.MakeToken, nil), nil),
		catalog.Define(admin(row("providers.tokens.revoke", "Revoke a token of a provider", "DELETE", "/providers/{id}/tokens/{token_id}", "PROVIDER_NOT_FOUND", "TOKEN_NOT_FOUND")), a.RevokeToken, nil),
	}
}

// byPerson keeps keys from an operation: one that leaked could make others that
// outlive it.
func byPerson[In, Out any](fn func(context.Context, cloud.Caller, In) (Out, error)) func(context.Context, cloud.Caller, In) (Out, error) {
	return func(ctx context.Context, c cloud.Caller, in In) (out Out, err error) {
		if t, _ := catalog.TokenOf(ctx); !t.Login() {
			return out, cloud.E(cloud.Forbidden, "LOGIN_REQUIRED")
		}
		return fn(ctx, c, in)
	}
}

// withPerson keeps keys from those calls of an operation that concerns reports,
// nil: all, unless a person approves them: a login that was made with a leaked key
// has neither its allow-list nor its limits. A key whose calls of this risk wait
// gets here only to try them; approved ones run with the reviewer's token.
func withPerson[In, Out any](risk catalog.Risk, fn func(context.Context, cloud.Caller, In) (Out, error), concerns func(In) bool) func(context.Context, cloud.Caller, In) (Out, error) {
	return func(ctx context.Context, c cloud.Caller, in In) (out Out, err error) {
		t, _ := catalog.TokenOf(ctx)
		if !t.Login() && !t.Policy.Waits(risk == catalog.RiskHigh) && (concerns == nil || concerns(in)) {
			return out, cloud.E(cloud.Forbidden, "LOGIN_REQUIRED")
		}
		return fn(ctx, c, in)
	}
}

type loginInput struct {
	Email      string `json:"email" doc:"In any case" required:"true" max:"256"`
	Password   string `json:"password" required:"true" max:"256"`
	ClientCode string `json:"client_code" doc:"Business code, when one email exists in several businesses"`
	DeviceName string `json:"device_name" doc:"Shown in the list of tokens" max:"64"`
	Remember   bool   `json:"remember_me" doc:"The token lives 30 days instead of 7"`
}

type loginOutput struct {
	Result      bool              `json:"result"`
	AccessToken string            `json:"access_token"`
	TokenType   string            `json:"token_type"`
	ExpiresAt   string            `json:"expires_at" doc:"YYYY-MM-DD HH:MM:SS in the business's time zone"`
	AccountType cloud.AccountType `json:"account_type"`
	User        user              `json:"user"`
}

type user struct {
	ID          cloud.AccountID   `json:"id"`
	Name        string            `json:"name"`
	Email       *string           `json:"email"`
	AccountType cloud.AccountType `json:"account_type"`
	BusinessID  *cloud.BusinessID `json:"business_id"`
	CustomerID  *int64            `json:"customer_id"`
	Locale      *string           `json:"locale"`
	Timezone    *string           `json:"timezone"`
}

func userOf(a cloud.Account, b cloud.Business) user {
	out := user{ID: a.ID, Name: a.Name, Email: cloud.OrNull(a.Email), AccountType: a.Type, BusinessID: cloud.OrNull(a.BusinessID), Locale: cloud.OrNull(a.Locale), Timezone: cloud.OrNull(b.Timezone)}
	if a.Type == cloud.Customer {
		id := int64(a.ID)
		out.CustomerID = &id
	}
	return out
}

func (in loginInput) check() error {
	fields := map[string][]string{}
	for name, v := range map[string]string{"email": in.Email, "password": in.Password} {
		if v == "" {
			fields[name] = []string{"The value is required."}
		} else if len(v) > 256 {
			fields[name] = []string{"The value is too long."}
		}
	}
	if len(in.DeviceName) > 64 {
		fields["device_name"] = []string{"The value is too long."}
	}
	if len(fields) > 0 {
		return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: fields}
	}
	return nil
}

// login makes a token. The gate bounds how often it is tried.
func (c Config) login(ctx context.Context, _ cloud.Caller, in loginInput) (loginOutput, error) {
	if err := in.check(); err != nil {
		return loginOutput{}, err
	}
	l, state, err := c.Gate.Login(ctx, auth.Try{Email: in.Email, Password: in.Password, ClientCode: in.ClientCode, Name: in.DeviceName, Remember: in.Remember, IP: catalog.AddressOf(ctx)})
	if err != nil {
		if !state.OK {
			err = &catalog.Limited{State: state}
		}
		return loginOutput{}, err
	}
	return loginOutput{Result: true, AccessToken: l.Token, TokenType: "Bearer", ExpiresAt: l.ExpiresAt.In(l.Business.Location()).Format(time.DateTime),
		AccountType: l.Account.Type, User: userOf(l.Account, l.Business)}, nil
}

type meOutput struct {
	Result bool `json:"result"`
	User   user `json:"user"`
}

func (c Config) me(ctx context.Context, caller cloud.Caller, _ none) (out meOutput, err error) {
	err = c.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(caller.Account.BusinessID)
		if errors.Is(err, cloud.ErrNotFound) { // of the platform's own people
			err = nil
		}
		out = meOutput{Result: true, User: userOf(caller.Account, b)}
		return err
	})
	return out, err
}

// logout revokes the token that the call came with.
func (c Config) logout(ctx context.Context, _ cloud.Caller, _ none) (doneOutput, error) {
	t, ok := catalog.TokenOf(ctx)
	if !ok {
		return doneOutput{}, errors.New("log out: the call has no token")
	}
	if err := c.Auth.Revoke(ctx, t); err != nil {
		return doneOutput{}, err
	}
	return doneOutput{Result: true}, nil
}
