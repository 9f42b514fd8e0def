package main

import (
	"net/url"
	"os"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// signInSettings are those of a business's sign-in provider (OpenID Connect).
type signInSettings struct {
	Business   string `yaml:"business" json:"business"` // code
	Name       string `yaml:"name" json:"name"`         // on the login page
	Issuer     string `yaml:"issuer" json:"issuer"`
	ClientID   string `yaml:"client_id" json:"client_id"`
	SecretFile string `yaml:"secret_file" json:"secret_file"`
	// SecretEnv names a variable of the environment in place of a file.
	SecretEnv string            `yaml:"secret_env" json:"secret_env"`
	RoleClaim string            `yaml:"role_claim" json:"role_claim"` // empty: roles are kept here
	Roles     map[string]string `yaml:"roles" json:"roles"`           // value of the claim: client_admin or client_employee
	Required  bool              `yaml:"required" json:"required"`     // people of the business sign in this way alone
}

// checkSignIn reads the secrets of sign-in providers. Nothing is connected to.
func (s *settings) checkSignIn(bad func(string, ...any)) {
	s.providers = nil
	seen := map[string]bool{}
	for i, x := range s.SignIn {
		say := func(format string, a ...any) { bad("sign_in.%d."+format, append([]any{i}, a...)...) }
		u, err := url.Parse(x.Issuer)
		switch {
		case x.Business == "" || seen[strings.ToLower(x.Business)]:
			say("business: name the code of a business, each once")
		case err != nil || !isURL(x.Issuer, "https", "http") || u.Scheme == "http" && !cli.IsLoopback(u.Hostname()+":0"):
			say("issuer %q: use the provider's address, https://…", x.Issuer)
		case x.ClientID == "":
			say("client_id: set the one that the provider gave")
		case (x.SecretFile == "") == (x.SecretEnv == ""):
			say("secret_file: set either secret_file or secret_env")
		case (x.RoleClaim == "") != (len(x.Roles) == 0):
			say("role_claim: set both role_claim and roles, or neither")
		}
		seen[strings.ToLower(x.Business)] = true
		p := oidc.Provider{Business: x.Business, Name: x.Name, Issuer: x.Issuer, ClientID: x.ClientID, RoleClaim: x.RoleClaim, Required: x.Required, Roles: map[string]cloud.AccountType{}}
		if p.Name == "" {
			p.Name = x.Business
		}
		for value, role := range x.Roles {
			if p.Roles[value] = cloud.AccountType(role); role != string(cloud.ClientAdmin) && role != string(cloud.ClientEmployee) {
				say("roles.%s %q: use client_admin or client_employee", value, role)
			}
		}
		switch {
		case x.SecretEnv != "":
			p.Secret = os.Getenv(x.SecretEnv)
		case x.SecretFile != "":
			raw, err := cli.ReadSecret(x.SecretFile)
			if err != nil {
				say("secret_file: %w", err)
				continue
			}
			p.Secret = strings.Trim(string(raw), "\r\n")
		}
		if p.Secret == "" {
			say("secret_file: there is no secret in it, or in secret_env")
		}
		s.providers = append(s.providers, p)
	}
	if len(s.SignIn) > 0 && s.BaseURL == "" {
		bad("sign_in: set base_url too, providers send people back to it")
	}
}
