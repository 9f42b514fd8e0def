// Package mcp speaks the Model Context Protocol: revisions 2026-07-28,
// 2025-11-25, 2025-06-18, 2025-03-26 and 2024-11-05 at one address, over HTTP
// POST. What tools do, who may use them and whom a token belongs to is decided
// by the code that makes a Server: this package knows nothing of lockers or orders.
//
// Every request is answered from what it carries. There are no sessions, and
// nothing of one request is kept for another, also on one connection; a
// question to the user travels to the client and back as a sealed state.
//
// Calls run in the goroutine of their request, unless a tool tells how far it
// is: then the answer is an event stream. A panic of a tool ends its call.
package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/seal"
)

// Config is what New needs.
type Config struct {
	Name, Title, Version string
	Instructions         string // for models: how to use the server
	Tools                []Tool
	PageSize             int // tools in one answer; 0: 200
	// Key seals request states: 32 bytes, the same on every node and for this
	// server only.
	Key []byte
	// Admit says who a request is from. An *Error is the refusal, any other
	// error an internal one. nil: every caller is anonymous.
	Admit func(ctx context.Context, r *Request) (Caller, error)
	// Public are our own addresses, http or https, the first is the usual one.
	Public  []string
	Origins []string // others whose pages may call, as https://host
	// RequestID tells the id that an answer will carry. nil: none is known.
	RequestID func(*fasthttp.RequestCtx) string
	Timeout   time.Duration // of one call; 0: 60 s
	Log       *slog.Logger
	Failures  prometheus.Counter // internal errors; nil: not counted

	// Methods are further ones by name, and Capabilities what they are
	// announced by: an object beside tools.
	Methods      map[string]Method
	Capabilities map[string]any
}

// Method is a method beside those of tools.
type Method struct {
	Legacy, Modern bool // the wires it is on
	Cached         bool // its modern results tell how long they hold
	// Run gets the parameters as arguments. Result.Structured is the whole
	// result; Ask works as for tools.
	Run func(ctx context.Context, c *Call) (*Result, error)
}

// Server answers at one address. Safe for concurrent use.
type Server struct {
	cfg     Config
	log     *slog.Logger
	box     *seal.Box
	origins map[string]bool // lower case

	tools []offer // by name
	views *views

	handshake []byte // members of an initialize result but for the version
	discover  []byte // members of a server/discover result
	meta      []byte // the member _meta of modern results

	ctx  context.Context // of running calls
	stop context.CancelFunc
}

// offer is a tool with what is made of it once.
type offer struct {
	*Tool
	definition []byte
	mirrored   []mirrored
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New builds a server. It refuses tools that no client could read.
func New(cfg Config) (*Server, error) {
	box, err := seal.New(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", cfg.Name, err)
	}
	cfg.PageSize = cmp.Or(cfg.PageSize, 200)
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	if cfg.PageSize < 1 || cfg.Timeout < 0 {
		return nil, fmt.Errorf("page size %d or timeout %s is negative", cfg.PageSize, cfg.Timeout)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, log: cfg.Log, box: box, views: newViews()}
	if s.origins, err = origins(cfg.Public, cfg.Origins); err != nil {
		return nil, err
	}
	for i := range cfg.Tools {
		t := &cfg.Tools[i]
		o := offer{Tool: t}
		if o.definition, o.mirrored, err = define(t); err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		s.tools = append(s.tools, o)
	}
	slices.SortFunc(s.tools, func(a, b offer) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(s.tools); i++ {
		if s.tools[i].Name == s.tools[i-1].Name {
			return nil, fmt.Errorf("two tools are named %q", s.tools[i].Name)
		}
	}
	if err := s.introduce(); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close cancels calls that still run. It does not wait for them.
func (s *Server) Close() { s.stop() }

// tool finds an offer by name.
func (s *Server) tool(name string) (*offer, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name, func(o offer, name string) int { return strings.Compare(o.Name, name) })
	if !ok {
		return nil, false
	}
	return &s.tools[i], true
}

// introduce prepares what the server says of itself.
func (s *Server) introduce() error {
	type info struct {
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
	}
	me := info{s.cfg.Name, s.cfg.Title, s.cfg.Version}
	capabilities := map[string]any{"tools": struct{}{}}
	for k, v := range s.cfg.Capabilities {
		capabilities[k] = v
	}
	handshake, err := encode(struct {
		Capabilities map[string]any `json:"capabilities"`
		Server       info           `json:"serverInfo"`
		Instructions string         `json:"instructions,omitempty"`
	}{capabilities, me, s.cfg.Instructions})
	if err != nil {
		return fmt.Errorf("introduce %s: %w", s.cfg.Name, err)
	}
	discover, err := encode(struct {
		Versions     []string       `json:"supportedVersions"`
		Capabilities map[string]any `json:"capabilities"`
		Instructions string         `json:"instructions,omitempty"`
	}{versions, capabilities, s.cfg.Instructions})
	if err != nil {
		return fmt.Errorf("introduce %s: %w", s.cfg.Name, err)
	}
	meta, err := encode(map[string]info{metaPrefix + "serverInfo": me})
	if err != nil {
		return fmt.Errorf("introduce %s: %w", s.cfg.Name, err)
	}
	s.handshake, s.discover = inner(handshake), inner(discover)
	s.meta = append([]byte(`"_meta":`), meta...)
	return nil
}

// inner is what stands between the braces of an object.
func inner(object []byte) []byte { return object[1 : len(object)-1] }

// define checks a tool and writes its definition.
func define(t *Tool) (definition []byte, m []mirrored, err error) {
	switch {
	case !toolName.MatchString(t.Name):
		return nil, nil, fmt.Errorf("the name is not 1 to 64 letters, digits, _, . and -")
	case t.Run == nil:
		return nil, nil, fmt.Errorf("nothing runs it")
	}
	if err := schema(t.Input); err != nil {
		return nil, nil, fmt.Errorf("input schema: %w", err)
	}
	if t.Output != nil {
		if err := schema(t.Output); err != nil {
			return nil, nil, fmt.Errorf("output schema: %w", err)
		}
	}
	if m, err = mirrors(t.Input); err != nil {
		return nil, nil, err
	}
	definition, err = encode(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations Annotations     `json:"annotations"`
	}{t.Name, t.Title, t.Description, t.Input, t.Output, t.Annotations})
	return definition, m, err
}

// schema checks that a JSON Schema is for objects.
func schema(raw json.RawMessage) error {
	s := scan{b: raw}
	if !s.read() || s.outside != "" {
		return fmt.Errorf("it is no JSON, or has the member %q twice", s.outside)
	}
	o, ok := split(trimmed(raw))
	if kind, _ := o.text("type"); !ok || kind != "object" {
		return fmt.Errorf("its root is not of type object")
	}
	return nil
}

// digest is short enough for cursors and states and long enough to tell apart.
func digest(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:12]
}
