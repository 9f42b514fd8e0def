package kiosk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/localpage"
	"github.com/postern-io/postern/protocol/wire"
)

// Result is the answer to everything that a person does at the page. Outcome is
// one of wire's code outcomes or refusal reasons, or one of those below.
type Result struct {
	Outcome   string    `json:"outcome"`
	Why       string    `json:"why,omitempty"` // of a refused request
	OpeningID string    `json:"opening_id,omitempty"`
	Doors     []DoorRef `json:"doors,omitempty"`
	TriesLeft *int      `json:"tries_left,omitempty"` // after a wrong code
	// LockedSeconds is how long codes of this kind are locked: Budget is one of
	// typed, scanned, staff.
	LockedSeconds int    `json:"locked_seconds,omitempty"`
	Budget        string `json:"budget,omitempty"`
	// Choice, Size and Sizes are of choose_size: what /api/size names, the size that is
	// proposed, and the free compartments of each size.
	Choice string     `json:"choice,omitempty"`
	Size   string     `json:"size,omitempty"`
	Sizes  []FreeSize `json:"sizes,omitempty"`
	// StaffToken is that of the session which a right staff code began, for the page
	// that sent it.
	StaffToken string `json:"staff_token,omitempty"`
	// Visitor is of a code that has opened a door for another person than the staff whose
	// session went on until then.
	Visitor bool `json:"visitor,omitempty"`
}

const codePath, scanPath = "/api/code", "/api/scan"

// Outcomes that the rules do not know.
const (
	notACode  = "not_a_code" // the input cannot be a code of this cabinet; no try was counted
	noStore   = "store"      // the cabinet's memory takes nothing now; nothing happened
	tooMany   = "busy_page"  // others wait already; nothing happened
	uncertain = "uncertain"  // no answer in time: it may still happen
	staffCode = "staff"      // a right staff code for no door: a staff session has begun

	knownLabel   = "known_label"   // of a delivery that is to be brought: its code comes next
	unknownLabel = "unknown_label" // of none
)

// FreeSize is how many compartments of a size are free.
type FreeSize struct {
	Size string `json:"size"`
	Free int    `json:"free"`
}

// DoorRef names a door for people.
type DoorRef struct {
	Door  uint   `json:"door"`
	Label string `json:"label"`
}

func (k *Kiosk) code(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Code  string `json:"code"`
		Doors []uint `json:"doors"`
		Queue bool   `json:"queue"` // of a staff session: the doors open one after the other
		Label string `json:"label"` // that was scanned before, "" for none
	}
	if !read(w, r, &in) {
		return
	}
	if len(in.Doors) > wire.MaxDoors {
		refuse(w, http.StatusBadRequest, "doors")
		return
	}
	typed := access.Entered{Code: in.Code, Label: in.Label, Queue: in.Queue, Choose: true}
	for _, n := range in.Doors {
		typed.Doors = append(typed.Doors, edge.DoorNumber(n))
	}
	if in.Queue && !k.session.has(bearer(r)) {
		refuse(w, http.StatusUnauthorized, "staff_code")
		return
	}
	if in.Queue && len(typed.Doors) == 0 {
		refuse(w, http.StatusBadRequest, "doors")
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) { return k.cfg.Codes.Enter(ctx, typed) })
}

func (k *Kiosk) scan(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Text  string `json:"text"`
		Label string `json:"label"`
	}
	if !read(w, r, &in) {
		return
	}
	if in.Text == "" {
		localpage.Reply(w, http.StatusUnprocessableEntity, Result{Outcome: notACode})
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) {
		return k.cfg.Codes.Enter(ctx, access.Entered{Text: in.Text, Label: in.Label})
	})
}

// label says whether a label is of a delivery that is to be brought here. It opens nothing.
func (k *Kiosk) label(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Text string `json:"text"`
	}
	if !read(w, r, &in) {
		return
	}
	s, out := k.cfg.Loop.State(), Result{Outcome: unknownLabel}
	if s.Labelled(in.Text) != "" {
		out.Outcome = knownLabel
	}
	localpage.Reply(w, http.StatusOK, out)
}

func (k *Kiosk) size(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Choice string `json:"choice"`
		Size   string `json:"size"`
	}
	if !read(w, r, &in) {
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) {
		return k.cfg.Loop.Do(ctx, locker.PickSize{Choice: in.Choice, Size: in.Size})
	})
}

type openingInput struct {
	OpeningID string `json:"opening_id"`
}

func (k *Kiosk) reopen(w http.ResponseWriter, r *http.Request) {
	var in openingInput
	if !read(w, r, &in) {
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) {
		return k.cfg.Loop.Do(ctx, locker.Reopen{OpeningID: in.OpeningID})
	})
}

func (k *Kiosk) done(w http.ResponseWriter, r *http.Request) {
	var in openingInput
	if !read(w, r, &in) {
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) {
		return k.cfg.Loop.Do(ctx, locker.PressedDone{OpeningID: in.OpeningID})
	})
}

// another takes another compartment in place of one that a courier has open: one that is larger,
// or for any other reason one in place of a compartment that is blocked.
func (k *Kiosk) another(w http.ResponseWriter, r *http.Request) {
	var in struct {
		openingInput
		Door   uint   `json:"door"`
		Reason string `json:"reason"`
	}
	if !read(w, r, &in) {
		return
	}
	if !slices.Contains([]string{locker.TooSmall, wire.BlockOccupied, wire.BlockDirty, wire.BlockBroken}, in.Reason) {
		refuse(w, http.StatusBadRequest, "reason")
		return
	}
	k.try(w, r, func(ctx context.Context) (locker.Answer, error) {
		return k.cfg.Loop.Do(ctx, locker.TakeAnother{OpeningID: in.OpeningID, Door: edge.DoorNumber(in.Door), Reason: in.Reason})
	})
}

// try asks the cabinet and tells the page what became of it. A page that goes
// away meanwhile changes nothing: what was begun is seen through.
func (k *Kiosk) try(w http.ResponseWriter, r *http.Request, ask func(context.Context) (locker.Answer, error)) {
	select {
	case k.tries <- struct{}{}:
		defer func() { <-k.tries }()
	default:
		localpage.Reply(w, http.StatusTooManyRequests, Result{Outcome: tooMany})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), tryWait)
	defer cancel()
	a, err := ask(ctx)
	status, out := k.answer(a, err)
	out.Visitor = err == nil && (r.URL.Path == codePath || r.URL.Path == scanPath) && k.leftTo(a)
	switch token := bearer(r); {
	case err != nil || out.Visitor:
	case out.Outcome == staffCode:
		out.StaffToken = k.session.begin(a.Session)
	case a.Session == "" || k.session.join(token, a.Session):
	case r.URL.Path == scanPath && a.Outcome == wire.CodeOK: // by a signed QR code of staff
		out.StaffToken = k.session.begin(a.Session)
	}
	localpage.Reply(w, status, out)
}

// leftTo reports whether a right code has opened a door for another person than the staff whose
// session goes on. That was left: it ends, so that they see their door and nothing of the staff's.
func (k *Kiosk) leftTo(a locker.Answer) bool {
	return a.Outcome == wire.CodeOK && a.OpeningID != "" && a.Session == "" && k.session.stop()
}

// answer is what a person is told of what the cabinet made of a request.
func (k *Kiosk) answer(a locker.Answer, err error) (status int, out Result) {
	if err == nil {
		return http.StatusOK, k.result(a)
	}
	status, outcome := http.StatusServiceUnavailable, uncertain
	switch {
	case errors.Is(err, access.ErrNotACode):
		status, outcome = http.StatusUnprocessableEntity, notACode
	case errors.Is(err, locker.ErrFull), errors.Is(err, locker.ErrStore):
		outcome = noStore
		k.cfg.Log.Error("the store refuses a request made at the cabinet", "err", err)
	default:
		k.cfg.Log.Warn("no answer to a request made at the cabinet", "err", err)
	}
	return status, Result{Outcome: outcome}
}

func (k *Kiosk) result(a locker.Answer) Result {
	s := k.cfg.Loop.State()
	out := Result{Outcome: a.Outcome, OpeningID: a.OpeningID, LockedSeconds: seconds(a.Until, k.cfg.Now()), Budget: string(a.Budget), Choice: a.Choice, Size: a.Size}
	for _, x := range a.Free {
		out.Sizes = append(out.Sizes, FreeSize(x))
	}
	for _, n := range a.Doors {
		out.Doors = append(out.Doors, ref(&s, n))
	}
	switch {
	case a.Outcome == wire.CodeOK && a.OpeningID == "":
		out.Outcome = staffCode
	case a.Outcome == wire.CodeUnknown:
		out.TriesLeft = &a.Left
	}
	return out
}

// seconds is how long it is until a monotonic time, rounded up; 0 when it has
// passed.
func seconds(until int64, now locker.Now) int {
	if until <= now.Mono {
		return 0
	}
	return int((time.Duration(until-now.Mono) + time.Second - 1) / time.Second)
}
