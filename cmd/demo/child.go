package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/cmd/internal/pulses"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/edge/origin"
)

// childEnv holds the role of a process that the demo started: itself once more.
const childEnv = "POSTERN_DEMO_CHILD"

// childConfig is what a child gets, as JSON in a file named by childEnv.
type childConfig struct {
	Role string // cloud or edge
	Dir  string
	Log  string

	// cloud
	Node         string // its name
	HTTP, MQTT   string // where it listens
	Base, Broker string // where callers and devices come to
	Balanced     bool   // a balancer stands before it
	Database     string // postgres://…; empty: a file
	WebSocket    string // where browsers reach the broker; empty: they do not
	WebhookPorts []uint16
	Session      time.Duration
	Waits        []time.Duration

	// edge
	Secrets string
	Kiosk   string
	Pulses  string // file of the trace of pulses
	Lines   []board.LineConfig
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// cloudConfig is the cloud of the demo: receivers on this machine are allowed.
func (c childConfig) cloudConfig() (cfg server.Config, err error) {
	cfg = server.Config{Dir: c.Dir, Database: c.Database, Node: c.Node, Version: cli.Version(), Brokers: []string{"tcp://" + c.Broker}, AppURL: "tcp://" + c.Broker, BaseURL: "http://" + c.Base, Session: c.Session, WebhookWaits: c.Waits,
		WebhookNetworks: loopback, WebhookPorts: c.WebhookPorts, WebhookHTTP: true,
		Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Doors: -1}}
	if c.WebSocket != "" {
		cfg.AppWebSocketURL = "ws://" + c.WebSocket + "/mqtt"
	}
	if c.Balanced {
		cfg.Proxies, err = peer.New(loopback, peer.XForwardedFor)
	}
	return cfg, err
}

// child runs one role until it is asked to stop.
func child(path string) int {
	var c childConfig
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: read role:", err)
		return 2
	}
	file, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	log := slog.New(slog.NewJSONHandler(file, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = orphaned(ctx)
	if c.Role == "cloud" {
		err = runCloud(ctx, c, log)
	} else {
		err = runEdge(ctx, c, log)
	}
	if err != nil {
		log.Error("stopped", "err", err)
		fmt.Fprintf(os.Stderr, "demo: %s: %v\n", c.Role, err)
		return 1
	}
	return 0
}

// orphaned ends ctx when the demo that started this process is gone.
func orphaned(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent && ctx.Err() == nil {
			time.Sleep(500 * time.Millisecond)
		}
		cancel()
	}()
	return ctx
}

func runCloud(ctx context.Context, c childConfig, log *slog.Logger) error {
	cfg, err := c.cloudConfig()
	if err != nil {
		return err
	}
	cfg.Log = log
	s, err := server.New(ctx, cfg)
	if err != nil {
		return err
	}
	var ln server.Listeners
	for _, x := range []struct {
		at   *net.Listener
		addr string
	}{{&ln.MQTT, c.MQTT}, {&ln.HTTP, c.HTTP}, {&ln.WebSocket, c.WebSocket}} {
		if x.addr == "" {
			continue
		}
		if *x.at, err = listen(ctx, x.addr); err != nil {
			return errors.Join(err, s.Store.Close()) // the process ends, and its listeners with it
		}
		if c.Balanced {
			*x.at = cfg.Proxies.Listener(*x.at)
		}
	}
	return s.Run(ctx, ln)
}

// listen takes an address that a killed process may still be letting go of.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	var err error
	for range 50 {
		var ln net.Listener
		if ln, err = lc.Listen(ctx, "tcp", addr); err == nil {
			return ln, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, fmt.Errorf("listen on %s: %w", addr, err)
}

func runEdge(ctx context.Context, c childConfig, log *slog.Logger) error {
	var secrets access.Secrets
	b, err := os.ReadFile(c.Secrets)
	if err == nil {
		err = json.Unmarshal(b, &secrets)
	}
	if err != nil {
		return fmt.Errorf("read secrets: %w", err)
	}
	trace, err := pulses.Open(c.Pulses, log)
	if err != nil {
		return err
	}
	defer trace.Close()
	a, err := agent.New(agent.Config{Dir: c.Dir, Secrets: secrets, Lines: c.Lines, Version: cli.Version(), Log: log, Origin: origin.New(secrets.CloudURL, http.DefaultTransport), Trace: trace.Append})
	if err != nil {
		return err
	}
	ln, err := listen(ctx, c.Kiosk)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	key, err := kiosk.NewKey(c.Dir)
	if err != nil {
		return errors.Join(err, ln.Close(), a.Close())
	}
	k := kiosk.New(kiosk.Config{DeviceCode: secrets.DeviceCode, Operator: kiosk.Operator{Name: "Acme Logistics", Phone: "+1 416 555 0100", Email: "help@acme.example"}, Key: key, Codes: a.Codes(), Loop: a.Loop(), Link: a.Link(), Now: a.Now, Health: a.Health, OnSite: a.OnSite, Log: log,
		Store: func() kiosk.StoreState {
			return kiosk.StoreState{FilledPercent: a.Store().Filled(), Waiting: a.Store().Present().Backlog}
		}})
	inner, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := k.Run(inner, ln); err != nil && inner.Err() == nil {
			log.Error("kiosk page", "err", err)
		}
	})
	err = a.Run(ctx)
	stop()
	wg.Wait()
	return err
}
