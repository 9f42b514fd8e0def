package cloud

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// ProofGuesses are the wrong digits that were given for one parcel by callers
// that claimed to be its recipient. A delivery of several packages is one parcel, whose
// guesses are kept with the first of its shipments: its recipient has one telephone.
type ProofGuesses struct {
	ShipmentID  ShipmentID
	BusinessID  BusinessID
	Number      string
	Wrong       int // since the last lock
	Total       int
	Locks       int
	LockedAt    time.Time // of the last lock; zero: never
	LockedUntil time.Time
}

// Bounds of guessing.
const (
	attackLasts   = 7 * 24 * time.Hour // locks of this time are one attack
	guessesToLock = 5
	guessesToEnd  = 20 // in all: then digits are no proof any more
)

// locksFor is how long the first lock holds, the second, and every later one.
var locksFor = []time.Duration{15 * time.Minute, time.Hour, 24 * time.Hour}

// Ended reports whether digits are no proof of this shipment any more.
func (g ProofGuesses) Ended() bool { return g.Total >= guessesToEnd }

// Locked is how long digits are not looked at, 0 while they are.
func (g ProofGuesses) Locked(now time.Time) time.Duration {
	wait := max(g.LockedUntil.Sub(now), 0)
	if g.Ended() {
		wait = max(wait, locksFor[len(locksFor)-1])
	}
	return wait
}

// Wronged is g after one more wrong guess; attacked says that this locked it for the
// first time of an attack.
func (g ProofGuesses) Wronged(now time.Time) (next ProofGuesses, attacked bool) {
	attacked = g.LockedAt.IsZero() || now.Sub(g.LockedAt) > attackLasts
	g.Wrong++
	g.Total++
	if g.Wrong < guessesToLock && !g.Ended() {
		return g, false
	}
	g.LockedAt, g.LockedUntil = now, now.Add(locksFor[min(g.Locks, len(locksFor)-1)])
	g.Wrong = 0
	g.Locks++
	return g, attacked
}

// LinkKey makes the secrets of links to parcels: who has the tracking link of a parcel is
// its recipient, who has that of a drop-off its sender. They are not stored, so that a link can be given again. An empty
// key makes none and takes none. Safe for concurrent use.
type LinkKey []byte

const linkBytes = 16 // of a secret

// OfOrder is the secret of an order's link. Another generation is another secret.
func (k LinkKey) OfOrder(id OrderID, generation int) string {
	return k.secret("order", int64(id), int64(generation))
}

// OfShipment is the secret of the link of a parcel without an order. Another first delivery
// (Shipment.LinkFrom) is another secret.
func (k LinkKey) OfShipment(id ShipmentID, first DeliveryID) string {
	return k.secret("shipment", int64(id), int64(first))
}

// OfSender is the secret of the link of the person who brings a delivery for a courier. No
// secret of a recipient's link is one of it.
func (k LinkKey) OfSender(id DeliveryID) string { return k.secret("sender", int64(id), 0) }

// Until is a secret as good as link until then: for who has shown otherwise to be
// the recipient.
func (k LinkKey) Until(link string, until time.Time) string {
	if len(k) == 0 {
		return ""
	}
	at := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	return proofPrefix + base64.RawURLEncoding.EncodeToString(append(at, k.mac("proof", append([]byte(link), at...))...))
}

const proofPrefix = "v."

// Opens reports whether given is the link's secret, or one of Until that is
// still good.
func (k LinkKey) Opens(link, given string, now time.Time) bool {
	if len(k) == 0 || link == "" || len(given) > 64 {
		return false
	}
	if subtle.ConstantTimeCompare([]byte(link), []byte(given)) == 1 {
		return true
	}
	if len(given) < len(proofPrefix) {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(given[len(proofPrefix):])
	if err != nil || len(raw) != 8+linkBytes {
		return false
	}
	until := time.Unix(int64(binary.BigEndian.Uint64(raw)), 0)
	return now.Before(until) && subtle.ConstantTimeCompare([]byte(k.Until(link, until)), []byte(given)) == 1
}

// IsLink reports whether given is the link's secret itself: what Until made of it
// says less.
func (k LinkKey) IsLink(link, given string) bool {
	return len(k) > 0 && link != "" && subtle.ConstantTimeCompare([]byte(link), []byte(given)) == 1
}

func (k LinkKey) secret(of string, id, generation int64) string {
	if len(k) == 0 {
		return ""
	}
	body := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(id)), uint64(generation))
	return base64.RawURLEncoding.EncodeToString(k.mac(of, body))
}

func (k LinkKey) mac(of string, body []byte) []byte {
	m := hmac.New(sha256.New, k)
	m.Write([]byte(of + "\n"))
	m.Write(body)
	return m.Sum(nil)[:linkBytes]
}

// Pseudonym is a name for id that says nothing of it: the same for the same key
// and id.
func (k LinkKey) Pseudonym(id string) string {
	const hexes = "0123456789abcdef"
	out := []byte("dev-")
	for _, b := range k.mac("device", []byte(id))[:4] {
		out = append(out, hexes[b>>4], hexes[b&15])
	}
	return string(out)
}
