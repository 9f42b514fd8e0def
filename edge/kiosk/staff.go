package kiosk

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/localpage"
	"github.com/postern-io/postern/protocol/wire"
)

// keyFile is the file of the page's key in the agent's data folder.
const keyFile = "page.key"

// NewKey makes the key by which programs of this machine read the staff's view, 128
// random bits as text, and writes it to dir, readable by the agent's user alone.
// Each start of the agent makes another.
func NewKey(dir string) (string, error) {
	key, name := rand.Text(), filepath.Join(dir, keyFile)
	if err := os.WriteFile(name+".new", []byte(key), 0o600); err != nil {
		return "", fmt.Errorf("write the page's key: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return "", fmt.Errorf("write the page's key: %w", err)
	}
	return key, nil
}

// ReadKey reads what NewKey wrote to dir.
func ReadKey(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return "", fmt.Errorf("read the page's key: %w", err)
	}
	return string(b), nil
}

// staffIdle is how long a staff session lasts after staff's last act.
const staffIdle = 2 * time.Minute

// session is the one staff session that a cabinet has at a time. It lives in memory
// alone: a start of the agent ends it.
type session struct {
	mu    sync.Mutex
	token string // 128 random bits as text; "" for none
	rules string // the session's id in the rules
	until time.Time
	learn edge.DoorNumber // door whose wiring is learned, 0 for none
	since time.Time       // when that began
}

// begin starts a session and ends the one before it.
func (s *session) begin(rules string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.rules, s.until, s.learn = rand.Text(), rules, time.Now().Add(staffIdle), 0
	return s.token
}

// watch begins to learn how a door is wired, and extends the session; 0 ends that. It gives the
// door that was watched before; false when the session is over.
func (s *session) watch(token string, door edge.DoorNumber) (was edge.DoorNumber, since time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok = s.current(token); ok {
		was, since = s.learn, s.since
		s.until, s.learn, s.since = time.Now().Add(staffIdle), door, time.Now()
	}
	return was, since, ok
}

// watched is the door whose wiring is learned in the session that runs, 0 for none.
func (s *session) watched() (door edge.DoorNumber, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !time.Now().Before(s.until) || s.token == "" {
		return 0, since
	}
	return s.learn, s.since
}

// has reports whether token is that of the session that runs.
func (s *session) has(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(token)
}

// join lets the session go on with what the rules call it; false when it is over.
func (s *session) join(token, rules string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.current(token)
	if ok {
		s.until, s.rules = time.Now().Add(staffIdle), rules
	}
	return ok
}

// id is what the rules call the session whose token this is, "" when it is over.
func (s *session) id(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.current(token) {
		return ""
	}
	return s.rules
}

func (s *session) current(token string) bool {
	return s.token != "" && time.Now().Before(s.until) && subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// extend lets the session go on from now; false when it is over.
func (s *session) extend(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.current(token)
	if ok {
		s.until = time.Now().Add(staffIdle)
	}
	return ok
}

// end ends the session; false when it is over already.
func (s *session) end(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.current(token)
	if ok {
		s.token = ""
	}
	return ok
}

// stop ends the session that runs; false when there is none.
func (s *session) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran := s.token != "" && time.Now().Before(s.until)
	s.token = ""
	return ran
}

func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// staff answers the staff's view to a staff session, and to programs of this
// machine that have the page's key. Looking does not extend a session.
func (k *Kiosk) staff(w http.ResponseWriter, r *http.Request) {
	token := bearer(r)
	if !k.session.has(token) && (k.cfg.Key == "" || subtle.ConstantTimeCompare([]byte(token), []byte(k.cfg.Key)) != 1) {
		refuse(w, http.StatusUnauthorized, "staff_code")
		return
	}
	v := k.view()
	if k.session.has(token) {
		v.Session = k.sessionView(k.session.id(token))
	}
	if door, since := k.session.watched(); door != 0 && k.cfg.Learn != nil {
		if learned, ok := k.cfg.Learn(door, since); ok {
			v.Learn = &learned
		}
	}
	localpage.Reply(w, http.StatusOK, v)
}

// next opens the next door of those that staff chose to open one after the other.
func (k *Kiosk) next(w http.ResponseWriter, r *http.Request) {
	if read(w, r, &struct{}{}) {
		k.staffTry(w, r, func(session string) locker.Input { return locker.OpenNext{Session: session} })
	}
}

// remove takes what staff state of the packages behind a door that they have opened.
func (k *Kiosk) remove(w http.ResponseWriter, r *http.Request) {
	var in struct {
		OpeningID string `json:"opening_id"`
		Door      uint   `json:"door"`
		Outcome   string `json:"outcome"`
		Reason    string `json:"removal_reason"`
	}
	if !read(w, r, &in) {
		return
	}
	if !wire.IsRemoval(in.Outcome, in.Reason) {
		refuse(w, http.StatusBadRequest, "removal")
		return
	}
	k.staffTry(w, r, func(session string) locker.Input {
		return locker.Remove{Session: session, OpeningID: in.OpeningID, Door: edge.DoorNumber(in.Door), Outcome: in.Outcome, Reason: in.Reason}
	})
}

// staffTry asks the cabinet for what a staff session does.
func (k *Kiosk) staffTry(w http.ResponseWriter, r *http.Request, input func(session string) locker.Input) {
	token := bearer(r)
	if !k.session.extend(token) {
		refuse(w, http.StatusUnauthorized, "staff_code")
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) {
		return k.cfg.Loop.Do(ctx, input(k.session.id(token)))
	})
}

// learn begins to watch what moves on the boards while staff open a door that is shut now.
func (k *Kiosk) learn(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Door uint `json:"door"`
	}
	if !read(w, r, &in) {
		return
	}
	door := edge.DoorNumber(in.Door)
	if k.cfg.Learn == nil {
		refuse(w, http.StatusNotFound, "boards")
		return
	}
	if _, ok := k.cfg.Learn(door, time.Now()); !ok || door == 0 {
		refuse(w, http.StatusBadRequest, "door")
		return
	}
	if _, _, ok := k.session.watch(bearer(r), door); !ok {
		refuse(w, http.StatusUnauthorized, "staff_code")
		return
	}
	localpage.Reply(w, http.StatusOK, Result{Outcome: "ok"})
}

// learned ends that, and keeps for support bundles what was learned.
func (k *Kiosk) learned(w http.ResponseWriter, r *http.Request) {
	if !read(w, r, &struct{}{}) {
		return
	}
	door, since, ok := k.session.watch(bearer(r), 0)
	if !ok {
		refuse(w, http.StatusUnauthorized, "staff_code")
		return
	}
	if door != 0 && k.cfg.Learn != nil && k.cfg.KeepLearned != nil {
		if l, known := k.cfg.Learn(door, since); known && l.Result != edge.LearnWaiting {
			if err := k.cfg.KeepLearned(l); err != nil {
				k.cfg.Log.Error("what was learned of a door is not kept", "door", door, "err", err)
				localpage.Reply(w, http.StatusServiceUnavailable, Result{Outcome: noStore})
				return
			}
		}
	}
	localpage.Reply(w, http.StatusOK, Result{Outcome: "ok"})
}

// staffAct does something to the session whose token a request carries.
func staffAct(act func(token string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !read(w, r, &struct{}{}) {
			return
		}
		if !act(bearer(r)) {
			refuse(w, http.StatusUnauthorized, "staff_code")
			return
		}
		localpage.Reply(w, http.StatusOK, Result{Outcome: "ok"})
	}
}
