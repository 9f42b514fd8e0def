package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/node"
	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/report"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook/sender"
)

// Part is what a process does of the cloud.
type Part string

// Parts. A deployment needs both of the last two, or processes that do everything.
const (
	Everything Part = "all"
	Edge       Part = "edge" // connections of devices and of people's apps over MQTT
	Core       Part = "core" // HTTP, webhooks, mails, pushes and background tasks
)

// ParsePart reads a Part; empty is Everything.
func ParsePart(text string) (Part, error) {
	switch p := Part(text); p {
	case "":
		return Everything, nil
	case Everything, Edge, Core:
		return p, nil
	}
	return "", fmt.Errorf("roles %q: use %s, %s or %s", text, Everything, Edge, Core)
}

func (p Part) edge() bool { return p != Core }
func (p Part) core() bool { return p != Edge }

// newMember makes this process one of those that share the database.
func newMember(db *store.DB, keys Keys, cfg Config) *node.Member {
	current, _ := keys.SigningKeys()
	return node.New(node.Config{Store: db, Ask: askInstance, Log: cfg.Log, Self: cloud.Node{Instance: db.Instance(), Name: cfg.Node, Version: cfg.Version,
		Schema: store.Schema(), SchemaNumber: store.SchemaNumber(), Edge: cfg.Part.edge(), Core: cfg.Part.core(), StartedAt: time.Now().UTC(), SigningKey: current}})
}

// Nodes is how many processes serve callers, as far as this one knows.
func (s *Server) Nodes() int { return s.member.Cores() }

// sharers are the processes that share webhooks; nil: this one sends all.
func sharers(db *store.DB, m *node.Member) sender.Nodes {
	if !db.Peers() {
		return nil
	}
	return m
}

// living are the instances whose devices may be connected.
func living(db *store.DB) func(context.Context) (map[string]bool, error) {
	return func(ctx context.Context) (map[string]bool, error) {
		list, err := db.ListNodes(ctx)
		out := make(map[string]bool, len(list))
		for _, n := range list {
			out[n.Instance] = true
		}
		return out, err
	}
}

// askInstance asks who answers at a node's address. Its certificate is no matter: what
// is asked is no secret, and the answer is compared.
func askInstance(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/healthz", nil)
	if err != nil {
		return "", err
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := c.Do(r)
	if err != nil {
		return "", err
	}
	return a.Header.Get(rest.InstanceHeader), a.Body.Close()
}

// permit lets a process that serves migrate a database, unless another that has its name
// answers; nil for one that does not serve.
func (c Config) permit() func(context.Context, []cloud.Node) error {
	if !c.Held {
		return nil
	}
	return func(ctx context.Context, running []cloud.Node) error {
		for _, n := range running {
			if n.Name == c.Node && node.Answers(ctx, askInstance, n) {
				return node.Taken(n)
			}
		}
		return nil
	}
}

// clockBehind is how far the clock may be behind what is stored before a start warns.
const clockBehind = time.Hour

// warnOfClock warns when the newest line of the audit log is dated well after now.
func warnOfClock(ctx context.Context, s *Server) {
	newest, err := s.Store.NewestAudit(ctx)
	if now := time.Now().UTC(); err == nil && newest.Sub(now) > clockBehind {
		s.log.Warn("this machine's clock is behind what the database holds, or was ahead when that was written: set the clock right. Until then new events stand before older ones, and codes, sessions and deadlines end at the wrong time", "now", now.Format(time.RFC3339), "newest", newest.Format(time.RFC3339))
	}
}

// address is where other nodes reach this one's HTTP.
func (c Config) address(ln Listeners) string {
	scheme, l := "http", ln.HTTP
	if l == nil {
		scheme, l = "https", ln.HTTPS
	}
	if c.Address != "" || l == nil {
		return c.Address
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = ownAddress()
	}
	return scheme + "://" + net.JoinHostPort(host, fmt.Sprint(at.Port))
}

// ownAddress is an address of this machine that others may reach, or its loopback.
func ownAddress() string {
	list, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
				return n.IP.String()
			}
		}
	}
	return "127.0.0.1"
}

// beginPause is the time between two attempts to begin a loop.
const beginPause = time.Second

// beginAgain runs f until it ends without an error or ctx ends. A node that serves does
// not end because its database goes away while a part of it begins, nor because its lease comes
// into doubt just then: that a part was asked to end is no error of it.
func beginAgain(ctx context.Context, log *slog.Logger, name string, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		log.Error("a part of the node cannot begin now and tries again", "part", name, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(beginPause):
		}
	}
}

// loops starts what a process does in the background. What one of them does for all is
// a task.
func (s *Server) loops(run func(string, func(context.Context) error), ln Listeners) {
	steady := func(name string, f func(context.Context) error) {
		run(name, func(ctx context.Context) error { return beginAgain(ctx, s.log, name, f) })
	}
	task := func(name string, f func(context.Context) error) {
		run(name, func(ctx context.Context) error {
			return s.member.Task(ctx, name, func(ctx context.Context) error { return beginAgain(ctx, s.log, name, f) })
		})
	}
	run("node", s.member.Run)
	run("devices", s.Devices.Run)
	if s.notices != nil {
		run("notices", func(ctx context.Context) error {
			s.notices.Run(ctx, func(n store.Notice) { s.noticed(ctx, n) })
			return nil
		})
	}
	look := locker.ExpiryLookAlone
	if s.Store.Peers() {
		look = locker.ExpiryLookShared
	}
	steady("lockers", func(ctx context.Context) error { return s.Lockers.Run(ctx, s.Store, look) })
	run("live channel", s.Live.Run)
	if s.authority != nil {
		run("certificates", func(ctx context.Context) error { return s.authority.run(ctx, portOf(ln.HTTP), portOf(ln.HTTPS)) })
	}
	if !s.cfg.Part.core() {
		return
	}
	steady("webhooks", s.Webhooks.Run)
	steady("mock cabinets", s.Mocks.Run)
	steady("devices over HTTP", s.HTTPDevices.Run)
	steady("pushes", s.pushes.Run)
	steady("old notifications", func(ctx context.Context) error { return notification.Clean(ctx, s.Store, s.log) })
	if s.mails != nil {
		steady("mails", s.mails.Run)
	}
	if s.sms != nil {
		steady("sms", s.sms.Run)
	}
	run("jobs", s.jobs.Run)
	if s.traces != nil {
		run("traces", s.traces.Run)
	}
	task("deadlines", func(ctx context.Context) error { return s.Lockers.RunDeadlines(ctx, s.Store) })
	task("staff codes", func(ctx context.Context) error { return s.Lockers.RunStaffCodes(ctx, s.Store) })
	task("roll-outs", func(ctx context.Context) error { return s.Lockers.RunRollouts(ctx, s.Store) })
	task("device files", func(ctx context.Context) error { return s.Lockers.RunFiles(ctx, s.Store) })
	task("orders", func(ctx context.Context) error { return s.orders.Run(ctx, s.log) })
	task("containers", tracking.ContainersOf(s.parcels).Run)
	task("events ahead of their time", tracking.DuesOf(s.parcels).Run)
	task("reviews", func(ctx context.Context) error { return tracking.EndReviews(ctx, s.Store, s.log) })
	task("drivers", func(ctx context.Context) error { return s.routes.Run(ctx, s.log) })
	task("chats", func(ctx context.Context) error { return s.chats.Run(ctx, s.log) })
	task("webhook replays", func(ctx context.Context) error { return s.webhooks.Run(ctx, s.log) })
	task("businesses", func(ctx context.Context) error { return s.platform.Run(ctx, s.log) })
	task("calls", s.line.Forget)
	task("files", s.sweepFiles)
	if backups := s.scheduledBackups(); backups != nil {
		task("backups", backups)
	}
	task("old changes of timelines", s.parcels.PruneFeed)
	task("reports", func(ctx context.Context) error { return report.Prune(ctx, s.Store, s.log) })
	task("agents", s.agents.Run)
}
