package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// SandboxDevice is a cabinet to make.
type SandboxDevice struct {
	Code, Name, Type    string
	Layout              []wire.LayoutDoor
	Latitude, Longitude float64
	Address             string
	PostalCode, Country string // of the address
	Test                bool   // what it reports are tests
	Unsigned            bool   // it has no key of its own and signs nothing
}

// SandboxConfig says what a sandbox holds.
type SandboxConfig struct {
	Devices    []SandboxDevice
	WebhookURL string // of the provider; empty: none
	Codes      wire.CodeParams
	Times      wire.Times
	BaseURL    string
	Passwords  bool      // hash passwords, so that people can log in
	HashCost   auth.Cost // of those; zero: that of people's passwords
}

// SandboxAccount is a person's way in.
type SandboxAccount struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Token    string `json:"token"`
}

// Sandbox is what was made, with its secrets: they are shown once.
type Sandbox struct {
	BaseURL    string         `json:"base_url"`
	Admin      SandboxAccount `json:"admin"`
	Staff      SandboxAccount `json:"staff"`
	Contractor SandboxAccount `json:"contractor"`
	Driver     SandboxAccount `json:"driver"`
	Customer   SandboxAccount `json:"customer"`
	Provider   struct {
		Token         string `json:"token"`
		WebhookSecret string `json:"webhook_secret"`
	} `json:"provider"`
	Devices         []SandboxSecrets `json:"devices"`
	TrackingNumbers []string         `json:"tracking_numbers"`

	ProviderCaller cloud.Caller `json:"-"`
	AdminCaller    cloud.Caller `json:"-"`
}

// SandboxSecrets are a device's.
type SandboxSecrets struct {
	DeviceID    cloud.DeviceID  `json:"device_id"`
	DeviceCode  string          `json:"device_code"`
	Secret      string          `json:"secret"`
	SecretsFile string          `json:"secrets_file"` // relative to the data folder
	Enrolled    device.Enrolled `json:"-"`
}

// Sandbox makes a business with its accounts, a provider, its webhook endpoint
// and devices. It fails when the database holds a business of that name.
func (s *Server) Sandbox(ctx context.Context, cfg SandboxConfig) (Sandbox, error) {
	if cfg.Codes == (wire.CodeParams{}) {
		cfg.Codes = passcode.DefaultParams()
	}
	out := Sandbox{BaseURL: cfg.BaseURL, TrackingNumbers: []string{}}
	now := time.Now().UTC()
	err := s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		ch, sb, err := s.sandbox(v, cfg, now)
		if err == nil {
			sb.BaseURL, sb.TrackingNumbers = out.BaseURL, out.TrackingNumbers
			out = sb
		}
		return ch, err
	})
	if err != nil {
		return out, fmt.Errorf("make sandbox: %w", err)
	}
	for i := range out.Devices {
		d := &out.Devices[i]
		d.SecretsFile = filepath.Join("devices", d.DeviceCode+".json")
		if err := writeSecrets(filepath.Join(s.cfg.Dir, d.SecretsFile), d.Enrolled); err != nil {
			return out, err
		}
	}
	return out, nil
}

func writeSecrets(path string, e device.Enrolled) error {
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("encode secrets of %s: %w", e.DeviceCode, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder for secrets: %w", err)
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

func (s *Server) sandbox(v cloud.View, cfg SandboxConfig, now time.Time) (*cloud.Changes, Sandbox, error) {
	var out Sandbox
	ids := setup.IDs{View: v}
	biz := cloud.Business{ID: cloud.BusinessID(ids.Next(cloud.BusinessIDs)), Code: "acme", Name: "Acme Logistics", Timezone: "America/Toronto",
		SupportPhone: "+1 416 555 0100", SupportEmail: "help@acme.example",
		Settings: cloud.Settings{Country: "CA", Currency: "CAD", Apps: []cloud.App{{Code: "customer-app", Enabled: true}, {Code: "driver-app", Enabled: true}}, Features: []cloud.Feature{{Family: "order_chat", Enabled: true}, {Family: "contractor_assignment", Enabled: true}}}}
	prov := cloud.Provider{ID: cloud.ProviderID(ids.Next(cloud.ProviderIDs)), BusinessID: biz.ID, Code: "swiftparcel", Name: "Swift Parcel",
		Services: []string{"locker", "third_party"}, LivemodeAllowed: true, CreatedAt: now}
	ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{biz}, Providers: []cloud.Provider{prov}}}
	account := func(t cloud.AccountType, role, name string, p cloud.ProviderID) (cloud.Account, SandboxAccount) {
		a := cloud.Account{ID: cloud.AccountID(ids.Next(cloud.AccountIDs)), BusinessID: biz.ID, Type: t, Name: name, ProviderID: p, Enabled: true, CreatedAt: now}
		sa := SandboxAccount{Token: auth.NewToken()}
		if p == 0 {
			a.Email = role + "@acme.example"
			sa.Email, sa.Password = a.Email, auth.NewToken()[:16]
			if cfg.Passwords {
				a.PasswordHash = cmp.Or(cfg.HashCost, auth.PersonCost).Hash(sa.Password)
			}
		}
		if t == cloud.ClientEmployee {
			a.Permissions = cloud.AllScopes()
		}
		ch.Accounts = append(ch.Accounts, a)
		tok := cloud.Token{Hash: auth.Hash(sa.Token), AccountID: a.ID, Name: "sandbox", CreatedAt: now, ExpiresAt: now.AddDate(1, 0, 0)}
		if p != 0 { // those of providers have an id, so that they can be revoked
			tok.ID = cloud.TokenID(ids.Next(cloud.TokenIDs))
		}
		ch.Tokens = append(ch.Tokens, tok)
		return a, sa
	}
	admin, at := account(cloud.ClientAdmin, "admin", "Mina Roy", 0)
	out.Admin, out.AdminCaller = at, cloud.Caller{Account: admin}
	_, out.Staff = account(cloud.ClientEmployee, "staff", "Kim Park", 0)
	_, out.Contractor = account(cloud.Broker, "contractor", "Ravi Das", 0)
	_, out.Driver = account(cloud.DriverAccount, "driver", "Sam Lee", 0)
	_, out.Customer = account(cloud.Customer, "customer", "Noor Shop", 0)
	pa, pt := account(cloud.ProviderType, "", "Swift Parcel", prov.ID)
	out.Provider.Token = pt.Token
	out.ProviderCaller = cloud.Caller{Account: pa, Provider: prov}
	secret := auth.NewToken()[:43]
	out.Provider.WebhookSecret = secret
	if cfg.WebhookURL != "" {
		ch.Endpoints = []cloud.Endpoint{{ID: cloud.EndpointID(ids.Next(cloud.EndpointIDs)), BusinessID: biz.ID, ProviderID: prov.ID, Kind: "locker_provider",
			URL: cfg.WebhookURL, SandboxEnabled: true, Events: []string{"*"}, Secret: []byte(secret), Enabled: true, Status: "healthy", StatusSince: now, CreatedAt: now}}
	}
	for _, d := range cfg.Devices {
		s.sandboxDevice(ch, &out, &ids, cfg, d, biz, now)
	}
	s.Mocks.Rows(ch, ids.Next, biz, prov, cloud.MockCodePrefix+prov.Code, now)
	return ch, out, ids.Err
}

func (s *Server) sandboxDevice(ch *cloud.Changes, out *Sandbox, ids *setup.IDs, cfg SandboxConfig, d SandboxDevice, biz cloud.Business, now time.Time) {
	made := device.NewSecrets()
	var seed, upKey []byte
	if !d.Unsigned {
		seed, upKey = signed.NewSeed()
	}
	row := setup.Cabinet{Code: d.Code, Name: d.Name, Type: d.Type, Address: d.Address, PostalCode: d.PostalCode, Country: d.Country, Latitude: d.Latitude, Longitude: d.Longitude, Layout: d.Layout, Times: cfg.Times,
		Codes: cfg.Codes, Test: d.Test}.Rows(ch, ids.Next, biz, s.pinnedKeys(), now)
	row.EnrolledAt, row.UpKey, row.SecretMAC = now, upKey, device.SecretMAC(s.Keys.Server, d.Code, made.Secret)
	row.SealedCode = locker.SealSecrets(s.Box, locker.CodeSecrets{Salt: made.Salt, Key: made.Key, Params: cfg.Codes})
	enrolled := s.Enrolled(d.Code, made)
	enrolled.DeviceKey = seed
	out.Devices = append(out.Devices, SandboxSecrets{DeviceID: row.ID, DeviceCode: d.Code, Secret: made.Secret, Enrolled: enrolled})
}
