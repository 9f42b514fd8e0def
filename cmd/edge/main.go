// Program edge is the agent of one locker cabinet or one warehouse post: boards,
// doors, codes, scanners, the local page, the store, and the way to the cloud.
//
//	edge enrol                                          once, with the line of the device's page on standard input, typed, pasted or scanned
//	edge enrol https://tms.example --device CAB-1001    the same with the token alone on standard input
//	edge --line /dev/ttyUSB0                            runs a cabinet of one board
//	edge --config edge.yaml                             runs the cabinet
//	edge --config edge.yaml --check                     checks settings and stops
//	edge --config edge.yaml install-update FILE         takes a signed update, which the next launch tries
//	edge --config edge.yaml launch                      runs the newest program that works, as the service does
//	edge --config edge.yaml support-bundle out.tar.gz
//
// Long flags may have one dash. A flag wins over the settings file. Logs are JSON
// lines on standard error. SIGINT and SIGTERM stop it in order: the page, the
// boards and the link, then the store.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/cmd/internal/pulses"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
)

type options struct {
	Config      string   `help:"Settings, YAML. Unknown keys are refused." placeholder:"FILE"`
	Data        *string  `help:"Folder of the cabinet's store." placeholder:"DIR"`
	Secrets     *string  `help:"File with the device's secrets, readable by its owner alone. Default: secrets.json in the data folder." placeholder:"FILE"`
	Line        []string `sep:"none" help:"Address of the line to the lock boards: tcp://HOST:PORT or a serial device, such as /dev/ttyUSB0. Without lines in the settings it is one board of 48 locks, as the cloud's set-up page lays cabinets out; with several, NAME=ADDRESS names one; repeat for more." placeholder:"ADDRESS"`
	KioskListen *string  `help:"Address of the local page, on the loopback; empty: no page." placeholder:"HOST:PORT"`
	LogLevel    *string  `help:"Least level that is logged: debug, info, warn or error." placeholder:"LEVEL"`
	TLSRoots    *string  `help:"Certificates, PEM, that the cloud's is checked against. Default: the system's." placeholder:"FILE"`
	Check       bool     `help:"Check settings and stop."`
	Version     bool     `help:"Print the version and stop."`

	Run           struct{}      `cmd:"" default:"1" help:"Run the cabinet."`
	Enrol         enrol         `cmd:"" help:"Fetch this device's secrets from the cloud, once."`
	InstallUpdate installUpdate `cmd:"" help:"Take an update of the agent that the release key has signed. The next launch tries it, and goes back to the program before when it does not work."`
	Launch        struct{}      `cmd:"" help:"Run the cabinet with the newest program that works: the update on trial, the one that has proven itself, or this one."`
	SupportBundle struct {
		File string `arg:"" help:"Where to write the bundle, tar.gz."`
	} `cmd:"" help:"Collect versions, settings, health and store figures; never secrets or codes."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "edge:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var opt options
	command, err := cli.Parse(&opt, "edge", "The agent of one locker cabinet.", args, stdout, stderr)
	if errors.Is(err, cli.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if opt.Version {
		return cli.PrintVersion(stdout, "edge")
	}
	s, err := load(opt)
	if err != nil {
		return err
	}
	roots, err := tlsConfig(s.TLSRoots)
	if err != nil {
		return err
	}
	switch {
	case opt.Check:
		return check(s, stdout)
	case strings.HasPrefix(command.Command(), "enrol"):
		return opt.Enrol.run(ctx, s, opt.nextCommand, roots, stdin, stdout)
	case command.Command() == "install-update <file>":
		return opt.InstallUpdate.run(s, stdout, stderr)
	case command.Command() == "support-bundle <file>":
		return supportBundle(ctx, s, opt.SupportBundle.File, stdout)
	}
	log, err := cli.Logger(stderr, s.LogLevel)
	if err != nil {
		return err
	}
	if command.Command() == "launch" {
		return launch(ctx, s, opt.flags(), log, stdout, stderr)
	}
	return serve(ctx, s, roots, log, stdout)
}

// check says what would run.
func check(s settings, w io.Writer) error {
	boards := 0
	for _, l := range s.Lines {
		boards += len(l.Boards)
	}
	known := "set"
	secrets, err := readSecrets(s.Secrets)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		known = "unset (run edge enrol)"
	case err != nil:
		return err
	default:
		known += " for " + secrets.DeviceCode
	}
	_, err = fmt.Fprintf(w, "in order: %d lines, %d boards; data in %s; secrets in %s: %s\n", len(s.Lines), boards, s.Data, s.Secrets, known)
	for _, c := range s.scanners() {
		_, perr := fmt.Fprintf(w, "scanner %s at %s: %s\n", c.Name, c.Port, c.Purpose())
		err = errors.Join(err, perr)
	}
	return err
}

// readSecrets reads the device's own values.
func readSecrets(name string) (s access.Secrets, err error) {
	raw, err := cli.ReadSecret(name)
	if err != nil {
		return s, fmt.Errorf("secrets: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("read secrets: %s is not the JSON that enrolment writes", name) // what it holds is not repeated
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// tlsConfig trusts the certificates of a file; nil is the system's.
func tlsConfig(roots string) (*tls.Config, error) {
	if roots == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(roots)
	if err != nil {
		return nil, fmt.Errorf("read tls_roots: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls_roots: no certificate in %s; it must be PEM", roots)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// serve runs the cabinet, and again after the cloud asked for a restart.
func serve(ctx context.Context, s settings, roots *tls.Config, log *slog.Logger, stdout io.Writer) error {
	secrets, err := readSecrets(s.Secrets)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: run edge enrol first, or name the file with --secrets", err)
	}
	if err != nil {
		return err
	}
	log = log.With("device", secrets.DeviceCode)
	cfg := agent.Config{Dir: s.Data, Secrets: secrets, Lines: s.lines(), Scanners: s.scanners(), Supply: s.supply(), Version: cli.Version(), MaxBytes: s.Store.MaxMB << 20,
		HealthEvery: s.HealthEvery, TLS: roots, Log: log, Origin: newOrigin(secrets, roots), Facts: func() map[string]any { return programFacts(s) }}
	if report := launcherPipe(); report != nil {
		defer report.Close()
		cfg.Healthy = func() { _, _ = report.WriteString("healthy\n") }
		remote, err := newRemote(s, cfg.Origin, log)
		if err != nil { // the doors come first
			log.Error("the cabinet takes no updates from the cloud", "err", err)
		} else {
			cfg.Updates = remote
		}
	}
	if s.PulseTrace != "" {
		trace, err := pulses.Open(s.PulseTrace, log)
		if err != nil {
			return err
		}
		defer trace.Close()
		cfg.Trace = trace.Append
	}
	for {
		again, err := once(ctx, cfg, s, log, stdout)
		if err != nil || !again {
			return err
		}
		log.Info("starting again, as the cloud asked")
	}
}

// once runs the cabinet until ctx ends or a restart is asked for.
func once(ctx context.Context, cfg agent.Config, s settings, log *slog.Logger, stdout io.Writer) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if remote, ok := cfg.Updates.(*remoteUpdates); ok {
		remote.end.Store(&cancel)
	}
	var page *kiosk.Kiosk
	reboot := make(chan struct{}, 1)
	cfg.Act = func(x locker.Action) {
		if show, ok := x.(locker.Show); ok && show.What == "reboot" {
			select {
			case reboot <- struct{}{}:
			default: // one restart is enough
			}
		}
		page.Act(x)
	}
	cfg.Scanned = func(r scanner.Result) { page.Scanned(r) }
	var camera *scanner.Camera
	if slices.ContainsFunc(cfg.Scanners, func(c scanner.Config) bool { return c.Port == scanner.CameraPort }) {
		camera = scanner.NewCamera()
		cfg.OpenScanner = camera.Opener(scanner.OpenPort)
	}
	a, err := agent.New(cfg)
	if err != nil {
		return false, err
	}
	key, err := kiosk.NewKey(s.Data)
	if err != nil {
		return false, errors.Join(err, a.Close())
	}
	page = newPage(cfg, a, s.Kiosk.Operator, camera, key, log)
	stopPage, err := servePage(page, s, log, stdout, cancel)
	if err != nil {
		return false, errors.Join(err, a.Close())
	}
	switch {
	case s.isPost():
		log.Info("this is a post that scans labels; it has no doors", "scanners", len(cfg.Scanners))
	case len(cfg.Lines) == 0:
		log.Warn("no line to lock controllers is set, so no door opens", "setting", "lines", "flag", "--line")
	}
	log.Info("the cabinet runs", "version", cfg.Version, "boot", a.Store().Opened().Boot)
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.Run(inner) }()
	select {
	case <-ctx.Done():
	case <-reboot:
		again = true
	case err = <-done:
		return false, errors.Join(err, stopPage())
	}
	err = stopPage()
	stop()
	return again, errors.Join(err, <-done)
}

func newPage(cfg agent.Config, a *agent.Agent, operator kiosk.Operator, camera *scanner.Camera, key string, log *slog.Logger) *kiosk.Kiosk {
	return kiosk.New(kiosk.Config{DeviceCode: cfg.Secrets.DeviceCode, Operator: operator, Key: key, Post: cfg.IsPost(), Scanners: a.Scanners, ChooseStep: a.ChooseStep, Camera: camera, Codes: a.Codes(), Loop: a.Loop(), Link: a.Link(), Now: a.Now, Health: a.Health, OnSite: a.OnSite, CloudURL: cfg.Secrets.CloudURL, Learn: a.Learn, KeepLearned: a.KeepLearned, Log: log,
		Store: func() kiosk.StoreState {
			return kiosk.StoreState{FilledPercent: a.Store().Filled(), Waiting: a.Store().Present().Backlog}
		}})
}

// servePage serves the local page until stop is called. When the page fails,
// failed is called, and stop returns why.
func servePage(page *kiosk.Kiosk, s settings, log *slog.Logger, stdout io.Writer, failed func()) (stop func() error, err error) {
	if s.Kiosk.Listen == "" {
		return func() error { return nil }, nil
	}
	ln, err := net.Listen("tcp", s.Kiosk.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the local page (kiosk.listen): %w", cli.InUse(err, "kiosk.listen"))
	}
	log.Info("the local page is served", "addr", ln.Addr().String())
	screen := "the cabinet's screen is at http://%s\n"
	if s.isPost() {
		screen = "the post's screen is at http://%s/post\n"
	}
	_, _ = fmt.Fprintf(stdout, screen, ln.Addr()) // for a person; the log has it
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var ended error
	wg.Go(func() {
		if ended = page.Run(ctx, ln); ended != nil {
			failed()
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return ended
	}, nil
}
