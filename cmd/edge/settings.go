package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wiring"
)

// settings is the settings file. The doors, and the board of each, the
// cloud says; here stands how this machine is wired.
type settings struct {
	Data     string `yaml:"data" json:"data"`
	Secrets  string `yaml:"secrets" json:"secrets"` // a file's name, never its content
	LogLevel string `yaml:"log_level" json:"log_level"`
	Kiosk    struct {
		Listen         string `yaml:"listen" json:"listen"`
		kiosk.Operator `yaml:",inline"`
	} `yaml:"kiosk" json:"kiosk"`
	TLSRoots string `yaml:"tls_roots" json:"tls_roots"`
	Store    struct {
		MaxMB int64 `yaml:"max_mb" json:"max_mb"`
	} `yaml:"store" json:"store"`
	HealthEvery time.Duration  `yaml:"health_every" json:"health_every"`
	Supply      uint           `yaml:"supply" json:"supply"` // volts of the coils
	Lines       []line         `yaml:"lines" json:"lines"`
	Scanners    []scannerEntry `yaml:"scanners" json:"scanners"`
	// PulseTrace is a setting for tests: a file to which each pulse is appended,
	// one JSON object a line, before it is sent. Empty: none.
	PulseTrace string `yaml:"pulse_trace" json:"pulse_trace,omitempty"`
}

type line struct {
	Name   string       `yaml:"name" json:"name"`
	Port   string       `yaml:"port" json:"port"` // a device that keeps its name, or tcp://host:port
	Baud   int          `yaml:"baud" json:"baud"`
	Boards []boardEntry `yaml:"boards" json:"boards"`
}

type boardEntry struct {
	Name     string         `yaml:"name" json:"name"`
	Family   lockbus.Family `yaml:"family" json:"family"`
	Address  uint8          `yaml:"address" json:"address"`
	Items    bool           `yaml:"items" json:"items"`
	Inverted bool           `yaml:"inverted" json:"inverted"`
}

// scannerEntry is a scanner; post, step, steps and repeat_seconds are for use labels.
type scannerEntry struct {
	Name          string      `yaml:"name" json:"name"`
	Port          string      `yaml:"port" json:"port"` // a serial device, tcp://host:port, or input:/dev/input/…
	Baud          int         `yaml:"baud" json:"baud"`
	Use           scanner.Use `yaml:"use" json:"use"`
	Post          string      `yaml:"post" json:"post"`
	Step          string      `yaml:"step" json:"step"`             // status code of the events
	Steps         []string    `yaml:"steps" json:"steps,omitempty"` // to choose from at the screen
	RepeatSeconds int         `yaml:"repeat_seconds" json:"repeat_seconds"`
	Batch         *batchEntry `yaml:"batch" json:"batch,omitempty"` // of one that sends its scans later
}

// batchEntry says how a batch scanner writes its scans; see scanner.ParseBatch.
type batchEntry struct {
	Columns   []string `yaml:"columns" json:"columns"`
	Separator string   `yaml:"separator" json:"separator"`
	Timezone  string   `yaml:"timezone" json:"timezone"`
}

// defaults are the settings of a cabinet without configuration.
func defaults() settings {
	s := settings{Data: "data/edge", LogLevel: "info", HealthEvery: 10 * time.Minute, Supply: uint(board.Supply12V)}
	s.Kiosk.Listen = wiring.ScreenAddress
	s.Store.MaxMB = 512
	return s
}

// Limits of settings.
const (
	minStoreMB, maxStoreMB = 16, 64 << 10
	minHealth, maxHealth   = 10 * time.Second, 24 * time.Hour
)

// load puts defaults, file and flags together and checks all of it.
func load(opt options) (settings, error) {
	s := defaults()
	if opt.Config != "" {
		if err := cli.ReadYAML(opt.Config, &s); err != nil {
			return s, err
		}
	}
	for _, f := range []struct{ flag, field *string }{{opt.Data, &s.Data}, {opt.Secrets, &s.Secrets}, {opt.KioskListen, &s.Kiosk.Listen}, {opt.LogLevel, &s.LogLevel}, {opt.TLSRoots, &s.TLSRoots}} {
		if f.flag != nil {
			*f.field = *f.flag
		}
	}
	if err := s.setLines(opt.Line); err != nil {
		return s, err
	}
	if s.Secrets == "" {
		s.Secrets = filepath.Join(s.Data, "secrets.json")
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	return s, nil
}

// check reports everything wrong, and what to do about it.
func (s settings) check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.Data == "" {
		bad("data: name a folder for the store")
	}
	if !slices.Contains(cli.Levels, s.LogLevel) {
		bad("log_level %q: use one of %s", s.LogLevel, strings.Join(cli.Levels, ", "))
	}
	if s.Kiosk.Listen != "" && !cli.IsLoopback(s.Kiosk.Listen) {
		bad("kiosk.listen %q: use an address of the loopback such as %s, or an empty one for no page; the page has no login", s.Kiosk.Listen, wiring.ScreenAddress)
	}
	if err := s.Kiosk.Operator.Check(); err != nil {
		errs = append(errs, err)
	}
	if s.Store.MaxMB < minStoreMB || s.Store.MaxMB > maxStoreMB {
		bad("store.max_mb %d: use %d to %d", s.Store.MaxMB, minStoreMB, maxStoreMB)
	}
	if s.HealthEvery < minHealth || s.HealthEvery > maxHealth {
		bad("health_every %s: use %s to %s", s.HealthEvery, minHealth, maxHealth)
	}
	if s.Supply != uint(board.Supply12V) && s.Supply != uint(board.Supply24V) {
		bad("supply %d: use 12 or 24, the coils' volts", s.Supply)
	}
	for _, l := range s.Lines {
		if addr, ok := strings.CutPrefix(l.Port, "tcp://"); l.Port == "" || ok && !hostPort(addr) {
			bad("line %q: port %q: name a serial device, or tcp://host:port", l.Name, l.Port)
		}
	}
	if err := (board.Layout{Lines: s.lines()}).Check(); err != nil {
		errs = append(errs, err)
	}
	if err := s.checkScanners(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkScanners reports everything wrong with scanners, also in what they share
// with lines.
func (s settings) checkScanners() error {
	errs := []error{scanner.Check(s.scanners())}
	for _, c := range s.Scanners {
		if _, err := c.batch(); err != nil {
			errs = append(errs, fmt.Errorf("scanner %q: batch: %w", c.Name, err))
		}
		if slices.ContainsFunc(s.Lines, func(l line) bool { return l.Port == c.Port }) {
			errs = append(errs, fmt.Errorf("scanner %q: port %q is a line's of lock boards: one port has one use", c.Name, c.Port))
		}
		if c.Port == scanner.CameraPort && s.Kiosk.Listen == "" {
			errs = append(errs, fmt.Errorf("scanner %q: the camera is that of the screen: set kiosk.listen, such as %s, or use another port", c.Name, wiring.ScreenAddress))
		}
	}
	return errors.Join(errs...)
}

// scanners are the scanners as the agent takes them.
func (s settings) scanners() []scanner.Config {
	var out []scanner.Config
	for _, e := range s.Scanners {
		c := scanner.Config{Name: e.Name, Port: e.Port, Baud: e.Baud, Use: e.Use, Post: e.Post, Step: otep.Code(e.Step), Repeat: time.Duration(e.RepeatSeconds) * time.Second}
		if step, err := scanner.ParseStep(e.Step); err == nil {
			c.Step = step
		}
		c.Batch, _ = e.batch() // checkScanners says what is wrong
		for _, text := range e.Steps {
			step, err := scanner.ParseStep(text)
			if err != nil {
				step = otep.Code(text) // Check says what is allowed
			}
			c.Choices = append(c.Choices, step)
		}
		out = append(out, c)
	}
	return out
}

func (e scannerEntry) batch() (*scanner.Batch, error) {
	if e.Batch == nil {
		return nil, nil
	}
	return scanner.ParseBatch(e.Batch.Columns, e.Batch.Separator, e.Batch.Timezone)
}

// isPost reports whether this is a warehouse post: it scans labels and has no
// doors.
func (s settings) isPost() bool {
	return agent.Config{Lines: s.lines(), Scanners: s.scanners()}.IsPost()
}

func hostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && host != "" && port != ""
}

func (s settings) supply() board.Supply { return board.Supply(s.Supply) }

// lines is the wiring as the driver takes it.
func (s settings) lines() []board.LineConfig {
	var out []board.LineConfig
	for _, l := range s.Lines {
		c := board.LineConfig{Name: l.Name, Port: l.Port, Baud: l.Baud}
		for _, b := range l.Boards {
			c.Boards = append(c.Boards, board.BoardConfig{Name: b.Name, Family: b.Family, Address: b.Address, Items: b.Items, Inverted: b.Inverted})
		}
		out = append(out, c)
	}
	return out
}
