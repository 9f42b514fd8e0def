package kiosk

import (
	"net/http"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/localpage"
)

// Notice is something to show for a moment.
type Notice struct {
	What  string `json:"what"` // open, pull, left_open, sound, message, label
	Door  uint   `json:"door,omitempty"`
	Label string `json:"label,omitempty"`
	Text  string `json:"text,omitempty"` // of a message from the cloud, or of a label that a scanner of the cabinet read
	// Answer is what became of a code that a scanner of the cabinet read, with
	// What "scanned".
	Answer *Result `json:"answer,omitempty"`
}

// Scanned shows what became of a line that a scanner sent: of a code at the
// cabinet's page, of a label at the post's. It does not block.
func (k *Kiosk) Scanned(r scanner.Result) {
	if r.Outcome == scanner.CodeTried && r.Text != "" {
		k.notify(Notice{What: "label", Text: r.Text})
		return
	}
	if r.Outcome == scanner.CodeTried {
		_, answer := k.answer(r.Answer, r.Err)
		answer.Visitor = r.Err == nil && k.leftTo(r.Answer)
		k.notify(Notice{What: "scanned", Answer: &answer})
		return
	}
	if r.Use == scanner.UseLabels {
		k.post.add(r)
	}
}

// Act hands on what the rules want shown. It does not block: a page that is
// behind loses notices, never states.
func (k *Kiosk) Act(a locker.Action) {
	show, ok := a.(locker.Show)
	if !ok || show.What == "reboot" {
		return
	}
	n := Notice{What: show.What, Door: uint(show.Door), Text: show.Text}
	if show.Door != 0 {
		s := k.cfg.Loop.State()
		n.Label = ref(&s, show.Door).Label
	}
	k.notify(n)
}

// notify gives a notice to all live pages.
func (k *Kiosk) notify(n Notice) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.listeners {
		select {
		case c <- n:
		default:
		}
	}
}

// listen registers a live page; ok is false when there are enough of them.
func (k *Kiosk) listen() (notices <-chan Notice, stop func(), ok bool) {
	c := make(chan Notice, 16)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.listeners) >= maxListeners {
		return nil, nil, false
	}
	k.listeners[c] = true
	return c, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.listeners, c)
	}, true
}

// events sends what a page shows at once and whenever it changes, and notices as
// they come.
func (k *Kiosk) events(view func() any, w http.ResponseWriter, r *http.Request) {
	notices, stop, ok := k.listen()
	if !ok {
		localpage.Reply(w, http.StatusServiceUnavailable, Result{Outcome: tooMany})
		return
	}
	defer stop()
	localpage.Stream(w, r, lookEvery, view, notices)
}
