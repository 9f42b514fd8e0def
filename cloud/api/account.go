package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
)

func (c Config) accounts() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "user.login",
			Summary:     "Log in with email and password",
			Description: "An email of several businesses needs client_code. Failures answer alike and lock the account after several. The token ends after 7 days, with remember_me after 30. An account with a second factor needs otp too, or completes the challenge of the answer SECOND_FACTOR_REQUIRED.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/login",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Unlimited,
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"INVALID_CREDENTIALS", "ACCOUNT_DISABLED", "ACCOUNT_LOCKED", "OIDC_REQUIRED", "CLIENT_CODE_REQUIRED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"},
			GraphQL:     &catalog.GraphQL{Field: "userLogin", Type: "LoginResult", Mutation: true},
			Example:     `{"email":"admin@acme.example","password":"correct horse battery"}`,
		}, c.login, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.me",
			Summary:     "Get the calling account",
			Description: "The account behind the token of the call, with its business, language and time zone.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/me",
			Types:       everyone,
			SetsUp:      true,
			GraphQL:     &catalog.GraphQL{Field: "me", Type: "User", Pick: "user"},
		}, c.me, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.logout",
			Summary:     "Log out and revoke the token of the call",
			Description: "The token of the call is refused from then on, on every node.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/logout",
			Types:       everyone,
			SetsUp:      true,
			Harmless:    true,
			EndsToken:   true,
		}, c.logout, nil),
	}
}

// keeping are the operations by which a business keeps who may call. What has a
// scope has it for reads too: there is none to read settings.
func (c Config) keeping() []catalog.Operation {
	a := c.Accounts
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "user.api_keys.list",
			Summary:     "List the calling user's API keys",
			Description: "Keys that still work, by id, each with its scopes, limits and last use; never the key itself.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/api-keys",
			Types:       people,
			Errors:      []string{"LOGIN_REQUIRED"},
			Noun: &catalog.Noun{
				Name: "api_key", Path: "api-keys", Area: "connections", Icon: "key",
				ID: "id", Title: []string{"name"},
				Columns: []string{"name", "profile", "scopes", "require_approval", "created_at", "expires_at"},
				Verbs:   []string{"user.api_keys.revoke"},
			},
		}, byPerson(a.ListKeys), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.api_keys.find",
			Summary:     "Get an API key",
			Description: "One of the caller's keys, with what it may do and its last use.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/api-keys/{id}",
			Types:       people,
			Errors:      []string{"API_KEY_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"id":9001}`,
		}, byPerson(a.FindKey), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.api_keys.create",
			Summary:     "Create an API key, shown once",
			Description: "The key is in this answer and nowhere else. It never holds more than its owner, and can be narrowed by scopes, addresses, surfaces, limits per day, and by the writes that need a person's approval. Only a login may create keys.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/api-keys",
			Types:       people,
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Secret:      true,
			Errors:      []string{"KEY_LIMIT", "LOGIN_REQUIRED"},
			Example:     `{"name":"Nightly report","scopes":["orders:read"]}`,
		}, byPerson(a.MakeKey), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.api_keys.revoke",
			Summary:     "Revoke an API key",
			Description: "The key is refused from then on, on every node.",
			Tag:         "User",
			Method:      http.MethodDelete,
			Many:        500,
			Path:        "/api/v1/user/api-keys/{id}",
			Types:       people,
			Risk:        catalog.RiskMedium,
			Errors:      []string{"API_KEY_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"id":9001}`,
		}, byPerson(a.RevokeKey), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.agents.list",
			Summary:     "List agents with access to the account",
			Description: "Programs that the caller let act for the account, with their scopes, the server they may talk to and their last use.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/agents",
			Types:       people,
			Errors:      []string{"LOGIN_REQUIRED"},
			Noun: &catalog.Noun{
				Name: "program", Path: "programs", Area: "connections", Icon: "robot",
				ID: "id", Title: []string{"name"},
				Columns: []string{"name", "profile", "redirect_host", "last_used_at", "expires_at"},
				Verbs:   []string{"user.agents.end"},
			},
		}, byPerson(a.ListAgents), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.agents.end",
			Summary:     "Revoke an agent's access",
			Description: "All tokens of the agent are refused from then on, and it has to ask for access again.",
			Tag:         "User",
			Method:      http.MethodDelete,
			Path:        "/api/v1/user/agents/{id}",
			Types:       people,
			Risk:        catalog.RiskMedium,
			Errors:      []string{"AGENT_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"id":9001}`,
		}, byPerson(a.EndAgent), nil),
		catalog.Define(catalog.Operation{
			Name:        "users.list",
			Summary:     "List the users of the business",
			Description: "Administrators and employees of the business, with their permissions.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/users",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Tool:        catalog.Whole{Name: "list_people", Category: "people"},
			Noun: &catalog.Noun{
				Name: "user", Path: "people", Area: "business", Icon: "people",
				ID: "id", Refs: []string{"user_id"}, Also: map[string]map[string]any{"broker_id": {"account_type": "broker"}, "owner_id": nil, "requested_by": nil, "assigned_by": nil, "account_id": nil}, Named: true, Title: []string{"name", "email"},
				Columns: []string{"name", "email", "account_type", "enabled", "permissions", "created_at"},
				Others:  []string{"invitation"},
				Verbs:   []string{"users.edit", "users.password_reset", "users.second_factor.reset", "users.sessions.end", "users.identities.end"},
				Related: []catalog.Relation{{Noun: "session", By: "id"}, {Noun: "identity", By: "id"}},
			},
		}, a.ListUsers, nil),
		catalog.Define(catalog.Operation{
			Name:        "users.find",
			Summary:     "Get a user",
			Description: "An administrator or employee of the business, with the permissions.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/users/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Tool:        catalog.Whole{Name: "get_person", Category: "people", ID: "user_id"},
			Errors:      []string{"USER_NOT_FOUND"},
			Example:     `{"id":2}`,
		}, a.FindUser, nil),
		catalog.Define(catalog.Operation{
			Name:        "users.create",
			NoPass:      true,
			Summary:     "Create a user",
			Description: "The user logs in with email and password. An employee has the permissions given here; an administrator has all. A key needs a person's approval for it.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/users",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh, // a login has no key's policy
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"ACCOUNT_LIMIT_REACHED", "LOGIN_REQUIRED"},
			Example:     `{"account_type":"client_employee","name":"Ana Lima","email":"ana@acme.example","password":"long enough","permissions":["orders:read"]}`,
		}, withPerson(catalog.RiskHigh, a.AddUser, nil), nil),
		catalog.Define(catalog.Operation{
			Name:        "users.edit",
			NoPass:      true,
			Summary:     "Update or disable a user",
			Description: "Members that are left out stay. A new password, or enabled false, ends the user's logins; the own password is changed by user.password.change. The last enabled administrator stays one.",
			Tag:         "Client",
			Method:      http.MethodPatch,
			Path:        "/api/v1/users/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh, // a login has no key's policy
			Errors:      []string{"USER_NOT_FOUND", "LAST_ADMIN", "ACCOUNT_LIMIT_REACHED", "LOGIN_REQUIRED"},
			Example:     `{"id":2,"name":"Ana Lima"}`,
		}, withPerson(catalog.RiskHigh, a.ChangeUser, nil), nil),
		catalog.Define(catalog.Operation{
			Name:        "customers.list",
			Summary:     "List the customers of the business",
			Description: "Customers of the business, with the account that each logs in with.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/customers",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Tool:        catalog.Whole{Name: "list_customers", Category: "people"},
			Noun: &catalog.Noun{
				Name: "customer", Path: "customers", Area: "business", Icon: "customer",
				ID: "id", Refs: []string{"customer_id"}, Named: true, Title: []string{"name", "email"},
				Columns: []string{"name", "email", "enabled", "created_at"},
				Verbs:   []string{"customers.edit"},
				Related: []catalog.Relation{{Noun: "order", By: "customer_id"}},
			},
		}, a.ListCustomers, nil),
		catalog.Define(catalog.Operation{
			Name:        "customers.find",
			Summary:     "Get a customer",
			Description: "A customer of the business.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/customers/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Errors:      []string{"CUSTOMER_NOT_FOUND"},
			Example:     `{"id":5}`,
		}, a.FindCustomer, nil),
		catalog.Define(catalog.Operation{
			Name:        "customers.create",
			NoPass:      true,
			Summary:     "Create a customer",
			Description: "The customer sees and creates own orders only. price_hidden_families names the kinds of order whose prices it does not see.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Many:        20000,
			Path:        "/api/v1/customers",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"ACCOUNT_LIMIT_REACHED", "LOGIN_REQUIRED"},
			Example:     `{"name":"Bloom Flowers","email":"shop@bloom.example","password":"long enough"}`,
		}, withPerson(catalog.RiskMedium, a.AddCustomer, account.CustomerInput.SetsPassword), nil),
		catalog.Define(catalog.Operation{
			Name:        "customers.edit",
			NoPass:      true,
			Summary:     "Update or disable a customer",
			Description: "Members that are left out stay. A new password, or enabled false, ends the customer's logins.",
			Tag:         "Client",
			Method:      http.MethodPatch,
			Many:        1000,
			Path:        "/api/v1/customers/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"CUSTOMER_NOT_FOUND", "ACCOUNT_LIMIT_REACHED", "LOGIN_REQUIRED"},
			Example:     `{"id":5,"name":"Bloom Flowers"}`,
		}, withPerson(catalog.RiskMedium, a.ChangeCustomer, account.ChangeCustomerInput.SetsPassword), nil),
		catalog.Define(catalog.Operation{
			Name:        "settings.find",
			Summary:     "Get the settings of the business",
			Description: "Time zone, language, currency, and the rules for proof, drivers, interceptions and approvals.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/settings",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Noun: &catalog.Noun{
				Name: "setting", Path: "settings", Area: "business", Icon: "sliders", Key: "s",
				Verbs: []string{"settings.save"},
			},
		}, a.FindSettings, nil),
		catalog.Define(catalog.Operation{
			Name:        "settings.save",
			Summary:     "Update the settings of the business",
			Description: "Members that are left out stay.",
			Tag:         "Client",
			Method:      http.MethodPut,
			Path:        "/api/v1/settings",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh, // settings say who decides about what waits
			Example:     `{"signature_required":true}`,
		}, c.saveSettings, nil),
		catalog.Define(catalog.Operation{
			Name:        "settings.prices.find",
			Summary:     "Get the price list of local deliveries",
			Description: "The list that prices new local deliveries; null while there is none.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/settings/prices",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Noun: &catalog.Noun{
				Name: "price_list", Path: "prices", Area: "business", Icon: "coins",
				Verbs: []string{"settings.prices.save"},
			},
		}, a.FindPrices, nil),
		catalog.Define(catalog.Operation{
			Name:        "settings.prices.save",
			Summary:     "Save the price list of local deliveries",
			Description: "The list is replaced as a whole; null removes it. Orders that exist keep their price. Amounts are in the currency of the business, which must be set.",
			Tag:         "Client",
			Method:      http.MethodPut,
			Path:        "/api/v1/settings/prices",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Example:     `{"prices":{"base":8.99,"included_kilograms":5,"per_kilogram":0.5,"per_package":2,"cod_fee":1.5,"tax_code":"tax_hst","tax_percent":13,"countries":["CA"],"max_kilograms":500}}`,
		}, a.SavePrices, nil),
		catalog.Define(catalog.Operation{
			Name:        "features.list",
			Summary:     "List feature families",
			Description: "Each feature family with its state: whether the platform allows it, and whether the business enabled it.",
			Tag:         "Features",
			Method:      http.MethodGet,
			Path:        "/api/v1/features",
			Types:       staff,
			Noun: &catalog.Noun{
				Name: "feature", Path: "features", Area: "business", Icon: "switch",
				ID: "family", Title: []string{"family"},
				Columns: []string{"family", "enabled", "state"},
				Verbs:   []string{"features.switch"},
			},
		}, a.ListFeatures, nil),
		catalog.Define(catalog.Operation{
			Name:        "features.switch",
			Summary:     "Enable or disable a feature family",
			Description: "Only families that the platform allows the business can be enabled.",
			Tag:         "Features",
			Method:      http.MethodPut,
			Path:        "/api/v1/features/{family}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"FEATURE_NOT_FOUND", "FEATURE_REVOKED", "FEATURE_NOT_MIGRATED"},
			Example:     `{"family":"order_chat","enabled":true}`,
		}, a.Switch, nil),
		catalog.Define(catalog.Operation{
			Name:        "admin.features.grant",
			Summary:     "Grant or revoke a feature family",
			Description: "Platform operators allow a family to a business or revoke it. A revoked family is off at once.",
			Tag:         "Features",
			Method:      http.MethodPut,
			Path:        "/api/v1/admin/features/{family}/{business_id}",
			Types:       operatorTypes,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"FEATURE_NOT_FOUND", "BUSINESS_NOT_FOUND"},
			Example:     `{"family":"order_chat","business_id":42,"state":"allowed","enabled":true}`,
		}, a.Grant, nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.list",
			Summary:     "List the providers of the business",
			Description: "Delivery and tracking providers of the business, with the services that each may use.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/providers",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Tool:        catalog.Whole{Name: "list_providers", Category: "people"},
			Noun: &catalog.Noun{
				Name: "provider", Path: "providers", Area: "connections", Icon: "building",
				ID: "id", Refs: []string{"provider_id"}, Named: true, Title: []string{"name"},
				Columns: []string{"name", "code", "services", "source_type", "livemode_allowed", "created_at"},
				Verbs:   []string{"providers.edit", "providers.tokens.create"},
				Related: []catalog.Relation{{Noun: "provider_token", By: "id"}},
			},
		}, a.ListProviders, nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.find",
			Summary:     "Get a provider",
			Description: "A provider of the business, with the services that it may use.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/providers/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Errors:      []string{"PROVIDER_NOT_FOUND"},
			Example:     `{"id":17}`,
		}, a.FindProvider, nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.create",
			Summary:     "Create a provider",
			Description: "The provider gets access by a token, which is created on its own. services names what it may do.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Many:        1000,
			Path:        "/api/v1/providers",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Example:     `{"code":"quick-box","name":"Quick Box","services":["otep"]}`,
		}, a.AddProvider, nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.edit",
			Summary:     "Update a provider",
			Description: "Members that are left out stay.",
			Tag:         "Client",
			Method:      http.MethodPatch,
			Path:        "/api/v1/providers/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"PROVIDER_NOT_FOUND"},
			Example:     `{"id":17,"name":"Quick Box"}`,
		}, a.ChangeProvider, nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.tokens.list",
			Summary:     "List the tokens of a provider",
			Description: "Tokens that still work, with their last use; never the token itself.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/providers/{id}/tokens",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Errors:      []string{"PROVIDER_NOT_FOUND"},
			Example:     `{"id":17}`,
			Noun: &catalog.Noun{
				Name: "provider_token", Path: "provider-tokens",
				Title:   []string{"name"},
				Columns: []string{"name", "created_at", "expires_at"},
			},
		}, a.ListTokens, nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.tokens.create",
			Summary:     "Create a token of a provider, shown once",
			Description: "The token is in this answer and nowhere else.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/providers/{id}/tokens",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Secret:      true,
			Errors:      []string{"PROVIDER_NOT_FOUND", "KEY_LIMIT", "LOGIN_REQUIRED"},
			Example:     `{"id":17,"name":"Production"}`,
		}, withPerson(catalog.RiskHigh, a.MakeToken, nil), nil),
		catalog.Define(catalog.Operation{
			Name:        "providers.tokens.revoke",
			Summary:     "Revoke a token of a provider",
			Description: "The token is refused from then on, on every node.",
			Tag:         "Client",
			Method:      http.MethodDelete,
			Path:        "/api/v1/providers/{id}/tokens/{token_id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"PROVIDER_NOT_FOUND", "TOKEN_NOT_FOUND"},
			Example:     `{"id":17,"token_id":9001}`,
		}, a.RevokeToken, nil),
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
	OTP        string `json:"otp" max:"64" doc:"Time-based code, or a recovery code, of an account with a second factor"`
}

type loginOutput struct {
	Result      bool              `json:"result"`
	AccessToken string            `json:"access_token"`
	TokenType   string            `json:"token_type"`
	ExpiresAt   string            `json:"expires_at" doc:"YYYY-MM-DD HH:MM:SS in the business's time zone"`
	AccountType cloud.AccountType `json:"account_type"`
	User        user              `json:"user"`
	SetsUp      bool              `json:"second_factor_setup_required" doc:"The business demands a second factor: the token is good for setting one up, and for all else afterwards"`
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

// login makes a token. The gate bounds how often it is tried.
func (c Config) login(ctx context.Context, _ cloud.Caller, in loginInput) (loginOutput, error) {
	l, state, err := c.Gate.Login(ctx, auth.Try{Email: in.Email, Password: in.Password, ClientCode: in.ClientCode, Name: in.DeviceName, Remember: in.Remember, Code: in.OTP, IP: catalog.AddressOf(ctx)})
	if err != nil {
		if !state.OK {
			err = &catalog.Limited{State: state}
		}
		return loginOutput{}, err
	}
	return showLogin(l), nil
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

// saveSettings saves settings of the business. Access, and decisions about one's own
// proposals, is no matter of an operator with a pass.
func (c Config) saveSettings(ctx context.Context, caller cloud.Caller, in account.SettingsInput) (account.SettingsOutput, error) {
	if caller.Pass != 0 && (in.SecondFactor != nil || in.SelfApproval != nil) {
		return account.SettingsOutput{}, cloud.E(cloud.Forbidden, "PASS_NOT_ALLOWED")
	}
	return c.Accounts.SaveSettings(ctx, caller, in)
}
