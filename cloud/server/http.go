package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern"
	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/app"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/artefact"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/push"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// notBuilt are the families that this version does not have.
var notBuilt = []string{"ops_agent", "sms_marketing"}

// faces builds what is served over HTTP.
func (s *Server) faces() error {
	passkeys, err := auth.NewPasskeys(s.cfg.BaseURL, s.Keys.passkeys())
	if err != nil {
		return err
	}
	service := auth.New(s.Store).WithPasskeys(passkeys).Demanding(s.demanding())
	s.rates.gate.Nodes = s.member.Cores
	gate := auth.NewGate(service, s.rates.gate)
	parcels := tracking.New(s.Store).SignFiles(s.Files.Address).MoveOrders(order.CarriersOf(s.orders)).SendParcels(order.ParcelsOf(s.orders))
	tracking.LimitEvents(parcels, s.cfg.TimelineEvents)
	if !slices.Contains(s.cfg.Unavailable, chat.Feature) {
		parcels.InviteToChat(s.chats.Invite)
	}
	s.parcels = parcels
	s.Store.OnCommit(parcels.Committed)
	accounts := account.New(account.Config{Store: s.Store, Confirm: api.Confirm(gate),
		Unavailable: slices.Concat(notBuilt, s.cfg.Unavailable), MailBase: s.mailBase(), Passkeys: passkeys, Mocks: s.Mocks})
	sendNotifications(s, account.AccessOf(accounts))
	var languages []string
	for _, l := range locale.All() {
		languages = append(languages, l.Code)
	}
	apps := app.New(app.Config{Store: s.Store, Feature: accounts.Gate, Languages: languages, Text: func(lang, key string) string { return locale.Word(lang, key) }})
	s.platform = platform.New(platform.Config{Store: s.Store, InvitationPath: account.InvitationPath, MailBase: s.mailBase(), Jobs: s.Store, Over: store.ExportOver, Archives: s.Files.Archives(), DigestKey: s.Keys.digests(), Open: s.openFile})
	s.line = catalog.NewPipeline(catalog.Config{FindToken: s.findToken, FindRecipient: s.chats.FindRecipient, Feature: accounts.Gate, Hidden: api.PricesHidden, Calls: s.Store, Hold: s.holdCall, Limits: s.rates.calls, Nodes: s.member.Cores, Spans: s.spans, Log: s.log})
	parcels.Guard(tracking.GuardConfig{Links: s.Keys.Links(), Legacy: s.cfg.LegacyNumbers, Lookups: s.line.Lookups(), Log: s.log})
	approvals := approval.New(approval.Config{Store: s.Store, Run: s.runApproved, Foresee: s.foreseeApproved, Holds: catalog.Holds, Message: locale.Error, DigestKey: s.Keys.digests()})
	s.jobs = job.New(job.Config{Store: s.Store, Pipeline: s.line, DigestKey: s.Keys.digests(), Log: s.log, Message: locale.Error, Field: locale.FieldOf, Word: locale.Word, Country: locale.CountryIn, Languages: languages})
	s.Catalog = api.New(api.Config{Jobs: s.jobs, Store: s.Store, Pipeline: s.line, Gate: gate, Auth: service, Lockers: s.Lockers, Mocks: s.Mocks, Tracking: parcels,
		Receivers: s.webhooks, Orders: s.orders, Routes: s.routes, Accounts: accounts, Apps: apps, Files: s.Files, Live: s.Live, Pushes: push.NewReader(s.Store), Platform: s.platform, Approvals: approvals, Chat: s.chats, Setup: s.Setup, Enrol: s.Enrol})
	version := cmp.Or(s.cfg.Version, "dev")
	documents := fetch.NewFetcher(fetch.Config{Guard: s.Guard, Proxy: s.Proxy, Dial: s.cfg.WebhookDial})
	s.agents = oauth.New(oauth.Config{Store: s.Store, BaseURL: s.cfg.BaseURL, Limits: s.rates.oauth, Nodes: s.member.Cores, Log: s.log, Fetch: func(ctx context.Context, url string) (oauth.Document, error) {
		d, err := documents.Fetch(ctx, url)
		return oauth.Document(d), err
	}})
	hooks, err := HookGuide(s.cfg.BaseURL)
	if err != nil {
		return fmt.Errorf("build the guide to webhooks: %w", err)
	}
	pages, err := page.New(page.Config{Webhooks: hooks, Store: s.Store, Tracking: parcels, Gate: gate, Auth: service, FindToken: s.findToken, Deliveries: s.newest, Approvals: approvals, Agents: s.agents, Setup: s.Setup, Program: s.cfg.Program, Receivers: s.webhooks, Catalog: s.Catalog, Pipeline: s.line, DigestKey: s.Keys.digests(),
		Chats: !slices.Contains(s.cfg.Unavailable, chat.Feature), LiveURL: s.cfg.AppWebSocketURL, Peers: s.Store.Peers, BaseURL: s.cfg.BaseURL, Changelog: postern.Changelog, Interface: func() []byte { return s.Catalog.OpenAPI(s.cfg.BaseURL, version) }, Mails: s.mails != nil, Passkeys: passkeys != nil, OIDC: s.signIn(), Secure: strings.HasPrefix(s.cfg.BaseURL, "https:"), PerMinute: s.rates.pages, Nodes: s.member.Cores, Limits: s.rates.figures(), Log: s.log})
	if err != nil {
		return fmt.Errorf("build pages: %w", err)
	}
	s.pages = pages
	graph, err := graphql.New(graphql.Config{Catalog: s.Catalog, Pipeline: s.line, HideSchema: s.cfg.HideSchema, Log: s.log})
	if err != nil {
		return fmt.Errorf("build GraphQL: %w", err)
	}
	mounts, err := s.toolServers(approvals, graph, version)
	if err != nil {
		return fmt.Errorf("build tool servers: %w", err)
	}
	mounts = append(mounts, asyncAPI(s.cfg.BaseURL, version), s.hookKeys())
	for _, r := range s.agents.Routes() {
		mounts = append(mounts, rest.Mount{Path: r.Path, MaxBody: oauth.MaxBody, Handle: r.Handle})
	}
	if !slices.Contains(s.cfg.Unavailable, chat.Feature) {
		mounts = append(mounts, rest.Mount{Path: page.ChatUploads, MaxBody: page.MaxChatUpload, Upload: page.SessionCookie, Handle: pages.Handler})
	}
	for _, r := range s.HTTPDevices.Routes() {
		mounts = append(mounts, rest.Mount{Path: r.Path, MaxBody: r.MaxBody, Answer: r.Answer})
	}
	mounts = append(mounts, rest.Mount{Path: locker.AnswerPrefix + "{token}", MaxBody: diagnosis.MaxBundle, Answer: func(c context.Context, ctx *fasthttp.RequestCtx) (any, error) { return takeAnswer(c, s.Lockers, ctx) }})
	mounts = append(mounts, rest.Mount{Path: artefact.Prefix + "{name}", MaxBody: 1, Slow: true, Handle: s.Programs.Serve})
	mounts = append(mounts, rest.Mount{Path: page.ImportPath, MaxBody: page.MaxImport, Slow: true, Upload: page.SessionCookie, Handle: pages.Handler})
	var challenge func(*fasthttp.RequestCtx) bool
	if s.authority != nil {
		challenge = s.authority.challenge
	}
	s.rest = rest.New(rest.Config{Challenge: challenge, Catalog: s.Catalog, Pipeline: s.line, GraphQL: graphFace(graph), Mounts: mounts, Pages: pages.Handler, Ready: s.ready, Instance: s.Store.Instance(), HealthOnly: !s.cfg.Part.core(), Alone: !s.Store.Peers(), Metrics: s.Metrics, AccessLog: s.cfg.AccessLog, Proxies: s.cfg.Proxies, Connections: s.cfg.HTTPConnections, RedirectTLS: s.cfg.RedirectTLS, Secure: s.cfg.TLS.hsts(), Origins: s.cfg.Origins, BaseURL: s.cfg.BaseURL, Version: version, Log: s.log})
	return nil
}

// Addresses are those that a node answers over HTTP, as METHOD /path, sorted: a method of * is
// every method, and a part in braces stands for any.
func Addresses(s *Server) (out []string) {
	for _, list := range []map[string][]string{s.rest.Addresses(), s.pages.Addresses()} {
		for method, paths := range list {
			for _, path := range paths {
				out = append(out, method+" "+path)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// runApproved does an approved call as approval.Config.Run says.
func (s *Server) runApproved(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (json.RawMessage, error) {
	if s.tools == nil {
		return nil, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
	}
	return s.tools.Approved(ctx, reviewer, a)
}

// holdCall keeps a call that its key may not make by itself.
func (s *Server) holdCall(ctx context.Context, o *catalog.Operation, c cloud.Caller, given map[string]any, queue bool) (*catalog.Held, error) {
	if s.tools == nil {
		return nil, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
	}
	return s.tools.Hold(ctx, o, c, given, queue)
}

// foreseeApproved says what an approved call would do now.
func (s *Server) foreseeApproved(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (approval.Foresight, error) {
	if s.tools == nil {
		return approval.Foresight{}, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
	}
	f, err := s.tools.Foresee(ctx, reviewer, a)
	return approval.Foresight(f), err
}

func (s *Server) findToken(ctx context.Context, hash [32]byte) (auth.Session, error) {
	l, err := s.Store.FindToken(ctx, hash)
	return auth.Session{Token: l.Token, Account: l.Account, Provider: l.Provider, State: l.State, Pass: l.Pass}, err
}

func (s *Server) newest(ctx context.Context, b cloud.BusinessID, limit int) ([]cloud.Delivery, error) {
	return s.Store.ListDeliveries(ctx, store.DeliveryFilter{BusinessID: b, Limit: limit})
}

// errStopping is why a node that is about to stop is not ready.
var errStopping = errors.New("this node is about to stop")

// ready reports whether the database answers and the node is not about to stop.
func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errStopping
	}
	return s.Store.Look(ctx, func(v cloud.View) error {
		_, err := v.Business(0)
		if errors.Is(err, cloud.ErrNotFound) {
			return nil
		}
		return err
	})
}

// Enrol gives a cabinet its secrets. Its code parameters are those of its
// configuration.
func (s *Server) Enrol(ctx context.Context, code, token string, publicKey []byte) (any, error) {
	params, isHTTP := passcode.DefaultParams(), false
	if d, err := s.Store.FindDeviceByCode(ctx, code); err == nil {
		if isHTTP = d.Protocol == cloud.ProtocolHTTP; isHTTP {
			publicKey = nil // its secret signs
		}
		var c wire.Config
		if wire.Decode(d.Config, &c) == nil && c.Codes.Passes > 0 {
			params = c.Codes
		}
	}
	made, err := s.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: code, Token: token, PublicKey: publicKey}, func(ctx context.Context, d cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
		return s.Lockers.Rekey(ctx, d, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: params}, s.beginHTTP(d, x, pinEnrolled(s.pinnedKeys(), decide)))
	})
	if err != nil {
		return nil, err
	}
	if isHTTP {
		return struct {
			Result bool             `json:"result"`
			Code   string           `json:"device_code"`
			Secret string           `json:"device_secret"`
			Keys   []wire.PinnedKey `json:"keys"`
		}{true, code, made.Secret, s.pinnedKeys()}, nil
	}
	return struct {
		Result bool `json:"result"`
		device.Enrolled
	}{true, s.Enrolled(code, made)}, nil
}

// beginHTTP has a decision that gives a device its secrets keep the one of a device that speaks
// HTTP, whose calls are signed with it.
func (s *Server) beginHTTP(id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) func(cloud.View) (*cloud.Changes, error) {
	return func(v cloud.View) (*cloud.Changes, error) {
		before, err := v.Device(id)
		if err != nil {
			return nil, err
		}
		ch, err := decide(v)
		if err == nil && before.Protocol == cloud.ProtocolHTTP {
			ch.HTTPDevices = append(ch.HTTPDevices, httpdevice.Begin(s.Box, id, x.Secret, !before.EnrolledAt.IsZero()))
		}
		return ch, err
	}
}

// guard checks addresses when they are saved. A name that does not resolve yet
// may be saved: the check that counts is made at every connection.
type guard struct{ g *fetch.Guard }

func (g guard) CheckURL(ctx context.Context, url string) error {
	_, err := g.g.CheckSave(ctx, net.DefaultResolver, url)
	return err
}

// httpStop bounds how long running requests may take to end.
const httpStop = 15 * time.Second

// serveHTTP serves until ctx ends.
func (s *Server) serveHTTP(ctx context.Context, listeners []net.Listener) error {
	done := make(chan error, len(listeners))
	for _, ln := range listeners {
		go func() { done <- s.rest.Serve(ln) }()
	}
	var errs []error
	select {
	case err := <-done:
		errs = append(errs, err)
		listeners = listeners[1:]
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpStop)
	defer cancel()
	errs = append(errs, s.rest.Shutdown(stop))
	for range listeners {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

// graphFace is GraphQL as REST's server mounts it: faces do not know each other.
func graphFace(g *graphql.Server) func(context.Context, rest.GraphQLRequest) rest.GraphQLResponse {
	return func(ctx context.Context, q rest.GraphQLRequest) rest.GraphQLResponse {
		return rest.GraphQLResponse(g.Serve(ctx, graphql.Request(q)))
	}
}
