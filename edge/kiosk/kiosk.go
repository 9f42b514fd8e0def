// Package kiosk is the cabinet's own screen: one local page for couriers,
// recipients and staff, with a keypad and a field for what a scanner types. It
// shows what became of codes that scanners of the cabinet's own read, and works
// with no network. A post that scans labels has a page of its own, /post,
// which shows them and lets people choose the work step.
//
// What it promises:
//   - Codes come in a request's body and go to the desk. They are never logged,
//     kept, put into an address or sent back.
//   - Passers-by see how the cabinet works, the doors of openings that run and what
//     may be opened again. Doors' states, records and versions are for staff: a right
//     staff code begins a session, which ends two minutes after the last act. It sees behind
//     which doors something is to be collected, and states what became of the parcels behind
//     doors that it has opened.
//   - An answer "ok" means that the opening is durable on the cabinet.
//   - Only pages of this very address can act: loopback names alone, same
//     origin, JSON bodies. Nothing is loaded from other hosts.
//   - Live events may skip states in between; the newest always comes.
//
// It knows no rule: what a code opens and when a keypad locks is decided by
// edge/locker. All methods are safe for concurrent use.
package kiosk

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/localpage"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// CodeVerifier takes codes.
type CodeVerifier interface {
	Enter(ctx context.Context, in access.Entered) (locker.Answer, error)
}

// Loop is the owner of the cabinet's state.
type Loop interface {
	Do(ctx context.Context, in locker.Input) (locker.Answer, error)
	State() locker.State
	Broken() bool
	Full() bool    // the last commit found no room
	Working() bool // at work for a while, because the store is slow
}

// Link is the way to the cloud.
type Link interface{ Connected() bool }

// StoreState is how the cabinet's memory stands.
type StoreState struct {
	FilledPercent int       // of its size limit
	Waiting       [2]uint64 // records that the cloud does not have yet, per lane
}

// Config is what New needs. All fields but Operator, Key, Health, Learn, KeepLearned, CloudURL, OnSite, Scanners, Post, ChooseStep, Camera and Log are required.
type Config struct {
	DeviceCode string
	Operator   Operator // as Check allows
	// Key is what NewKey made: by it programs of this machine read the staff's view.
	// Empty: none can.
	Key    string
	Codes  CodeVerifier
	Loop   Loop
	Link   Link
	Store  func() StoreState
	Now    func() locker.Now
	Health func() wire.Health // nil: staff see none
	// Learn says what has moved on the boards since staff began to learn how a door is wired,
	// false for one that the layout does not have; KeepLearned keeps that. nil: there are no
	// boards to look at.
	Learn       func(door edge.DoorNumber, since time.Time) (edge.Learned, bool)
	KeepLearned func(edge.Learned) error
	// CloudURL is the address of the cloud's pages, https://host, for receipts; "" is not known.
	CloudURL string
	OnSite   func() string // token of the moment for recipients before the screen; nil: none is shown
	// Scanners are the device's scanners as they work now; nil, or none of labels at
	// New: there is no post page. ChooseStep chooses the step of one of them.
	Scanners   func() []scanner.Config
	Post       bool // there are no doors: its page stands in the place of the cabinet's
	ChooseStep func(ctx context.Context, name string, step otep.Code) error
	Camera     *scanner.Camera // which looks at the pictures of the screen's camera; nil: there is none
	Log        *slog.Logger
}

// Limits of the page.
const (
	maxBody      = 4 << 10
	maxTries     = 4 // requests that wait for the desk; more are turned away
	maxListeners = 8 // live pages
	tryWait      = 20 * time.Second
	lookEvery    = 250 * time.Millisecond // how often a live page's state is compared
)

//go:embed page
var files embed.FS

// Kiosk is the page. Run serves it.
type Kiosk struct {
	cfg     Config
	handler http.Handler
	tries   chan struct{}
	texts   []byte
	post    post
	session session

	mu        sync.Mutex
	listeners map[chan Notice]bool
}

// New builds the page; it starts nothing.
func New(cfg Config) *Kiosk {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	k := &Kiosk{cfg: cfg, tries: make(chan struct{}, maxTries), listeners: map[chan Notice]bool{}}
	k.post.begin()
	k.texts, _ = json.Marshal(texts) // plain strings always encode
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	static := http.FileServerFS(page)
	mux := http.NewServeMux()
	mux.Handle("GET /camera.js", static)
	mux.HandleFunc("GET /operator.json", func(w http.ResponseWriter, _ *http.Request) {
		localpage.Reply(w, http.StatusOK, struct {
			Operator
			Camera bool `json:"camera,omitempty"` // pages show pictures of it
		}{k.cfg.Operator, k.cfg.Camera != nil})
	})
	mux.HandleFunc("GET /api/staff", k.staff) // for programs of this machine as well
	if cfg.Camera != nil {
		mux.HandleFunc("POST "+picturePath, k.picture)
	}
	if len(k.labelScanners()) > 0 {
		k.servePost(mux, static)
	}
	if cfg.Post {
		mux.Handle("GET /{$}", http.RedirectHandler("/post", http.StatusSeeOther))
	} else {
		k.serveCabinet(mux, static)
	}
	k.handler = guard(mux, cfg.Camera != nil)
	return k
}

// serveCabinet serves the screen of a cabinet.
func (k *Kiosk) serveCabinet(mux *http.ServeMux, static http.Handler) {
	mux.Handle("GET /{$}", static)
	for _, name := range []string{"kiosk.css", "kiosk.js", "screens.js", "words.js", "drawing.js", "sound.js", "collect.js"} {
		mux.Handle("GET /"+name, static)
	}
	mux.HandleFunc("GET /texts.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(k.texts)
	})
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, _ *http.Request) { localpage.Reply(w, http.StatusOK, k.publicView()) })
	mux.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) { k.events(func() any { return k.publicView() }, w, r) })
	mux.HandleFunc("POST /api/staff/stay", staffAct(k.session.extend))
	mux.HandleFunc("POST /api/staff/learn", k.learn)
	mux.HandleFunc("POST /api/staff/learned", k.learned)
	mux.HandleFunc("POST /api/staff/leave", staffAct(k.session.end))
	mux.HandleFunc("POST /api/staff/next", k.next)
	mux.HandleFunc("POST /api/staff/remove", k.remove)
	mux.HandleFunc("POST "+codePath, k.code)
	mux.HandleFunc("POST "+scanPath, k.scan)
	mux.HandleFunc("POST /api/label", k.label)
	mux.HandleFunc("POST /api/size", k.size)
	mux.HandleFunc("POST /api/receipt", k.receipt)
	mux.HandleFunc("POST /api/reopen", k.reopen)
	mux.HandleFunc("POST /api/another", k.another)
	mux.HandleFunc("POST /api/done", k.done)
}

// Handler is the page with its guards.
func (k *Kiosk) Handler() http.Handler { return k.handler }

// Run serves ln, a listener on the loopback, until ctx ends. It closes ln and
// returns nil after an ordinary stop.
func (k *Kiosk) Run(ctx context.Context, ln net.Listener) error {
	if err := localpage.Serve(ctx, ln, k.handler, 2*tryWait, k.cfg.Log); err != nil {
		return fmt.Errorf("serve the local page: %w", err)
	}
	return nil
}
