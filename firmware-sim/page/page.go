// Package page draws simulated cabinets for people and lets them touch what can
// be touched: doors, locks, boxes, network and power. It serves one page per
// cabinet, in six languages, that follows the cabinet live.
//
// What it promises:
//   - The page shows the simulator's own truth, not what an agent believes.
//   - Each act of a guest is a physical act on the simulator: a fact like any
//     other, in the order in which it happened.
//   - Only pages of this very address can act: loopback names alone, same origin,
//     JSON bodies. Nothing is loaded from other hosts.
//   - A pickup code is in no address, state or event: only the answer to a request
//     for the waiting parcel holds it.
//   - Live states may skip what lasted less than a tenth of a second; the newest
//     always comes.
//
// It knows no rule and no agent. All methods are safe for concurrent use.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/localpage"
)

// Switch is something of a cabinet that can be cut and restored. Set returns when
// it is so; its error says why it is not.
type Switch interface {
	On() bool
	Set(on bool) error
}

// Cabinet is one simulated cabinet and what hangs on it.
type Cabinet struct {
	Code, Name string
	Sim        *board.Cabinet
	Sizes      map[uint]string // S, M, L or XL by door number; a missing one is M
	Kiosk      string          // address of its own screen; empty: it has none
	Network    Switch          // nil: it has none
	Power      Switch          // nil: that of the boards alone
}

// Parcel is a parcel that waits for the guest.
type Parcel struct {
	ID    string `json:"id"`
	Code  string `json:"code"` // that opens its doors
	Doors []uint `json:"doors"`
}

// Config is what New needs. Cabinets is required, each with a Code of its own and
// a Sim.
type Config struct {
	Cabinets []Cabinet
	// Waiting finds the parcel that waits for the guest at a cabinet; nil: there
	// never is one, and pages do not speak of it.
	Waiting func(cabinet string) (Parcel, bool)
	// OnAct is called after each act that was done; door is 0 for network and power.
	// nil: no call.
	OnAct func(cabinet, action string, door uint)
	Log   *slog.Logger // nil: no log
}

// Limits of the page.
const (
	maxBody   = 4 << 10
	maxPages  = 32 // live at once; more are turned away
	lookEvery = 100 * time.Millisecond
	actWait   = time.Minute // a cabinet takes a while to start
)

//go:embed files
var files embed.FS

// Page is the page. Run serves it.
type Page struct {
	cfg     Config
	handler http.Handler
	pages   chan struct{} // one token per live page
	guests  bool          // parcels wait for them
	brought atomic.Uint64 // parcels that guests put in, for their names
}

// New builds the page; it starts nothing.
func New(cfg Config) *Page {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	guests := cfg.Waiting != nil
	if !guests {
		cfg.Waiting = func(string) (Parcel, bool) { return Parcel{}, false }
	}
	if cfg.OnAct == nil {
		cfg.OnAct = func(string, string, uint) {}
	}
	for i := range cfg.Cabinets {
		if c := &cfg.Cabinets[i]; c.Power == nil {
			c.Power = boardPower{c.Sim}
		}
	}
	p := &Page{cfg: cfg, guests: guests, pages: make(chan struct{}, maxPages)}
	p.handler = guard(p.routes())
	return p
}

func (p *Page) routes() http.Handler {
	folder, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	words, _ := json.Marshal(texts) // plain strings always encode
	static := http.FileServerFS(folder)
	mux := http.NewServeMux()
	mux.Handle("GET /page.js", static)
	mux.Handle("GET /page.css", static)
	mux.HandleFunc("GET /texts.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(words) // the page has gone
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/"+p.cfg.Cabinets[0].Code, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /{code}", p.at(func(w http.ResponseWriter, r *http.Request, _ *Cabinet) {
		http.ServeFileFS(w, r, folder, "cabinet.html")
	}))
	mux.HandleFunc("GET /{code}/state", p.at(func(w http.ResponseWriter, _ *http.Request, c *Cabinet) {
		localpage.Reply(w, http.StatusOK, p.state(c))
	}))
	mux.HandleFunc("GET /{code}/events", p.at(p.events))
	mux.HandleFunc("GET /{code}/parcel", p.at(p.parcel))
	mux.HandleFunc("POST /{code}/act", p.at(p.serveAction))
	return mux
}

// at finds the cabinet of a request.
func (p *Page) at(do func(http.ResponseWriter, *http.Request, *Cabinet)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := range p.cfg.Cabinets {
			if c := &p.cfg.Cabinets[i]; c.Code == r.PathValue("code") {
				do(w, r, c)
				return
			}
		}
		refuse(w, http.StatusNotFound, "There is no cabinet of that code here; / leads to the first.")
	}
}

// parcel answers with the parcel that waits for the guest, and its code.
func (p *Page) parcel(w http.ResponseWriter, _ *http.Request, c *Cabinet) {
	x, ok := p.cfg.Waiting(c.Code)
	if !ok {
		refuse(w, http.StatusNotFound, "No parcel waits for a guest at this cabinet now.")
		return
	}
	localpage.Reply(w, http.StatusOK, x)
}

// Handler is the page with its guards.
func (p *Page) Handler() http.Handler { return p.handler }

// Run serves ln, a listener on the loopback, until ctx ends. It closes ln and
// returns nil after an ordinary stop.
func (p *Page) Run(ctx context.Context, ln net.Listener) error {
	if err := localpage.Serve(ctx, ln, p.handler, actWait, p.cfg.Log); err != nil {
		return fmt.Errorf("serve the cabinet page: %w", err)
	}
	return nil
}
