package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/cmd/internal/pulses"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/kiosk"
)

// childEnv holds the role of a process that the demo started: itself once more.
const childEnv = "POSTERN_DEMO_CHILD"

// childConfig is what a child gets, as JSON in a file named by childEnv.
type childConfig struct {
	Role string // cloud or edge
	Dir  string
	Log  string

	// cloud
	HTTP, MQTT   string
	Database     string
	WebSocket    string
	WebhookPorts []uint16
	Session      time.Duration
	Waits        []time.Duration

	// edge
	Secrets string
	Kiosk   string
	Pulses  string // file of the trace of pulses
	Lines   []board.LineConfig
}

// cloudConfig is the cloud of the demo: receivers on this machine are allowed.
func (c childConfig) cloudConfig() server.Config {
	return server.Config{Dir: c.Dir, Database: c.Database, Node: "demo", Version: cli.Version(), Brokers: []string{"tcp://" + c.MQTT}, AppURL: "tcp://" + c.MQTT, AppWebSocketURL: "ws://" + c.WebSocket + "/mqtt", BaseURL: "http://" + c.HTTP, Session: c.Session, WebhookWaits: c.Waits,
		WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, WebhookPorts: c.WebhookPorts, WebhookHTTP: true,
		Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Doors: -1}}
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
	cfg := c.cloudConfig()
	cfg.Log = log
	s, err := server.New(ctx, cfg)
	if err != nil {
		return err
	}
	mqtt, err := listen(ctx, c.MQTT)
	if err != nil {
		return errors.Join(err, s.Store.Close())
	}
	http, err := listen(ctx, c.HTTP)
	if err != nil {
		return errors.Join(err, mqtt.Close(), s.Store.Close())
	}
	ws, err := listen(ctx, c.WebSocket)
	if err != nil {
		return errors.Join(err, mqtt.Close(), http.Close(), s.Store.Close())
	}
	return s.Run(ctx, server.Listeners{MQTT: mqtt, HTTP: http, WebSocket: ws})
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
	a, err := agent.New(agent.Config{Dir: c.Dir, Secrets: secrets, Lines: c.Lines, Version: cli.Version(), Log: log, Trace: trace.Append})
	if err != nil {
		return err
	}
	ln, err := listen(ctx, c.Kiosk)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	k := kiosk.New(kiosk.Config{DeviceCode: secrets.DeviceCode, Codes: a.Codes(), Loop: a.Loop(), Link: a.Link(), Now: a.Now, Health: a.Health, Log: log,
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

// process is a child that can be killed and started again.
type process struct {
	name string
	cfg  childConfig

	mu   sync.Mutex
	cmd  *exec.Cmd
	runs []truth.Span // the last one's end is zero while it runs
}

func newProcess(name string, cfg childConfig) *process { return &process{name: name, cfg: cfg} }

// start starts the process, unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	b, err := json.Marshal(p.cfg)
	if err != nil {
		return fmt.Errorf("describe %s: %w", p.name, err)
	}
	path := filepath.Join(filepath.Dir(p.cfg.Log), p.name+".role.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("describe %s: %w", p.name, err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	// A process group of its own: Ctrl-C ends the demo, and the demo its children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.runs = append(p.runs, truth.Span{At: began, What: p.name})
	p.cmd = cmd
	return nil
}

// end stops the process with a signal and waits for it.
func (p *process) end(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	done := make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-done
	}
	p.cmd = nil
	p.runs[len(p.runs)-1].Until = time.Now()
}

// ran lists when the process ran.
func (p *process) ran() []truth.Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.runs)
}

// free finds an address of the loopback without a listener.
func free(wanted string) (string, error) {
	for _, a := range []string{wanted, "127.0.0.1:0"} {
		if a == "" {
			continue
		}
		ln, err := net.Listen("tcp", a)
		if err != nil {
			continue
		}
		addr := ln.Addr().String()
		if err := ln.Close(); err != nil {
			return "", fmt.Errorf("probe %s: %w", a, err)
		}
		return strings.Replace(addr, "[::]", "127.0.0.1", 1), nil
	}
	return "", errors.New("no free port on 127.0.0.1")
}
