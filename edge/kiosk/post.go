package kiosk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/localpage"
	"github.com/postern-io/postern/protocol/otep"
)

// lastScans is how many scans the page of a post shows.
const lastScans = 20

// PostView is what the page of a post shows.
type PostView struct {
	DeviceCode string           `json:"device_code"`
	Online     bool             `json:"online"`
	Store      string           `json:"store"`   // as StoreView.State
	Waiting    uint64           `json:"waiting"` // records that the cloud does not have yet
	Scanners   []PostScanner    `json:"scanners"`
	Scans      []PostScan       `json:"scans"` // the newest first
	Counts     map[string]int64 `json:"counts"`
	SinceMS    int64            `json:"since_ms"` // since when is counted: the day's begin, or the start
}

// PostScanner is a scanner of labels.
type PostScanner struct {
	Name string `json:"name"`
	Post string `json:"post"`
	Step string `json:"step"`
	// Steps are those to choose from; none when there is no choice.
	Steps []otep.Code `json:"steps,omitempty"`
}

// PostScan is what became of one line.
type PostScan struct {
	N       uint64 `json:"n"` // grows by one with each
	AtMS    int64  `json:"at_ms"`
	Scanner string `json:"scanner"`
	Outcome string `json:"outcome"`        // scanner's outcomes
	Text    string `json:"text,omitempty"` // none of what was refused
}

// post remembers scans for its page, not over a restart.
type post struct {
	mu     sync.Mutex // guards all below
	n      uint64
	scans  []PostScan
	counts map[string]int64
	since  time.Time
}

func (p *post) begin() {
	p.counts, p.since = map[string]int64{}, time.Now()
}

// renew begins to count anew when the day is another one. p.mu is held.
func (p *post) renew(now time.Time) {
	y, m, d := now.Date()
	if day := time.Date(y, m, d, 0, 0, 0, 0, now.Location()); p.since.Before(day) {
		p.counts, p.since = map[string]int64{}, day
	}
}

func (p *post) add(r scanner.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew(r.At)
	p.n++
	p.counts[string(r.Outcome)]++
	p.scans = slices.Insert(p.scans, 0, PostScan{p.n, r.At.UnixMilli(), r.Scanner, string(r.Outcome), r.Text})
	p.scans = p.scans[:min(len(p.scans), lastScans)]
}

func (k *Kiosk) postView() PostView {
	v, p := k.view(), &k.post
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew(time.Now())
	out := PostView{DeviceCode: v.DeviceCode, Online: v.Online, Store: v.Store.State, Waiting: v.Store.Waiting[0] + v.Store.Waiting[1], Scanners: k.labelScanners(),
		Scans: append([]PostScan{}, p.scans...), Counts: map[string]int64{}, SinceMS: p.since.UnixMilli()}
	for _, o := range []scanner.Outcome{scanner.Accepted, scanner.Repeated, scanner.Ambiguous, scanner.Unreadable, scanner.Refused, scanner.Failed} {
		out.Counts[string(o)] = p.counts[string(o)]
	}
	return out
}

// labelScanners are the scanners of labels as they work now.
func (k *Kiosk) labelScanners() (out []PostScanner) {
	if k.cfg.Scanners == nil {
		return nil
	}
	for _, c := range k.cfg.Scanners() {
		if c.Use == scanner.UseLabels {
			out = append(out, PostScanner{c.Name, c.Post, string(c.Step), c.Choices})
		}
	}
	return out
}

// chooseStep chooses the step of a scanner. "ok" means that it is durable.
func (k *Kiosk) chooseStep(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Scanner string    `json:"scanner"`
		Step    otep.Code `json:"step"`
	}
	if !read(w, r, &in) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), tryWait)
	defer cancel()
	switch err := k.cfg.ChooseStep(ctx, in.Scanner, in.Step); {
	case errors.Is(err, scanner.ErrStep):
		refuse(w, http.StatusUnprocessableEntity, "step")
	case err != nil:
		k.cfg.Log.Error("the step of a scanner is not chosen", "err", err)
		localpage.Reply(w, http.StatusServiceUnavailable, Result{Outcome: noStore})
	default:
		localpage.Reply(w, http.StatusOK, Result{Outcome: string(scanner.Accepted)})
	}
}

// servePost adds the page of a post.
func (k *Kiosk) servePost(mux *http.ServeMux, static http.Handler) {
	mux.HandleFunc("GET /post", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page/post.html") })
	mux.Handle("GET /post.js", static)
	mux.Handle("GET /post.css", static)
	words, _ := json.Marshal(postTexts) // plain strings always encode
	mux.HandleFunc("GET /post-texts.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(words)
	})
	mux.HandleFunc("POST /api/post/step", k.chooseStep)
	mux.HandleFunc("GET /api/post/events", func(w http.ResponseWriter, r *http.Request) { k.events(func() any { return k.postView() }, w, r) })
}
