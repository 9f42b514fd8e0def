package otep

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// IdentityKey is what ids and de-duplication hang on: the first identifier
// that is present, upper case. It is empty when the subject has none.
func (s Subject) IdentityKey() string {
	switch {
	case s.TrackingNumber != "":
		return strings.ToUpper(strings.TrimSpace(s.TrackingNumber))
	case s.ExternalTrackingNumber != "":
		return strings.ToUpper(strings.TrimSpace(s.ExternalTrackingNumber))
	case s.SSCC != "":
		return "SSCC:" + s.SSCC
	case s.PackageID != 0:
		return "PACKAGE:" + strconv.FormatInt(s.PackageID, 10)
	case s.OrderID != 0:
		return "ORDER:" + strconv.FormatInt(s.OrderID, 10)
	case s.PieceID != "":
		return strings.ToUpper("piece:" + s.PieceID)
	}
	return ""
}

// ID is the event id of e for a producer that gave none: the same subject,
// instant, code and source give the same id.
func ID(s Subject, e Event) string {
	var src Source
	if e.Source != nil {
		src = *e.Source
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		s.IdentityKey(), e.OccurredAt.UTC().Format(time.RFC3339Nano), string(e.StatusCode), src.Type, src.Provider, src.RawStatus,
	}, "\n")))
	return "evt_" + hex.EncodeToString(sum[:10])
}

// Compare orders events: by instant of occurrence, then rank, then time of
// recording, then id.
func Compare(a, b *Event) int {
	if c := a.OccurredAt.Compare(b.OccurredAt.Time); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(rank(a.StatusCode, a.Phase), rank(b.StatusCode, b.Phase)),
		a.RecordedAt.Compare(b.RecordedAt.Time),
		cmp.Compare(a.EventID, b.EventID),
	)
}

// counts reports whether e takes part in the current status and in moves.
func (e *Event) counts() bool {
	return !e.Withdrawn && !e.Reported && (e.TimeType == "" || e.TimeType == Actual)
}

// CountsAt reports whether e takes part in the current status as it is at now: it is actual,
// was not taken back, and its time has come.
func (e *Event) CountsAt(now time.Time) bool { return e.counts() && (now.IsZero() || !e.IsAhead(now)) }

// Rank is the rank of an event's code among others (section 5), 0 when it has none.
func (e *Event) Rank() int { return rank(e.StatusCode, e.Phase) }

// IsTerminal reports whether nothing but a return follows the code.
func (c Code) IsTerminal() bool {
	s := byCode[c]
	return s != nil && s.Terminal
}

// Fill returns e with everything that follows from its code: version, phase
// and addresses. A phase given with an unregistered code is kept.
func (e Event) Fill(profile string) Event {
	e.Version = Version
	if s := byCode[e.StatusCode]; s != nil {
		e.Phase = s.Phase
		e.StatusURI = s.URI(profile)
	} else {
		e.StatusURI = "otep:" + profile + ":" + string(e.StatusCode)
	}
	if e.TimeType == Actual {
		e.TimeType = ""
	}
	e.PhaseURI = "otep:phase:" + e.Phase
	return e
}

// Fold builds the timeline of a subject from its events, in any order. Events
// that are not actual do not count for the current status; withdrawn ones are
// left out. An empty profile is the default one.
func Fold(profile string, s Subject, events []Event) Timeline {
	return FoldAt(profile, s, events, time.Time{})
}

// FoldAt is Fold as it is at now: events whose time has not come do not count.
// The zero time is the end of all times.
func FoldAt(profile string, s Subject, events []Event, now time.Time) Timeline {
	profile = cmp.Or(profile, DefaultProfile)
	t := Timeline{Version: Version, Profile: profile, Subject: s, Events: make([]Event, 0, len(events))}
	for _, e := range events {
		switch {
		case e.Withdrawn:
		case e.Reported:
			t.Reports = append(t.Reports, e.Fill(profile))
		default:
			t.Events = append(t.Events, e.Fill(profile))
		}
	}
	order(t.Events)
	order(t.Reports)
	if e := latest(t.Events, now); e != nil {
		t.Current, t.CurrentPhase, t.LastEventAt = &e.StatusCode, &e.Phase, &e.OccurredAt
		t.Delivered, t.Terminal = e.StatusCode == Delivered, e.StatusCode.IsTerminal()
	}
	return t
}

// order sorts events by Compare. Most come in order.
func order(events []Event) {
	i := 1
	for i < len(events) && Compare(&events[i-1], &events[i]) <= 0 {
		i++
	}
	if i >= len(events) {
		return
	}
	slices.SortStableFunc(events, func(a, b Event) int { return Compare(&a, &b) })
}

// IsAhead reports whether the time of e has not come at now. Clocks differ by up to
// five minutes.
func (e *Event) IsAhead(now time.Time) bool { return e.OccurredAt.Sub(now) > early }

// CountsFrom is when the time of e has come.
func (e *Event) CountsFrom() time.Time { return e.OccurredAt.Add(-early) }

// latest is the last event that counts at now, nil when none does.
func latest(events []Event, now time.Time) *Event {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].CountsAt(now) {
			return &events[i]
		}
	}
	return nil
}

// Reached reports whether an event that counts has a universal code of phase
// pickup or later, side phases left out.
func Reached(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.IsCollected() && isUniversal(e.StatusCode) })
}

// Collected is Reached with every code: whether goods are known to have left
// their sender.
func Collected(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.IsCollected() })
}

// IsCollected reports whether e counts and its phase is pickup or later in the
// order.
func (e *Event) IsCollected() bool {
	phase := e.Phase
	if s := byCode[e.StatusCode]; s != nil {
		phase = s.Phase
	}
	n, _ := PhaseOrder(phase)
	return n > 1 && e.counts()
}
