package setup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// Input is what the first business and its administrator need. Lengths are in
// bytes.
type Input struct {
	Business string // name of the business, at most 120
	Code     string // of the business: a-z 0-9 -, at most 32; empty: made of the name
	Timezone string // IANA name; empty: UTC
	Country  string // ISO 3166-1 alpha-2; empty: none
	Locale   string // of the business and its administrator; empty: en

	Name     string // of the person, at most 120; empty: the email
	Email    string
	Password string // 10 to 256
}

var (
	businessCode = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	notCode      = regexp.MustCompile(`[^a-z0-9]+`)
)

// person checks what every administrator and operator has.
func (in *Input) person(f check.Fields) {
	in.Email = strings.ToLower(strings.TrimSpace(in.Email))
	name, host, ok := strings.Cut(in.Email, "@")
	if !ok || name == "" || !strings.Contains(host, ".") || strings.ContainsAny(in.Email, " \t\r\n<>,;") || strings.Contains(host, "@") || len(in.Email) > 256 {
		f.Add("email", "Use an email address, such as jane@example.com.")
	}
	if in.Name = strings.TrimSpace(in.Name); in.Name == "" {
		in.Name = in.Email
	} else {
		f.Line("name", in.Name, 120)
	}
	if len(in.Password) < 10 || len(in.Password) > 256 {
		f.Add("password", "A password has 10 to 256 characters.")
	}
}

// business checks what a new business has, and makes its code.
func (in *Input) business(f check.Fields) {
	if in.Business = strings.TrimSpace(in.Business); in.Business == "" {
		f.Say("business", check.MessageRequired)
	} else {
		f.Line("business", in.Business, 120)
	}
	if in.Code == "" {
		in.Code = codeOf(in.Business)
	}
	if !businessCode.MatchString(in.Code) {
		f.Add("business_code", "Use 1 to 32 of a-z, 0-9 and -, such as harbour-lockers.")
	}
	if in.Timezone == "" {
		in.Timezone = "UTC"
	}
	if _, err := time.LoadLocation(in.Timezone); err != nil || in.Timezone == "Local" || len(in.Timezone) > 64 {
		f.Add("timezone", "Use an IANA time zone, such as America/Toronto.")
	}
	if in.Country != "" && !cloud.IsCountry(in.Country) {
		f.Add("country", "Use a country code such as CA.")
	}
}

// codeOf makes a business code of a name.
func codeOf(name string) string {
	code := strings.Trim(notCode.ReplaceAllString(strings.ToLower(name), "-"), "-")
	code = strings.Trim(code[:min(len(code), 32)], "-")
	if code == "" {
		return "business"
	}
	return code
}

// Made is what was made.
type Made struct {
	Business cloud.Business // zero for an operator of the platform
	Account  cloud.Account
	// Replaced says that the account existed and has a new password.
	Replaced bool
	// Token is a login of the account, where one was asked for.
	Token string
}

// Begin makes the first business with its administrator for the holder of the
// one-time value, and logs the administrator in for life. Exactly one of several
// at once succeeds. Errors: ErrDone, ErrToken, VALIDATION_FAILED.
func (s *Service) Begin(ctx context.Context, token string, in Input, life time.Duration) (Made, error) {
	if err := s.CheckToken(ctx, token); err != nil { // before a password is hashed
		return Made{}, err
	}
	return s.first(ctx, in, "set-up address", life, func(row cloud.Setup) error { return s.checkToken(row, token) })
}

// Ensure makes the first business with its administrator where there is none;
// made is false where one exists. It is for installations without a person.
// Error: VALIDATION_FAILED.
func (s *Service) Ensure(ctx context.Context, in Input) (made bool, err error) {
	_, err = s.first(ctx, in, "settings", 0, func(cloud.Setup) error { return nil })
	if errors.Is(err, ErrDone) {
		return false, nil
	}
	return err == nil, err
}

// first makes the first business and its administrator, where may lets it.
func (s *Service) first(ctx context.Context, in Input, way string, life time.Duration, may func(cloud.Setup) error) (made Made, err error) {
	f := check.Fields{}
	in.person(f)
	in.business(f)
	if err := f.Err(); err != nil {
		return Made{}, err
	}
	hash := auth.HashPassword(in.Password)
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		row, err := openRow(v)
		if err == nil {
			err = may(row)
		}
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		made, err = newBusiness(v, ch, in, hash, way)
		if err == nil && life > 0 {
			made.Token = auth.NewToken()
			now := made.Account.CreatedAt
			ch.Tokens = []cloud.Token{{Hash: auth.Hash(made.Token), AccountID: made.Account.ID, Name: "console", CreatedAt: now, ExpiresAt: now.Add(life)}}
		}
		closeAddress(ch, row)
		return ch, err
	})
	return made, err
}

// closeAddress ends the one-time address. Every decision that makes an
// administrator does, so that those about the first one exclude each other.
func closeAddress(ch *cloud.Changes, row cloud.Setup) {
	row.Nonce, row.ExpiresAt = nil, time.Time{}
	ch.Setup = &row
}

// newBusiness puts a business with its administrator into ch.
func newBusiness(v cloud.View, ch *cloud.Changes, in Input, hash, way string) (made Made, err error) {
	if _, err := v.BusinessByCode(in.Code); err == nil {
		f := check.Fields{}
		f.Add("business_code", "A business with this code exists.")
		return made, f.Err()
	} else if !errors.Is(err, cloud.ErrNotFound) {
		return made, err
	}
	id, err := v.NewID(cloud.BusinessIDs)
	if err != nil {
		return made, err
	}
	made.Business = cloud.Business{ID: cloud.BusinessID(id), Code: in.Code, Name: in.Business, Timezone: in.Timezone, SupportEmail: in.Email,
		Settings: cloud.Settings{Country: strings.ToUpper(in.Country), DefaultLocale: in.Locale}}
	ch.Businesses = append(ch.Businesses, made.Business)
	made.Account, err = newAccount(v, ch, cloud.ClientAdmin, made.Business.ID, in, hash, way)
	return made, err
}

func newAccount(v cloud.View, ch *cloud.Changes, kind cloud.AccountType, b cloud.BusinessID, in Input, hash, way string) (cloud.Account, error) {
	id, err := v.NewID(cloud.AccountIDs)
	if err != nil {
		return cloud.Account{}, err
	}
	now := time.Now().UTC()
	a := cloud.Account{ID: cloud.AccountID(id), BusinessID: b, Type: kind, Email: in.Email, Name: in.Name, PasswordHash: hash, Locale: in.Locale, Enabled: true, CreatedAt: now}
	ch.Accounts = append(ch.Accounts, a)
	ch.Audits = append(ch.Audits, audit(a, now, "account_set_up", way))
	return a, nil
}

func audit(a cloud.Account, now time.Time, action, way string) cloud.Audit {
	return cloud.Audit{BusinessID: a.BusinessID, At: now, Actor: "system", Action: action, Target: fmt.Sprintf("account:%d", a.ID), Detail: fmt.Sprintf(`{"by":%q,"account_type":%q}`, way, a.Type)}
}
