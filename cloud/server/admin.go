package server

import (
	"crypto/tls"

	"github.com/postern-io/postern/cloud/admin"
)

// AdminConfig is of the listener for who runs the node.
type AdminConfig struct {
	Token string // that requests need; empty: only this machine is served
	TLS   bool   // with the certificates of Config.TLS
}

// newAdmin builds what serves the listener for who runs the node.
func newAdmin(s *Server) *admin.Server {
	return admin.New(admin.Config{Token: s.cfg.Admin.Token, Gatherer: s.Metrics, Ready: s.ready, Log: s.log})
}

// serveAdmin serves metrics, profiles and health until it is closed, which is after
// everything that they tell of.
func serveAdmin(s *Server, ln Listeners, fail chan<- error) (stop func() error) {
	at := ln.Admin
	if s.cfg.Admin.TLS {
		at = tls.NewListener(at, s.tls)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.admin.Serve(at); err != nil {
			fail <- err
		}
	}()
	return func() error {
		err := s.admin.Close()
		<-done
		return err
	}
}
