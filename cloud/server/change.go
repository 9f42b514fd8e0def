package server

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/hook"
	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/push"
)

// Change takes from cfg what can change while the server runs; all else of cfg is left
// alone. It takes how many connections may be open, where webhooks may go, and, where the
// server was built with one, the next certificate files, mail server, SMS gateway,
// push provider and admin token. Connections that are open stay. On error nothing has changed. Only one
// goroutine may call it.
func (s *Server) Change(cfg Config) error {
	if s.files != nil && cfg.TLS.Cert != "" {
		if err := s.files.use(cfg.TLS.Cert, cfg.TLS.Key); err != nil {
			return err
		}
	}
	s.rest.SetConnections(cfg.HTTPConnections)
	s.crowd.SetMost(cfg.MQTTConnections)
	s.Guard.Set(guardOf(s, cfg))
	if s.cfg.Admin.Token != "" && cfg.Admin.Token != "" {
		s.admin.SetToken(cfg.Admin.Token)
	}
	if s.cfg.Mail != nil && cfg.Mail != nil {
		s.mailServer.use(cfg.Mail)
	}
	if s.cfg.PushURL != "" && cfg.PushURL != "" {
		s.pushHook.Store(hookOf(s, cfg))
	}
	if s.cfg.SMSURL != "" && cfg.SMSURL != "" {
		s.smsGateway.use(gatewayOf(s, cfg))
	}
	return nil
}

// guardOf is where webhooks of cfg may go. Our own names are those that the server was
// built with.
func guardOf(s *Server, cfg Config) fetch.GuardConfig {
	return fetch.GuardConfig{Networks: cfg.WebhookNetworks, Ports: cfg.WebhookPorts, HTTP: cfg.WebhookHTTP, Hosts: slices.Concat(ownNames(s.cfg.BaseURL), ownNames(s.cfg.WebhookProxy), cfg.WebhookHosts)}
}

// changingCarrier hands notifications to the mail server or gateway of the moment.
type changingCarrier struct {
	atomic.Pointer[notification.Carrier]
}

func (c *changingCarrier) use(x notification.Carrier) { c.Store(&x) }

// Send implements notification.Carrier.
func (c *changingCarrier) Send(ctx context.Context, m cloud.Notification) error {
	return (*c.Load()).Send(ctx, m)
}

// changingHook is a push.Provider behind the address and secret of the moment.
type changingHook struct{ atomic.Pointer[push.Hook] }

// Send implements push.Provider.
func (c *changingHook) Send(ctx context.Context, p cloud.Push, devices []cloud.PushToken) ([]string, error) {
	return c.Load().Send(ctx, p, devices)
}

// provider is the push provider; nil: there is none.
func provider(s *Server) push.Provider {
	if s.cfg.PushURL == "" {
		return nil
	}
	s.pushHook.Store(hookOf(s, s.cfg))
	return &s.pushHook
}

// hookOf is the push provider of cfg.
func hookOf(s *Server, cfg Config) *push.Hook {
	return &push.Hook{Address: addressOf(s, cfg.PushURL, cfg.PushSecret)}
}

// gatewayOf is the SMS gateway of cfg.
func gatewayOf(s *Server, cfg Config) *notification.Gateway {
	return &notification.Gateway{Address: addressOf(s, cfg.SMSURL, cfg.SMSSecret)}
}

// addressOf is an address of a provider, which must be one that webhooks may go to.
func addressOf(s *Server, url, secret string) hook.Address {
	f := fetch.NewFetcher(fetch.Config{Guard: s.Guard, Proxy: s.Proxy, Dial: s.cfg.WebhookDial})
	return hook.Address{URL: url, Secret: secret, Post: func(ctx context.Context, url string, headers [][2]string, body []byte) (int, []byte, error) {
		d, err := f.Post(ctx, url, headers, body)
		return d.Status, d.Body, err
	}}
}
