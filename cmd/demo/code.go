package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// entered is the cabinet's answer to a code.
type entered struct {
	Outcome string
	Doors   []uint
	Scanned bool // by the QR symbol, as the keypad was locked
}

// How says what the person did.
func (e entered) how() string {
	if e.Scanned {
		return "shows the QR code"
	}
	return "types the code"
}

// enterCode lets a person of the script enter a parcel's code at its cabinet, and
// notes it. A guest may have locked the keypad with wrong codes: then the person
// shows the QR code, and when QR codes are locked too, staff reset the tries.
func (s *stage) enterCode(ctx context.Context, p *parcel, kind, code string) (out entered, err error) {
	scan := false
	for range 20 {
		out, err = s.tryCode(ctx, p, kind, code, scan)
		var refused *apiError
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests: // a guest is at the screen
			sleep(ctx, time.Second)
		case err == nil && out.Outcome == wire.ReasonBoard: // a board that does not answer on a busy machine: people type once more
			sleep(ctx, 2*time.Second)
		case err != nil || out.Outcome != wire.CodeLockedOut:
			return out, err
		case scan:
			if err := s.resetTries(ctx, p.at); err != nil {
				return out, err
			}
			scan = false
		default:
			scan = true
		}
	}
	return out, err
}

// tryCode types or scans a code once.
func (s *stage) tryCode(ctx context.Context, p *parcel, kind, code string, scan bool) (entered, error) {
	path, body := "/api/code", map[string]any{"code": code}
	if scan {
		path, body = "/api/scan", map[string]any{"text": passcode.QR(p.at.code, code)}
	}
	a := truth.Act{Cabinet: p.at.code, Kind: edge.ByCode, At: time.Now(), Delivery: p.Number, Code: kind}
	var answer struct {
		Outcome string `json:"outcome"`
		Doors   []struct {
			Door uint `json:"door"`
		} `json:"doors"`
	}
	kiosk := &api{client: s.client}
	err := kiosk.call(ctx, http.MethodPost, "http://"+p.at.kiosk+path, body, &answer)
	out := entered{Outcome: answer.Outcome, Scanned: scan}
	for _, d := range answer.Doors {
		out.Doors = append(out.Doors, d.Door)
	}
	if err == nil {
		a.Until, a.OK, a.Doors = time.Now(), out.Outcome == wire.CodeOK, out.Doors
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, a)
	return out, err
}

// resetTries has staff make a cabinet take codes again.
func (s *stage) resetTries(ctx context.Context, c *cabinet) error {
	staff := s.as(s.box.Staff.Token)
	err := staff.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/smart-lockers/devices/%d/command", s.api.base, c.id), map[string]any{"type": string(wire.CmdResetTries), "reason": "wrong codes of a guest"}, nil)
	if err != nil {
		return fmt.Errorf("reset the tries of %s: %w", c.code, err)
	}
	s.logStory("staff", "reset the tries of %s", c.code)
	return s.awaits(ctx, "codes taken again at "+c.code, 30*time.Second, func() bool {
		locked, err := c.locked(ctx)
		return err == nil && !locked
	})
}

// locked reports whether wrong codes lock the keypad or the scanner.
func (c *cabinet) locked(ctx context.Context) (bool, error) {
	v, err := c.look(ctx)
	return v.Typed+v.Scanned+v.Staff > 0, err
}
