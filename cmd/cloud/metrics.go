package main

import (
	"os"
	"strings"

	"github.com/postern-io/postern/cloud/admin"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// usualAdmin is where metrics, profiles and health are unless set otherwise.
const usualAdmin = "127.0.0.1:9464"

// adminSettings are of the listener for who runs the node.
type adminSettings struct {
	Listen    string `yaml:"listen" json:"listen"`
	TokenFile string `yaml:"token_file" json:"token_file"`
	TokenEnv  string `yaml:"token_env" json:"token_env"`
	TLS       bool   `yaml:"tls" json:"tls"` // with the certificate of tls

	token string
}

func (a adminSettings) tokenState() string {
	if a.token == "" {
		return "not set"
	}
	return "set"
}

// checkAdmin reads the token, without which only the loopback is served.
func (s *settings) checkAdmin(bad func(string, ...any)) {
	a := &s.Admin
	switch {
	case a.TokenFile != "" && a.TokenEnv != "":
		bad("admin: set token_file or token_env, not both")
		return
	case a.TokenFile != "":
		raw, err := cli.ReadSecret(a.TokenFile)
		if err != nil {
			bad("admin.token_file: %w", err)
			return
		}
		a.token = strings.TrimSpace(string(raw))
	case a.TokenEnv != "":
		a.token = strings.TrimSpace(os.Getenv(a.TokenEnv))
	}
	named := a.TokenFile != "" || a.TokenEnv != ""
	if named && len(a.token) < admin.MinToken {
		bad("admin: the token has fewer than %d characters; make one with openssl rand -hex 16", admin.MinToken)
	}
	if a.Listen != "" && !named && !cli.IsLoopback(a.Listen) {
		bad("admin.listen %q: metrics and profiles beyond the loopback need a token; set admin.token_file", a.Listen)
	}
	if a.TLS && !s.TLS.hasCertificate() {
		bad("admin.tls: set tls.cert and tls.key, or tls.names for certificates that are fetched")
	}
}
