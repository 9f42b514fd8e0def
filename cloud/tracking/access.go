package tracking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
)

// Level is how much of a parcel a caller sees. Each holds those before it.
type Level string

// Levels.
const (
	// LevelReduced is number, status and its time: all that a number that can be
	// computed shows.
	LevelReduced   Level = "reduced"
	LevelPublic    Level = "public"    // by the number
	LevelRecipient Level = "recipient" // by the link's secret, or the telephone's last digits
	LevelOwner     Level = "owner"     // by a token
)

// What became of digits that were given.
const (
	verifyNone   = "none"
	verifyOK     = "ok"
	verifyWrong  = "wrong"
	verifyLocked = "locked"
)

// Access says how much a caller sees, and why.
type Access struct {
	Level  Level  `json:"level" doc:"reduced, public, recipient or owner"`
	Verify string `json:"verify" doc:"none, ok, wrong or locked: while it is locked right digits are not looked at"`
	// RetryAfter is in seconds, while Verify is locked.
	RetryAfter *int `json:"retry_after"`
}

// proof is what a caller gives to be taken for the recipient.
type proof struct {
	digits string // last four of the telephone number
	key    string // secret of the link
}

func (p proof) given() bool { return p.digits != "" || p.key != "" }

// What is shown for numbers that can be guessed.
const (
	LegacyReduced = "reduced"
	LegacyOpen    = "open"
	LegacyClosed  = "closed"
)

// GuardConfig says how parcels are kept from strangers.
type GuardConfig struct {
	Links cloud.LinkKey // empty: no link is proof
	// Legacy is what old numbers show without proof; empty is LegacyReduced.
	Legacy string
	// Lookups counts who asks; nil: nothing limits that.
	Lookups *limit.Lookups
	Log     *slog.Logger // nil: nothing is logged
}

// Guard keeps parcels from strangers. Call it before the service is used. It
// returns s.
func (s *Service) Guard(cfg GuardConfig) *Service {
	s.links, s.lookups = cfg.Links, cfg.Lookups
	if cfg.Legacy != "" {
		s.legacy = cfg.Legacy
	}
	if cfg.Log != nil {
		s.log, s.feed.log = cfg.Log, cfg.Log
	}
	return s
}

// ProofLife is how long a page may remember that digits were right.
const ProofLife = 24 * time.Hour

// admit finds how much of a parcel its caller sees. Error: code, where that is
// nothing.
func (s *Service) admit(ctx context.Context, c cloud.Caller, p *parcel, asked, code string, given proof, now time.Time) error {
	p.access = Access{Level: LevelPublic, Verify: verifyNone}
	old := cloud.FormOf(asked) == cloud.LegacyNumber
	if old && s.legacy != LegacyOpen {
		p.access.Level = LevelReduced
	}
	switch {
	case p.owner:
		p.access.Level = LevelOwner
		return nil
	case given.given():
		if err := s.prove(ctx, p, given, now); err != nil {
			return err
		}
	}
	if old && s.legacy == LegacyClosed && p.access.Level == LevelReduced {
		return cloud.E(cloud.NotFound, code)
	}
	return nil
}

// recipientOf is the secret of a parcel's link and its recipient's telephone
// number; both are empty for a parcel that is nothing but a timeline.
func (s *Service) recipientOf(v cloud.View, sh cloud.Shipment) (link, phone string, err error) {
	switch {
	case sh.OrderID != 0:
		o, err := v.Order(sh.BusinessID, sh.OrderID)
		if err != nil {
			return "", "", err
		}
		if o.Recipient != nil {
			phone = o.Recipient.Phone
		}
		return s.links.OfOrder(o.ID, o.LinkGeneration), phone, nil
	case sh.DeliveryID != 0:
		d, err := v.Delivery(sh.DeliveryID)
		return s.links.OfShipment(sh.ID, sh.LinkFrom), d.Recipient.Phone, err
	}
	return "", "", nil
}

// prove looks at what a caller gives as proof.
func (s *Service) prove(ctx context.Context, p *parcel, given proof, now time.Time) error {
	var link, phone string
	err := s.store.Look(ctx, func(v cloud.View) (err error) {
		link, phone, err = s.recipientOf(v, p.shipment)
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) {
		link, phone, err = "", "", nil
	}
	switch {
	case err != nil:
		return err
	case s.links.Opens(link, given.key, now):
		p.access.Level = LevelRecipient
		return nil
	case given.digits == "":
		return nil
	case len(given.digits) != 4 || strings.Trim(given.digits, "0123456789") != "":
		p.access.Verify = verifyWrong // it could never be right, and is no guess
		return nil
	}
	if err := s.verify(ctx, p, phone, given.digits, now); err != nil {
		return err
	}
	if p.access.Verify == verifyOK {
		p.access.Level, p.proof = LevelRecipient, s.links.Until(link, now.Add(ProofLife))
	}
	return nil
}

// verify compares digits. Guesses about one parcel are judged one after the
// other, so that many at once are no more than few.
func (s *Service) verify(ctx context.Context, p *parcel, phone, digits string, now time.Time) error {
	from := addressOf(ctx)
	if wait := s.lookups.Guess(from, now); wait > 0 {
		p.access.locked(wait)
		return nil
	}
	var wait time.Duration
	var right, attacked bool
	defer func() {
		if p.access.Verify != verifyWrong {
			s.lookups.GuessedRight(from, now)
		}
	}()
	err := s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		wait, right, attacked = 0, false, false
		first, err := firstOf(v, p.shipment)
		if err != nil {
			return nil, err
		}
		g, err := v.ProofGuesses(first.ID)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if wait = g.Locked(now); wait > 0 {
			return nil, nil
		}
		if right = verified(phone, digits); right {
			return nil, nil
		}
		g.ShipmentID, g.BusinessID, g.Number = first.ID, first.BusinessID, first.Number
		g, attacked = g.Wronged(now.UTC())
		ch := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{ProofGuesses: []cloud.ProofGuesses{g}}, Refused: true}
		if attacked {
			ch.Audits = []cloud.Audit{{BusinessID: g.BusinessID, At: now.UTC(), Actor: "address:" + from, Action: "tracking.proof_locked", Target: g.Number,
				Detail: fmt.Sprintf(`{"wrong":%d,"locks":%d}`, g.Total, g.Locks)}}
		}
		return ch, nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("judge proof for shipment %d: %w", p.shipment.ID, err)
	case wait > 0:
		p.access.locked(wait)
	case right:
		p.access.Verify = verifyOK
	default:
		p.access.Verify = verifyWrong
	}
	if attacked {
		s.log.Warn("recipient check locked after wrong digits", "shipment", int64(p.shipment.ID), "business", int64(p.shipment.BusinessID), "address", from)
	}
	return nil
}

// firstOf is the shipment that counts guesses for one: of a delivery with several
// packages the first. In a decision others about it wait.
func firstOf(v cloud.View, s cloud.Shipment) (cloud.Shipment, error) {
	if s.OrderID == 0 && s.DeliveryID != 0 {
		all, err := v.DeliveryShipments(s.DeliveryID)
		if err != nil {
			return cloud.Shipment{}, err
		}
		if len(all) > 0 {
			s = all[0]
		}
	}
	return v.ShipmentByNumber(s.Number)
}

func (a *Access) locked(wait time.Duration) {
	seconds := limit.Seconds(wait)
	a.Verify, a.RetryAfter = verifyLocked, &seconds
}

// addressOf is the network address that a call came from, "" when none is known.
func addressOf(ctx context.Context) string {
	if call := cloud.CallOf(ctx); call != nil {
		return call.IP
	}
	return ""
}
