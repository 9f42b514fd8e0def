// Package server puts the cloud together: store, device link, broker, locker
// rules, webhooks and the HTTP faces. New builds from the bottom up, Run starts
// the loops and listens; stopping goes in reverse: intake first, the store last.
package server

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/admin"
	"github.com/postern-io/postern/cloud/artefact"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mcp"
	"github.com/postern-io/postern/cloud/mock"
	"github.com/postern-io/postern/cloud/mqttbroker"
	"github.com/postern-io/postern/cloud/node"
	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/push"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/span"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/tool"
	"github.com/postern-io/postern/cloud/trace"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webhook/sender"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Config is what New needs. The zero Config with a Dir runs.
type Config struct {
	Dir string // data folder: database and keys
	// KeysFile holds the deployment's secrets; empty: a file in Dir, which is made at the
	// first start.
	KeysFile string
	Objects  string // folder of uploaded files, the same for every node; empty: one in Dir
	// Bucket has the uploaded files in place of a folder; nil: it does not.
	Bucket   *object.BucketConfig
	Backup   BackupConfig
	Database string // postgres://…; empty: SQLite in Dir
	Node     string // name of this node, which one running process has; empty: the host's
	// Address is where other nodes reach this one's HTTP, scheme://host:port; empty:
	// found from the listener.
	Address string
	// SchemaByCommand leaves migrations of the database to MigrateSchema.
	SchemaByCommand bool
	// Held says that this process is to serve, and has a SQLite database by store.Hold
	// until Run has ended. On PostgreSQL New then runs no migration while another process
	// has this node's name (node.ErrTaken).
	Held bool
	// Recovered is the moment that the database was recovered to by other means than a restore;
	// zero: it was not. See store.NoteRecovery.
	Recovered time.Time
	// Stop is how a stop is announced.
	Stop Stop
	// Part is what this process does of it all; empty: everything.
	Part Part
	// NoNotices leaves nodes on PostgreSQL to find each other's commits by looking every
	// second, as where a pooler keeps no connection.
	NoNotices bool
	BaseURL   string // public address, for links; empty: from the request
	// Proxies are those whose word about their callers counts.
	Proxies peer.Proxies
	// TLS are the certificates of all listeners with TLS. RedirectTLS is the address
	// that plain HTTP leads to; empty: it is served.
	TLS         TLSConfig
	RedirectTLS string
	Prefix      string // of MQTT topics
	// MQTTPlain lets listeners without TLS take devices from beyond the loopback.
	MQTTPlain bool
	// Brokers are the addresses that enrolling devices get.
	Brokers []string
	// ReleaseKeys are public keys that enrolling devices get: updates of their agent are
	// signed by one of them.
	ReleaseKeys []ed25519.PublicKey
	// AppURL and AppWebSocketURL are where people's apps reach the broker, empty
	// where they do not.
	AppURL, AppWebSocketURL string
	// Program is how a person at this machine starts a program of ours, for commands
	// on pages; nil: by its name.
	Program func(name string) string
	Version string

	// PushURL takes pushes to drivers' apps that do not listen, signed with
	// PushSecret; empty: no provider does.
	PushURL, PushSecret string

	// SMSURL is the gateway that takes short messages to people, signed with SMSSecret;
	// empty: there is none.
	SMSURL, SMSSecret string

	// Mail is the server that mails to people go by, with links that begin with
	// BaseURL; nil: there is none, and links are shown to who made them.
	Mail *notification.MailServer

	// SignIn are the sign-in providers of businesses (OpenID Connect). They need
	// BaseURL.
	SignIn []oidc.Provider

	// Webhooks: private networks and further ports that receivers may use, and
	// whether plain http is allowed.
	WebhookNetworks []netip.Prefix
	WebhookPorts    []uint16
	WebhookHTTP     bool
	WebhookHosts    []string // names that are no receivers, with all below them; the own one is none
	// WebhookProxy is the address of an HTTP proxy by which receivers, and all else
	// that outsiders name, are reached, with its login, user:password; empty:
	// directly.
	WebhookProxy, WebhookProxyLogin string

	WebhookOverlap *time.Duration  // of secrets; nil: 24 hours
	WebhookWaits   []time.Duration // retry table; nil: the usual one
	WebhookDial    func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)

	// OTLPEndpoint is a trace collector that receives every parcel's journey;
	// empty: none.
	OTLPEndpoint string
	// OTLPShare is the share of calls, from 0 to 1, that the collector is sent the spans of,
	// beside those of callers who send a traceparent.
	OTLPShare float64
	// OTLPHeaders are sent to the collector with every upload; they may hold a secret.
	OTLPHeaders map[string]string

	// Unavailable are families of operations that are not offered here, or not
	// yet: contractor_assignment.
	Unavailable []string

	// HideSchema leaves introspection of GraphQL to callers with a token.
	HideSchema bool

	// Origins are pages of others that may call the interface and the tool servers:
	// https://host.
	Origins []string
	Limits  catalog.Limits // calls a minute
	// HTTPConnections and MQTTConnections bound those that are open.
	HTTPConnections, MQTTConnections limit.Connections
	// Rates are limits by name, calls a minute, over Limits and the usual figures; 0
	// is no limit. See RateNames.
	Rates map[string]int
	// LegacyNumbers is what the tracking numbers that anybody can compute (SR and
	// nine digits) show without proof: reduced (number, status and its time), open
	// (as other numbers) or closed (nothing). Empty is reduced.
	LegacyNumbers string
	// TimelineEvents is how many events a timeline takes before only those that end it are
	// taken; 0 is cloud.TimelineEvents.
	TimelineEvents int
	// ToolsPerMinute is how often one caller may call one tool; 0 is 120,
	// negative unbounded.
	ToolsPerMinute int
	Session        time.Duration // door session; 0: ten minutes
	// Recheck is how often people that listen are asked for their rights again; 0:
	// thirty seconds.
	Recheck time.Duration
	// Admin is of the listener for who runs the node.
	Admin AdminConfig
	// WrapDevices stands between broker and device link, for tests that lose,
	// repeat and reorder what devices send; nil: nothing.
	WrapDevices func(mqttbroker.Devices) mqttbroker.Devices
	// WrapSender stands between device link and broker, for tests whose broker is
	// not to be trusted; nil: nothing.
	WrapSender func(device.Sender) device.Sender
	// WrapTools changes what a tool server offers, for tests that bring tools of their
	// own; nil: nothing.
	WrapTools func(*mcp.Config)
	Log       *slog.Logger
	// AccessLog gets a line of each request to the public address, at the level info;
	// nil: none is written.
	AccessLog *slog.Logger
}

// Server is one node.
type Server struct {
	cfg    Config
	log    *slog.Logger
	Keys   Keys
	Signer *signed.Signer
	Store  *store.DB
	Box    *seal.Box
	Files  *object.Files
	// Programs are those that cabinets are updated with.
	Programs *artefact.Shelf
	Devices  *device.Service
	Lockers  *locker.Service
	Mocks    *mock.Service
	// HTTPDevices are those that call over HTTP.
	HTTPDevices *httpdevice.Service
	Webhooks    *sender.Dispatcher
	Live        *live.Service
	Guard       *fetch.Guard
	Proxy       *fetch.Proxy // nil: none
	Broker      *mqttbroker.Broker
	Metrics     *prometheus.Registry

	// Lost is the keys file where it is older than the database, which was made now: the
	// former one is gone; empty: it is not.
	Lost string

	Catalog *catalog.Catalog
	Setup   *setup.Service

	line     *catalog.Pipeline
	jobs     *job.Service
	platform *platform.Service
	orders   *order.Service
	routes   *route.Service
	chats    *chat.Service
	webhooks *webhook.Service
	agents   *oauth.Service
	traces   *trace.Pusher // nil: none
	spans    *span.Tracer  // nil: calls are not followed
	pushes   *push.Sender
	mails    *notification.Sender // nil: there is no mail server
	sms      *notification.Sender // nil: there is no gateway
	tools    *tool.Service        // nil until there are any

	engines []*mcp.Server
	tls     *tls.Config // nil: there are no certificates
	rates   rates
	// authority fetches certificates; nil: they are files, or there are none.
	authority *authority
	files     *certificateFiles // nil: certificates are no files

	admin      *admin.Server
	crowd      *limit.Crowd // of MQTT
	mailServer changingCarrier
	smsGateway changingCarrier
	pushHook   changingHook

	pages   *page.Pages
	parcels *tracking.Service
	// notices are exchanged with other nodes; nil: none are.
	notices *store.Notices
	member  *node.Member
	// stopping is set when /readyz has begun to say no.
	stopping atomic.Bool
	rest     *rest.Server
	// refusals bounds what is kept of topics that clients were refused.
	refusals, allRefusals *limit.Budget
	ctx                   context.Context // of the running server, for what commits wake
	stop                  context.CancelFunc
	// release lets go what Enter took; nil: nothing was entered.
	release func() error
}

// bulkOnPostgres leaves some of the pool's 16 connections to what is urgent.
const bulkOnPostgres = 10

// New opens the database and builds everything; nothing runs yet.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Node == "" {
		cfg.Node, _ = os.Hostname()
	}
	if cfg.Prefix == "" {
		cfg.Prefix = topic.DefaultPrefix
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if err := closeFolder(cfg.Dir, cfg.Log); err != nil {
		return nil, fmt.Errorf("read data folder: %w", err)
	}
	s := &Server{cfg: cfg, log: cfg.Log, Metrics: prometheus.NewRegistry(),
		refusals: limit.NewBudget(foreignOfClient/60.0, foreignOfClient, nil), allRefusals: limit.NewBudget(foreignOfAll/60.0, foreignOfAll, nil)}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.rates = cfg.rates()
	var err error
	if cfg.WebhookProxy != "" {
		if s.Proxy, err = fetch.NewProxy(fetch.ProxyConfig{URL: cfg.WebhookProxy, Login: cfg.WebhookProxyLogin, Metrics: s.Metrics, Logger: cfg.Log}); err != nil {
			return nil, fmt.Errorf("outgoing proxy: %w", err)
		}
	}
	if s.Keys, err = cfg.keys(ctx); err != nil {
		return nil, err
	}
	if s.Signer, err = signed.NewSigner(s.Keys.signing()); err != nil {
		return nil, err
	}
	if s.Box, err = seal.New(s.Keys.Seal); err != nil {
		return nil, err
	}
	if s.Files, err = cfg.openFiles(ctx, s.Keys); err != nil {
		return nil, err
	}
	if s.Store, err = store.Open(ctx, store.Config{URL: cfg.Database, Dir: cfg.Dir, SchemaByCommand: cfg.SchemaByCommand, Held: cfg.Held, Permit: cfg.permit(), Instance: node.NewInstance(), Box: s.Box, Observe: newCommitMetrics(s.Metrics).observe, Logger: cfg.Log}); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), s.Files.Close())
	}
	s.Setup = setup.New(setup.Config{Store: s.Store, Key: s.Keys.setup(), KeysDigest: s.Keys.digest(), Pinned: s.pinnedKeys(), NewToken: device.NewToken})
	claimed, err := s.Setup.Claim(ctx)
	if claimed {
		warnOfLoss(s)
	}
	if err != nil {
		if errors.Is(err, setup.ErrKeys) {
			err = fmt.Errorf("%w than %s: copy %s from the data folder of a node that uses this database, or name another database", err, cmp.Or(cfg.KeysFile, filepath.Join(cfg.Dir, keysFile)), keysFile)
		}
		return nil, errors.Join(err, s.Store.Close(), s.Files.Close())
	}
	if !cfg.Recovered.IsZero() {
		err = s.Store.NoteRecovery(ctx, cfg.Recovered)
	}
	if err == nil {
		err = s.beginAgain(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Store.Close(), s.Files.Close())
	}
	if s.tls, err = s.certificates(); err != nil {
		return nil, errors.Join(err, s.Store.Close(), s.Files.Close())
	}
	s.member = newMember(s.Store, s.Keys, cfg)
	s.Guard = fetch.NewGuard(guardOf(s, cfg))
	if cfg.OTLPEndpoint != "" {
		if err = reportTraces(ctx, s, cfg.OTLPEndpoint); err != nil {
			return nil, errors.Join(err, s.Store.Close(), s.Files.Close())
		}
	}
	s.Webhooks = sender.New(sender.Config{Store: s.Store, Spans: s.spans, Nodes: sharers(s.Store, s.member), BaseURL: cfg.BaseURL, SigningKey: s.Keys.webhookKey(), Guard: s.Guard, Proxy: s.Proxy, Waits: cfg.WebhookWaits, Dial: cfg.WebhookDial, Metrics: s.Metrics, Logger: cfg.Log})
	s.webhooks = webhook.New(s.Store, guard{s.Guard}).Sending(s.Webhooks, sample).SignedBy(s.Keys.webhookKey().Public().(ed25519.PublicKey))
	if cfg.WebhookOverlap != nil {
		s.webhooks.Overlapping(*cfg.WebhookOverlap)
	}
	s.chats = chat.New(chat.Config{Store: s.Store, Files: s.Files, SignFile: s.Files.Address, Key: s.Keys.chats()})
	s.orders = order.New(order.Config{Store: s.Store, Sealer: s.Box, Webhooks: s.webhooks, Talk: s.chats, SignFile: s.Files.Address, Links: s.Keys.Links()})
	s.routes = route.New(route.Config{Store: s.Store, Orders: s.orders, Webhooks: s.webhooks})
	s.Programs = artefact.New(s.Files.Programs(), cfg.ReleaseKeys)
	s.Lockers = locker.New(locker.Config{Store: s.Store, Programs: s.Programs, Files: s.Files, OpenFile: s.openFile, SignFile: s.Files.Address, Sealer: s.Box, Orders: s.orders, Parcels: order.ParcelsOf(s.orders), Webhooks: s.webhooks, Passes: s.Signer, Channels: channelsOf(cfg), Session: cfg.Session, Links: s.Keys.Links(), LinkBase: strings.TrimSuffix(cfg.BaseURL, "/"), TimelineEvents: cfg.TimelineEvents, Log: cfg.Log})
	s.HTTPDevices = httpdevice.New(httpdevice.Config{Store: s.Store, Lockers: s.Lockers, Sealer: s.Box, Signer: s.Signer, Nodes: s.member.Cores, Log: cfg.Log})
	s.Mocks = mock.New(mock.Config{Store: s.Store, Lockers: s.Lockers, Sealer: s.Box, Log: cfg.Log})
	devices := device.Config{Store: s.Store, Meaning: meaning{s.Lockers}, Signer: s.Signer, ServerKey: s.Keys.Server, Node: s.Store.Instance(), Log: cfg.Log}
	if cfg.Database != "" {
		devices.Living = living(s.Store)
		devices.Bulk = bulkOnPostgres
	}
	s.Devices = device.New(devices)
	s.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "postern_intake_wait_seconds", Help: "How long a batch that comes now waits for its commit."},
		func() float64 { return s.Devices.Waiting().Seconds() }))
	s.Metrics.MustRegister(deviceMetrics{s})
	registerMetrics(s)
	s.admin = newAdmin(s)
	var intake mqttbroker.Devices = s.Devices
	if cfg.WrapDevices != nil {
		intake = cfg.WrapDevices(intake)
	}
	s.Live = live.New(live.Config{Store: s.Store, Sealer: s.Box, Rights: hearing{s.chats}, ChatReceived: hearing{s.chats}.received, FindToken: s.findToken, SeesOrders: func(x auth.Session) bool { return catalog.SessionHolds(x, "orders:read") },
		SeesChats:  func(x auth.Session) bool { return catalog.SessionHolds(x, "chat:read") },
		SeesPushes: func(x auth.Session) bool { return catalog.SessionHolds(x, "routes:read") },
		Prefix:     cfg.Prefix, URL: cfg.AppURL, WebSocketURL: cfg.AppWebSocketURL, Log: cfg.Log})
	s.chats.LetListen(listening{s.Live})
	s.pushes = push.New(push.Config{Store: s.Store, Provider: provider(s), Log: cfg.Log})
	s.crowd = limit.NewCrowd(cfg.MQTTConnections, cfg.Proxies.SpeakForMany)
	s.Broker, err = mqttbroker.New(mqttbroker.Config{Devices: intake, People: s.Live, Prefix: cfg.Prefix, Log: cfg.Log, Foreign: s.foreign, Caller: cfg.Proxies.Caller, Plain: cfg.MQTTPlain, Recheck: cfg.Recheck,
		Crowd: s.crowd})
	if err != nil {
		return nil, errors.Join(err, s.Store.Close(), s.Files.Close())
	}
	var sender device.Sender = s.Broker
	if cfg.WrapSender != nil {
		sender = cfg.WrapSender(sender)
	}
	s.Devices.SetSender(sender)
	s.Live.SetTeller(s.Broker)
	s.Store.OnCommit(s.Lockers.Committed)
	s.Store.OnCommit(s.Mocks.Committed)
	s.Store.OnCommit(s.HTTPDevices.Committed)
	s.Store.OnCommit(func(ch *cloud.Changes) {
		if len(ch.Jobs) > 0 {
			s.orders.Wake()
		}
	})
	s.Store.OnCommit(func(ch *cloud.Changes) { s.jobs.Committed(ch) })
	s.Store.OnCommit(func(ch *cloud.Changes) { s.Devices.Committed(s.ctx, ch) })
	s.Store.OnCommit(s.Webhooks.Committed)
	s.Store.OnCommit(s.Live.Committed)
	s.Store.OnCommit(func(ch *cloud.Changes) { s.pages.Committed(ch) })
	s.Store.OnCommit(func(ch *cloud.Changes) { s.rest.Committed(ch) })
	if !cfg.NoNotices {
		s.notices = store.NewNotices(s.Store, cfg.Log)
	}
	if s.notices != nil {
		s.Store.OnCommit(func(ch *cloud.Changes) { s.notices.Add(noticeOf(ch)) })
	}
	if err := s.faces(); err != nil {
		return nil, errors.Join(err, s.Broker.Close(), s.Store.Close(), s.Files.Close())
	}
	return s, nil
}

// reportTraces has a trace collector get parcels' journeys and calls.
func reportTraces(ctx context.Context, s *Server, collector string) (err error) {
	if s.traces, err = trace.New(trace.Config{Store: s.Store, Endpoint: collector, Headers: s.cfg.OTLPHeaders, Metrics: s.Metrics, Log: s.log}); err != nil {
		return err
	}
	client, err := trace.NewClient(collector, s.cfg.OTLPHeaders)
	if err != nil {
		return err
	}
	if s.spans, err = span.New(ctx, span.Config{Client: client, Share: s.cfg.OTLPShare, Node: s.cfg.Node, Version: cmp.Or(s.cfg.Version, "dev"), Metrics: s.Metrics, Log: s.log}); err != nil {
		return err
	}
	s.Store.OnCommit(s.traces.Committed)
	s.Store.OnCommit(s.spans.Committed)
	return nil
}

// ownNames is the name in an address of the deployment's own, unless that is a number.
func ownNames(base string) []string {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return nil
	}
	return []string{strings.ToLower(u.Hostname())}
}

// sample is any event as it may be sent.
func sample(event string) (cloud.HookSample, bool) { return cloud.SampleOf(HookEvents(), event) }

// Audit entries of refused topics that one client leaves, and all clients
// together, in an hour: a client that goes on would fill the database otherwise.
const (
	foreignOfClient = 10
	foreignOfAll    = 1000
)

// foreign keeps an audit entry of a client that used a topic it has no right
// to, as long as there are few. The broker's goroutine does not wait for it.
func (s *Server) foreign(client, name string, write bool) {
	now := time.Now()
	if s.refusals.Wait(client, now) > 0 || s.allRefusals.Wait("", now) > 0 {
		return
	}
	s.refusals.Spend(client, 1, now)
	s.allRefusals.Spend("", 1, now)
	go func() {
		err := s.Store.Decide(s.ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{At: time.Now().UTC(), Actor: "mqtt:" + client, Action: "foreign_topic", Target: name,
				Detail: fmt.Sprintf(`{"write":%t}`, write)}}}}, nil
		})
		if err != nil && s.ctx.Err() == nil {
			s.log.Error("keep audit entry", "err", err)
		}
	}()
}

// Listeners are where a server takes connections. Nil ones are left out. Those
// without TLS are for the loopback unless Config.MQTTPlain is set.
type Listeners struct {
	HTTP         net.Listener
	HTTPS        net.Listener // with TLS
	MQTT         net.Listener
	MQTTTLS      net.Listener // with TLS
	WebSocket    net.Listener
	WebSocketTLS net.Listener // with TLS
	Admin        net.Listener // metrics, profiles and health
	TLS          *tls.Config  // of those that have it; nil: that of Config.TLS
}

// Enter takes the database, or this node's name where nodes share one, for Run, which does
// so itself otherwise. Leave is called when no Run follows. Errors: store.ErrInUse,
// node.ErrTaken.
func Enter(ctx context.Context, s *Server, ln Listeners) (err error) {
	release := func() error { return nil }
	if !s.cfg.Held {
		if release, err = s.Store.Hold(); err != nil {
			return err
		}
	}
	if err := s.member.Enter(context.WithoutCancel(ctx), s.cfg.address(ln)); err != nil {
		return errors.Join(err, release())
	}
	s.release = release
	warnOfClock(ctx, s)
	return nil
}

// Leave lets go what Enter took.
func Leave(s *Server) error {
	if s.release == nil {
		return nil
	}
	return errors.Join(s.member.Leave(), s.release())
}

// Run runs the loops and takes connections until ctx ends. It returns nil
// after an ordinary stop. The store is closed when it returns. Errors: store.ErrInUse,
// node.ErrTaken, node.ErrEnded.
func (s *Server) Run(ctx context.Context, ln Listeners) (err error) {
	if s.release == nil {
		err = Enter(ctx, s, ln)
	}
	if err != nil {
		s.stop()
		return errors.Join(err, s.Broker.Close(), s.Store.Close(), s.Files.Close())
	}
	defer func() { err = errors.Join(err, s.release()) }()
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	fail := make(chan error, 8)
	run := func(name string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(loops); err != nil && loops.Err() == nil {
				fail <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	s.loops(run, ln)
	err = s.listen(ln)
	var face sync.WaitGroup
	faces, closeFaces := context.WithCancel(loops)
	defer closeFaces()
	if ln.Admin != nil && err == nil {
		stopAdmin := serveAdmin(s, ln, fail)
		defer func() { err = errors.Join(err, stopAdmin()) }()
	}
	if web := ln.web(s.tls); len(web) > 0 && err == nil {
		face.Go(func() {
			if err := s.serveHTTP(faces, web); err != nil {
				fail <- fmt.Errorf("serve HTTP: %w", err)
			}
		})
	}
	if err == nil {
		select {
		case <-ctx.Done():
			err = s.letGo(loops, fail)
		case err = <-fail:
		}
	}
	for _, e := range s.engines {
		e.Close()
	}
	s.parcels.EndFeed()
	closeFaces()
	face.Wait()
	err = errors.Join(err, s.Broker.Close())
	stop()
	wg.Wait()
	s.stop()
	if !errors.Is(err, node.ErrEnded) {
		err = errors.Join(err, s.member.Leave())
	}
	return errors.Join(err, s.Store.Close(), s.Files.Close(), s.spans.Close())
}

// web are the listeners that HTTP is served on.
func (ln Listeners) web(conf *tls.Config) (out []net.Listener) {
	if ln.TLS != nil {
		conf = ln.TLS
	}
	if ln.HTTP != nil {
		out = append(out, ln.HTTP)
	}
	if ln.HTTPS != nil {
		out = append(out, tls.NewListener(ln.HTTPS, conf))
	}
	return out
}

func (s *Server) listen(ln Listeners) error {
	if ln.TLS == nil {
		ln.TLS = s.tls
	}
	if !s.cfg.Part.edge() && (ln.MQTT != nil || ln.MQTTTLS != nil || ln.WebSocket != nil || ln.WebSocketTLS != nil) {
		return errors.New("listen for MQTT: this process is not one for devices")
	}
	if ln.TLS == nil && (ln.HTTPS != nil || ln.MQTTTLS != nil || ln.WebSocketTLS != nil) {
		return errors.New("listen with TLS: there is no certificate")
	}
	mqtt := ln.TLS
	if mqtt != nil { // clients of MQTT offer protocols of their own, or none
		mqtt = mqtt.Clone()
		mqtt.NextProtos = nil
	}
	for _, x := range []struct {
		ln    net.Listener
		serve func(net.Listener, *tls.Config) error
		conf  *tls.Config
	}{{ln.MQTT, s.Broker.Serve, nil}, {ln.MQTTTLS, s.Broker.Serve, mqtt}, {ln.WebSocket, s.Broker.ServeWebSocket, nil}, {ln.WebSocketTLS, s.Broker.ServeWebSocket, ln.TLS}} {
		if x.ln == nil {
			continue
		}
		if err := x.serve(x.ln, x.conf); err != nil {
			return err
		}
	}
	return nil
}

// Enrolled are the values for a device's secrets file.
func (s *Server) Enrolled(code string, made device.Secrets) device.Enrolled {
	e := device.Enrolled{DeviceCode: code, DeviceSecret: made.Secret, CodeSalt: made.Salt, CodeKey: made.Key, Brokers: s.cfg.Brokers, Prefix: s.cfg.Prefix, CloudURL: s.cfg.BaseURL}
	e.Keys, e.ReleaseKeys = s.pinnedKeys(), pinKeys(s.cfg.ReleaseKeys)
	return e
}

// pinnedKeys are the public keys that devices trust.
func (s *Server) pinnedKeys() []wire.PinnedKey { return pinKeys(s.Keys.pinned()) }

func pinKeys(keys []ed25519.PublicKey) (out []wire.PinnedKey) {
	for _, k := range keys {
		out = append(out, wire.PinnedKey{ID: signed.KeyID(k), Key: k})
	}
	return out
}
