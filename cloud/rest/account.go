package rest

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

func (s *Server) accountOperations() []Operation {
	// What login needs of a request, its address, operations do not know.
	login := Operation{Name: "user.login", Method: "POST", Path: "/api/v1/user/login", Group: Unlimited, NoToken: true, Secret: true, call: s.login}
	return []Operation{
		login,
		define(Operation{Name: "user.me", Method: "GET", Path: "/api/v1/user/me", Types: everyone}, s.me, nil),
		define(Operation{Name: "user.logout", Method: "POST", Path: "/api/v1/user/logout", Types: everyone}, s.logout, nil),
	}
}

type loginInput struct {
	Email      string `json:"email"`
	Password   string `json:"password"`
	ClientCode string `json:"client_code"`
	DeviceName string `json:"device_name"`
	Remember   bool   `json:"remember_me"`
}

type loginOutput struct {
	Result      bool              `json:"result"`
	AccessToken string            `json:"access_token"`
	TokenType   string            `json:"token_type"`
	ExpiresAt   string            `json:"expires_at"` // YYYY-MM-DD HH:MM:SS in the business's time zone
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
	return user{ID: a.ID, Name: a.Name, Email: cloud.OrNull(a.Email), AccountType: a.Type, BusinessID: cloud.OrNull(a.BusinessID), Locale: cloud.OrNull(a.Locale), Timezone: cloud.OrNull(b.Timezone)}
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
func (s *Server) login(ctx context.Context, _ cloud.Caller, q *query) (Answer, error) {
	var in loginInput
	if err := decodeBody(q.body, &in); err != nil {
		return Answer{}, err
	}
	if err := in.check(); err != nil {
		return Answer{}, err
	}
	l, state, err := s.cfg.Gate.Login(ctx, auth.Try{Email: in.Email, Password: in.Password, ClientCode: in.ClientCode, Name: in.DeviceName, Remember: in.Remember, IP: q.ip})
	if err != nil {
		if !state.OK {
			err = &limited{state}
		}
		return Answer{}, err
	}
	return Answer{Body: loginOutput{Result: true, AccessToken: l.Token, TokenType: "Bearer", ExpiresAt: l.ExpiresAt.In(l.Business.Location()).Format(time.DateTime),
		AccountType: l.Account.Type, User: userOf(l.Account, l.Business)}}, nil
}

type none struct{}

type meOutput struct {
	Result bool `json:"result"`
	User   user `json:"user"`
}

func (s *Server) me(ctx context.Context, c cloud.Caller, _ none) (out meOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		if errors.Is(err, cloud.ErrNotFound) { // of the platform's own people
			err = nil
		}
		out = meOutput{Result: true, User: userOf(c.Account, b)}
		return err
	})
	return out, err
}

type doneOutput struct {
	Result bool `json:"result"`
}

// logout revokes the token that the call came with.
func (s *Server) logout(ctx context.Context, _ cloud.Caller, _ none) (doneOutput, error) {
	t, ok := ctx.Value(tokenKey{}).(cloud.Token)
	if !ok {
		return doneOutput{}, errors.New("log out: the call has no token")
	}
	if err := s.cfg.Auth.Revoke(ctx, t); err != nil {
		return doneOutput{}, err
	}
	return doneOutput{Result: true}, nil
}

type partnerMeOutput struct {
	Result   bool         `json:"result"`
	Provider providerBody `json:"provider"`
}

type providerBody struct {
	ID              cloud.ProviderID `json:"id"`
	Code            string           `json:"code"`
	Name            string           `json:"name"`
	Status          string           `json:"status"`
	LivemodeAllowed bool             `json:"livemode_allowed"`
	Services        []string         `json:"services"`
	Limits          map[string]int   `json:"limits"`
}

func (s *Server) partnerMe(_ context.Context, c cloud.Caller, _ none) (partnerMeOutput, error) {
	p := c.Provider
	services := p.Services
	if services == nil {
		services = []string{}
	}
	l := s.cfg.Limits
	return partnerMeOutput{Result: true, Provider: providerBody{ID: p.ID, Code: p.Code, Name: p.Name, Status: "active", LivemodeAllowed: p.LivemodeAllowed,
		Services: services, Limits: map[string]int{"requests_per_minute": l.Authenticated, "door_openings_per_minute": l.Doors, "replays_per_minute": l.Replay}}}, nil
}

type enrolInput struct {
	DeviceCode string `json:"device_code"`
	Token      string `json:"token"`
}

func (s *Server) enrol(ctx context.Context, _ cloud.Caller, in enrolInput) (any, error) {
	fields := map[string][]string{}
	if in.DeviceCode == "" || len(in.DeviceCode) > 32 {
		fields["device_code"] = []string{"The value is required."}
	}
	if in.Token == "" || len(in.Token) > 256 {
		fields["token"] = []string{"The value is required."}
	}
	if len(fields) > 0 {
		return nil, &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: fields}
	}
	return s.cfg.Enrol(ctx, in.DeviceCode, in.Token)
}
