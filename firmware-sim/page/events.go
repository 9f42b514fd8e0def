package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// events sends the state at once and whenever it changes.
func (p *Page) events(w http.ResponseWriter, r *http.Request, c *Cabinet) {
	select {
	case p.pages <- struct{}{}:
		defer func() { <-p.pages }()
	default:
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("At most %d pages are live at once; close another and reload.", maxPages))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{w: w, rc: http.NewResponseController(w)}
	_ = s.rc.SetReadDeadline(time.Time{}) // the page says no more; tests' recorders have none
	look, alive := time.NewTicker(lookEvery), time.NewTicker(keepAlive)
	defer look.Stop()
	defer alive.Stop()
	for sent := s.state(p.state(c)); sent; {
		select {
		case <-r.Context().Done():
			return
		case <-look.C:
			sent = s.state(p.state(c))
		case <-alive.C:
			sent = s.send(": still here\n\n")
		}
	}
}

// stream is one live page.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	last []byte
}

// state sends v when it differs from what was sent last.
func (s *stream) state(v State) bool {
	b, _ := json.Marshal(v) // plain fields always encode
	if bytes.Equal(b, s.last) {
		return true
	}
	s.last = b
	return s.send("event: state\ndata: %s\n\n", b)
}

// send reports whether the page is still there.
func (s *stream) send(format string, a ...any) bool {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeWait)) // tests' recorders have none
	if _, err := fmt.Fprintf(s.w, format, a...); err != nil {
		return false
	}
	return s.rc.Flush() == nil
}
