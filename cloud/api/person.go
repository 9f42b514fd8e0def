package api

import (
	"context"
	"net/http"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
)

// own are the operations by which people keep what lets them in. All but the second
// step of a login are for logins alone: a key or agent that could change a
// password or a second factor would outlive its end. Answers and calls hold
// secrets, so none is previewed, kept or queued for an approval.
func (c Config) own() []catalog.Operation {
	a := account.AccessOf(c.Accounts)
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "user.login.second_factor",
			Summary:     "Log in with the second factor",
			Description: "The challenge is that of a login's answer SECOND_FACTOR_REQUIRED, good once and for 5 minutes. From the fifth wrong code in a row time-based codes are locked for 15 minutes and more, recovery codes never.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/login/second-factor",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Unlimited,
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"CHALLENGE_EXPIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"},
			Example:     `{"challenge":"a-challenge-of-sixty-four-characters","otp":"123456"}`,
		}, c.secondStep, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.second_factor.find",
			Summary:     "Get the calling user's second factor",
			Description: "State of the second factor, number of recovery codes that are left, and the demand of the business.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/second-factor",
			Types:       people,
			SetsUp:      true,
			Errors:      []string{"LOGIN_REQUIRED"},
		}, byPerson(a.FindFactor), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.second_factor.begin",
			Summary:     "Start time-based codes for the calling user",
			Description: "The answer has a secret for an app that shows time-based codes (RFC 6238). It is in force once a code of it was confirmed, within 15 minutes.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/second-factor",
			Types:       people,
			Risk:        catalog.RiskMedium,
			SetsUp:      true,
			Secret:      true,
			Errors:      []string{"INVALID_CREDENTIALS", "ACCOUNT_LOCKED", "SECOND_FACTOR_EXISTS", "LOGIN_REQUIRED"},
			Example:     `{"password":"correct horse battery"}`,
		}, byPerson(a.BeginFactor), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.second_factor.confirm",
			Summary:     "Confirm time-based codes",
			Description: "Every login asks for a code from then on, and the caller's other logins and all agents end. The answer has ten recovery codes, each good once, and they are shown nowhere else.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/second-factor/confirm",
			Types:       people,
			Risk:        catalog.RiskHigh,
			SetsUp:      true,
			Secret:      true,
			Errors:      []string{"SECOND_FACTOR_NOT_BEGUN", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED", "LOGIN_REQUIRED"},
			Example:     `{"otp":"123456"}`,
		}, byPerson(withToken(a.ConfirmFactor)), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.second_factor.recovery_codes",
			Summary:     "Create recovery codes, shown once",
			Description: "Ten new recovery codes replace those that are left.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/second-factor/recovery-codes",
			Types:       people,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"INVALID_CREDENTIALS", "ACCOUNT_LOCKED", "SECOND_FACTOR_MISSING", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED", "LOGIN_REQUIRED"},
			Example:     `{"password":"correct horse battery","otp":"123456"}`,
		}, byPerson(a.RenewRecovery), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.second_factor.remove",
			Summary:     "Remove the calling user's second factor",
			Description: "Needs the password and a code. In a business that demands a second factor it stays.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/second-factor/remove",
			Types:       people,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"INVALID_CREDENTIALS", "ACCOUNT_LOCKED", "SECOND_FACTOR_MISSING", "SECOND_FACTOR_DEMANDED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED", "LOGIN_REQUIRED"},
			Example:     `{"password":"correct horse battery","otp":"123456"}`,
		}, byPerson(a.RemoveFactor), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.login.passkey.begin",
			Summary:     "Start a login with a passkey",
			Description: "The answer has options for the browser's navigator.credentials.get, good for 5 minutes. With the challenge of a login's answer SECOND_FACTOR_REQUIRED they are for its second step; without one the passkey is the whole login.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/login/passkey/options",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Unlimited,
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"PASSKEY_UNAVAILABLE", "CHALLENGE_EXPIRED"},
			Example:     `{}`,
		}, c.beginPasskey, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.login.passkey",
			Summary:     "Log in with a passkey",
			Description: "The browser's answer to the options, each good once. As the whole login it must prove that the person was recognised; as a second step only of administrators.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/login/passkey",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Unlimited,
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"PASSKEY_UNAVAILABLE", "PASSKEY_REFUSED", "CHALLENGE_EXPIRED", "ACCOUNT_DISABLED", "OIDC_REQUIRED"},
			Example:     `{"credential":"{\"id\":\"…\",\"type\":\"public-key\"}"}`,
		}, c.loginByPasskey, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.passkeys.list",
			Summary:     "List the calling user's passkeys",
			Description: "Passkeys that sign in, oldest first, 20 at most.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/passkeys",
			Types:       people,
			Errors:      []string{"LOGIN_REQUIRED"},
		}, byPerson(a.ListPasskeys), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.passkeys.begin",
			Summary:     "Start a passkey of the calling user",
			Description: "Needs the password, and a code of an account with a second factor. The answer has options for the browser's navigator.credentials.create, good for 5 minutes and this login.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/passkeys/options",
			Types:       people,
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"PASSKEY_UNAVAILABLE", "PASSKEY_LIMIT", "INVALID_CREDENTIALS", "ACCOUNT_LOCKED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED", "LOGIN_REQUIRED"},
			Example:     `{"password":"correct horse battery"}`,
		}, byPerson(withToken(a.BeginPasskey)), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.passkeys.create",
			Summary:     "Add a passkey of the calling user",
			Description: "The browser's answer to the options, good once. The passkey signs in from then on, alone or as second factor.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/passkeys",
			Types:       people,
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Secret:      true,
			Errors:      []string{"PASSKEY_UNAVAILABLE", "PASSKEY_REFUSED", "PASSKEY_LIMIT", "PASSKEY_EXISTS", "LOGIN_REQUIRED"},
			Example:     `{"name":"Phone","credential":"{\"id\":\"…\",\"type\":\"public-key\"}"}`,
		}, byPerson(withToken(a.AddPasskey)), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.passkeys.rename",
			Summary:     "Update the name of a passkey",
			Description: "The name is for the person alone.",
			Tag:         "User",
			Method:      http.MethodPatch,
			Path:        "/api/v1/user/passkeys/{passkey_id}",
			Types:       people,
			Harmless:    true,
			Errors:      []string{"PASSKEY_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"passkey_id":7,"name":"Old phone"}`,
		}, byPerson(a.RenamePasskey), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.passkeys.remove",
			Summary:     "Remove a passkey of the calling user",
			Description: "The passkey signs in no more. Sessions that it began stay; end them on their own.",
			Tag:         "User",
			Method:      http.MethodDelete,
			Path:        "/api/v1/user/passkeys/{passkey_id}",
			Types:       people,
			Risk:        catalog.RiskMedium,
			Harmless:    true,
			Errors:      []string{"PASSKEY_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"passkey_id":7}`,
		}, byPerson(a.RemovePasskey), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.password.change",
			Summary:     "Update the calling user's password",
			Description: "Needs the present password, and a code of an account with a second factor. The user's other logins and all agents end.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/password",
			Types:       people,
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"INVALID_CREDENTIALS", "ACCOUNT_LOCKED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED", "LOGIN_REQUIRED"},
			Example:     `{"password":"correct horse battery","new_password":"a longer horse battery"}`,
		}, byPerson(withToken(a.ChangePassword)), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.locale.change",
			Summary:     "Update the calling user's language",
			Description: "Pages are in this language after the user signs in. Answers follow Accept-Language as before.",
			Tag:         "User",
			Method:      http.MethodPut,
			Path:        "/api/v1/user/locale",
			Types:       people,
			Harmless:    true,
			Errors:      []string{"LOGIN_REQUIRED"},
			Example:     `{"locale":"de"}`,
		}, byPerson(a.ChangeSelf), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.sessions.list",
			Summary:     "List the calling user's sessions",
			Description: "Logins that are good, newest first; never the token itself. API keys and agents have lists of their own.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/sessions",
			Types:       people,
			Errors:      []string{"LOGIN_REQUIRED"},
		}, byPerson(withToken(a.ListSessions)), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.sessions.end",
			Summary:     "Revoke a session of the calling user",
			Description: "The token of the login is refused from then on, on every node.",
			Tag:         "User",
			Method:      http.MethodDelete,
			Path:        "/api/v1/user/sessions/{session_id}",
			Types:       people,
			Risk:        catalog.RiskMedium,
			Harmless:    true,
			Errors:      []string{"SESSION_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"session_id":1846835937820672}`,
		}, byPerson(a.EndSession), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.sessions.end_others",
			Summary:     "Revoke the calling user's other sessions",
			Description: "All logins but the one of the call are refused from then on, on every node.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/sessions/end-others",
			Types:       people,
			Risk:        catalog.RiskMedium,
			Harmless:    true,
			Errors:      []string{"LOGIN_REQUIRED"},
		}, byPerson(withToken(a.EndOtherSessions)), nil),
		catalog.Define(catalog.Operation{
			Name:        "users.sessions.list",
			Summary:     "List the sessions of a user",
			Description: "Logins of a user or customer that are good, newest first; never the token itself.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/users/{id}/sessions",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Errors:      []string{"USER_NOT_FOUND"},
			Example:     `{"id":2}`,
			Noun: &catalog.Noun{
				Name: "session", Path: "sessions",
				Title:   []string{"name"},
				Columns: []string{"name", "created_at", "expires_at"},
			},
		}, withToken(a.ListUserSessions), nil),
		catalog.Define(catalog.Operation{
			Name:        "users.sessions.end",
			Summary:     "Revoke all sessions of a user",
			Description: "All logins and agents of a user or customer end. API keys of the user stay.",
			Tag:         "Client",
			Method:      http.MethodDelete,
			Many:        1000,
			Path:        "/api/v1/users/{id}/sessions",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"USER_NOT_FOUND"},
			Example:     `{"id":2}`,
		}, a.EndUserSessions, nil),
		catalog.Define(catalog.Operation{
			Name:        "users.identities.list",
			Summary:     "List the provider identities of a user",
			Description: "Persons at sign-in providers (OpenID Connect) to whom a user or customer was linked at the first sign-in: one person of a provider at most.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/users/{id}/identities",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Errors:      []string{"USER_NOT_FOUND"},
			Example:     `{"id":2}`,
			Noun: &catalog.Noun{
				Name: "identity", Path: "identities",
				Title:   []string{"provider_subject"},
				Columns: []string{"provider_subject", "issuer", "created_at"},
			},
		}, a.ListUserIdentities, nil),
		catalog.Define(catalog.Operation{
			Name:        "users.identities.end",
			Summary:     "Remove all provider identities of a user",
			Description: "For a person whom a sign-in provider made anew: the next sign-in with the user's verified email links the user again. All logins and agents of the user end.",
			Tag:         "Client",
			Method:      http.MethodDelete,
			Path:        "/api/v1/users/{id}/identities",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"USER_NOT_FOUND", "IDENTITY_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"id":2}`,
		}, byPerson(a.EndUserIdentities), nil),
		catalog.Define(catalog.Operation{
			Name:        "invitations.list",
			Summary:     "List the invitations of the business",
			Description: "Invitations with their status, newest first; never the link itself.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/invitations",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Tool:        catalog.Whole{Name: "list_invitations", Category: "people"},
			Noun: &catalog.Noun{
				Name: "invitation", Path: "invitations", Area: "business", Icon: "mail",
				ID: "invitation_id", Title: []string{"name", "email"}, State: "status", States: "invitation",
				Columns: []string{"name", "email", "status", "account_type", "created_at", "expires_at"},
				Verbs:   []string{"invitations.withdraw"},
			},
		}, a.ListInvitations, nil),
		catalog.Define(catalog.Operation{
			Name:        "invitations.create",
			Summary:     "Create an invitation",
			Many:        a.ImportedInvitations(),
			Description: "The link goes to the person by mail; without a mail server it is shown in the answer, once. The person opens the link within 7 days, gives the email that was invited and chooses a password. A newer invitation of the same email replaces the former one. Only a login may invite.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/invitations",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Secret:      true,
			Errors:      []string{"INVITATION_LIMIT", "ACCOUNT_LIMIT_REACHED", "LOGIN_REQUIRED"},
			Example:     `{"account_type":"client_employee","name":"Ana Lima","email":"ana@acme.example","permissions":["orders:read"]}`,
		}, byPerson(a.Invite), nil),
		catalog.Define(catalog.Operation{
			Name:        "invitations.withdraw",
			When:        []string{"pending", "expired"},
			Summary:     "Withdraw an invitation",
			Description: "The link is refused from then on. An invitation that was accepted stays; disable the user instead.",
			Tag:         "Client",
			Method:      http.MethodDelete,
			Many:        500,
			Path:        "/api/v1/invitations/{id}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"INVITATION_NOT_FOUND", "INVITATION_USED"},
			Example:     `{"id":9001}`,
		}, a.WithdrawInvitation, nil),
		catalog.Define(catalog.Operation{
			Name:        "invitations.accept",
			Summary:     "Accept an invitation",
			Description: "The link works once and for the email that was invited; the fifth other email ends it. The person logs in with email and password afterwards.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/invitations/accept",
			Risk:        catalog.RiskMedium,
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"INVITATION_NOT_FOUND", "INVITATION_USED", "INVITATION_WITHDRAWN", "INVITATION_EXPIRED", "INVITATION_EMAIL_WRONG", "ACCOUNT_LIMIT_REACHED", "BUSINESS_SUSPENDED"},
			Example:     `{"token":"a-token-of-sixty-four-characters","email":"ana@acme.example","password":"long enough"}`,
		}, a.Accept, nil),
		catalog.Define(catalog.Operation{
			Name:        "users.password_reset",
			Summary:     "Create a link to a new password of a user",
			Description: "All logins and agents of the user end, and a link goes to the user by mail; without a mail server it is shown in the answer, once. The user opens it within an hour and chooses a password; an account with a second factor needs a code too. Only a login may create such links.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/users/{id}/password-reset",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"USER_NOT_FOUND", "LOGIN_REQUIRED"},
			Example:     `{"id":2}`,
		}, byPerson(a.MakeReset), nil),
		catalog.Define(catalog.Operation{
			Name:        "user.password_reset.request",
			Summary:     "Send a link to a new password by mail",
			Description: "Each enabled account of the address gets a mail with a link that is good for an hour. The answer is the same whether or not there is one. A further request for the same address within ten minutes sends nothing.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/password-reset/request",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Unlimited, // the gate counts
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"MAIL_UNAVAILABLE"},
			Example:     `{"email":"ana@acme.example"}`,
		}, c.requestReset, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.password_reset.complete",
			Summary:     "Save a new password by a link",
			Description: "The link works once. An account with a second factor needs otp too; without it the answer is 401 SECOND_FACTOR_REQUIRED, and the link still works. All logins and agents of the account end.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/password-reset",
			Risk:        catalog.RiskMedium,
			Harmless:    true,
			NoToken:     true,
			Secret:      true,
			Errors:      []string{"RESET_EXPIRED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"},
			Example:     `{"token":"a-token-of-sixty-four-characters","password":"long enough"}`,
		}, a.CompleteReset, nil),
		catalog.Define(catalog.Operation{
			Name:        "audit.list",
			Summary:     "List the audit trail of the business",
			Description: "Lines newest first, by actor, action, object and time. A line says by which operation, from where and with what outcome something was done, and holds no secret.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/audit",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Tool:        catalog.Whole{Name: "list_audit_lines", Category: "people"},
			Example:     `{"action":"logged_in"}`,
			Noun: &catalog.Noun{
				Name: "audit_line", Path: "audit", Area: "business", Icon: "eye", Key: "a",
				Title: []string{"action"}, State: "outcome", States: "outcome",
				Columns: []string{"at", "actor_name", "action", "target", "outcome", "surface", "ip"},
			},
		}, a.ListAudits, nil),
		catalog.Define(catalog.Operation{
			Name:        "audit.export",
			Summary:     "Get the audit trail as a file",
			Description: "The lines that audit.list chooses as CSV or as JSON lines, without a bound on their number.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/audit/export",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Group:       catalog.Batch,
			Secret:      true,
			Media:       []string{"text/csv", "application/x-ndjson"},
			Example:     `{"format":"jsonl"}`,
		}, func(ctx context.Context, caller cloud.Caller, in account.ExportInput) (catalog.Stream, error) {
			out := catalog.Stream{Size: -1, Type: "text/csv; charset=utf-8", Name: "audit.csv"}
			if in.Format == "jsonl" {
				out.Type, out.Name = "application/x-ndjson", "audit.jsonl"
			}
			var err error
			out.ReadCloser, err = a.ExportAudits(ctx, caller, in)
			return out, err
		}, func(s catalog.Stream) catalog.Answer {
			return catalog.Answer{Body: s, Type: s.Type, Headers: [][2]string{{"Content-Disposition", `attachment; filename="` + s.Name + `"`}, {"X-Content-Type-Options", "nosniff"}}}
		}),
		catalog.Define(catalog.Operation{
			Name:        "users.second_factor.reset",
			Summary:     "Remove the second factor of a user",
			Description: "A way in for a user or customer who lost it: passkeys are removed too. All logins and agents of the user end, and the user sees when it was removed. An administrator's own is removed at the machine or by another administrator.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/users/{id}/second-factor/reset",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"USER_NOT_FOUND", "SECOND_FACTOR_MISSING", "SECOND_FACTOR_OWN", "LOGIN_REQUIRED"},
			Example:     `{"id":2}`,
		}, byPerson(a.ResetFactor), nil),
	}
}

// withToken gives an operation the token of its call.
func withToken[In, Out any](fn func(context.Context, cloud.Caller, In, cloud.Token) (Out, error)) func(context.Context, cloud.Caller, In) (Out, error) {
	return func(ctx context.Context, c cloud.Caller, in In) (Out, error) {
		t, _ := catalog.TokenOf(ctx)
		return fn(ctx, c, in, t)
	}
}

// Confirm checks the password of a caller with the limits of logins, as
// account.Config.Confirm.
func Confirm(gate *auth.Gate) func(context.Context, cloud.Account, string) error {
	return func(ctx context.Context, a cloud.Account, password string) error {
		state, err := gate.Confirm(ctx, a, password, catalog.AddressOf(ctx))
		if err != nil && !state.OK {
			return &catalog.Limited{State: state}
		}
		return err
	}
}

type stepInput struct {
	Challenge string `json:"challenge" required:"true" max:"128" doc:"Of the login's answer"`
	OTP       string `json:"otp" required:"true" max:"64" doc:"Time-based code, or a recovery code"`
}

// requestReset keeps a wish for a link to a new password. The gate bounds how often.
func (c Config) requestReset(ctx context.Context, caller cloud.Caller, in account.ForgottenInput) (account.Done, error) {
	if state, err := c.Gate.Reset(in.Email, catalog.AddressOf(ctx)); err != nil {
		return account.Done{}, &catalog.Limited{State: state}
	}
	return account.AccessOf(c.Accounts).RequestReset(ctx, caller, in)
}

type beginPasskeyInput struct {
	Challenge string `json:"challenge" max:"128" doc:"Of the login's answer, for its second step"`
}

// beginPasskey gives the options of a login. The gate bounds how often.
func (c Config) beginPasskey(ctx context.Context, _ cloud.Caller, in beginPasskeyInput) (account.PasskeyOptionsOutput, error) {
	options, state, err := c.Gate.BeginPasskey(ctx, auth.PasskeyTry{Challenge: in.Challenge, IP: catalog.AddressOf(ctx)})
	if err != nil && !state.OK {
		err = &catalog.Limited{State: state}
	}
	return account.PasskeyOptionsOutput{Result: err == nil, Options: options}, err
}

type passkeyInput struct {
	Credential string `json:"credential" required:"true" max:"16384" doc:"AuthenticationResponseJSON of Web Authentication, as text"`
	Challenge  string `json:"challenge" max:"128" doc:"As at the options"`
	DeviceName string `json:"device_name" max:"64" doc:"Shown in the list of sessions"`
	RememberMe bool   `json:"remember_me"`
}

func (c Config) loginByPasskey(ctx context.Context, _ cloud.Caller, in passkeyInput) (loginOutput, error) {
	l, state, err := c.Gate.Passkey(ctx, auth.PasskeyTry{Credential: in.Credential, Challenge: in.Challenge, Name: in.DeviceName, Remember: in.RememberMe, IP: catalog.AddressOf(ctx)})
	if err != nil {
		if !state.OK {
			err = &catalog.Limited{State: state}
		}
		return loginOutput{}, err
	}
	return showLogin(l), nil
}

// secondStep finishes a login. The gate bounds how often it is tried.
func (c Config) secondStep(ctx context.Context, _ cloud.Caller, in stepInput) (loginOutput, error) {
	l, state, err := c.Gate.Second(ctx, auth.Step{Challenge: in.Challenge, Code: in.OTP, IP: catalog.AddressOf(ctx)})
	if err != nil {
		if !state.OK {
			err = &catalog.Limited{State: state}
		}
		return loginOutput{}, err
	}
	return showLogin(l), nil
}

func showLogin(l auth.Login) loginOutput {
	return loginOutput{Result: true, AccessToken: l.Token, TokenType: "Bearer", ExpiresAt: l.ExpiresAt.In(l.Business.Location()).Format(time.DateTime),
		AccountType: l.Account.Type, User: userOf(l.Account, l.Business), SetsUp: l.SetsUp}
}
