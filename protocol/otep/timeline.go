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
		return strings.ToUpper(s.TrackingNumber)
	case s.ExternalTrackingNumber != "":
		return strings.ToUpper(s.ExternalTrackingNumber)
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
func Compare(a, b Event) int {
	return cmp.Or(
		a.OccurredAt.Compare(b.OccurredAt.Time),
		cmp.Compare(byCode[a.StatusCode].Rank, byCode[b.StatusCode].Rank),
		a.RecordedAt.Compare(b.RecordedAt.Time),
		cmp.Compare(a.EventID, b.EventID),
	)
}

// Fill returns e with everything that follows from its code: version, phase
// and addresses. A phase given with an unregistered code is kept.
func (e Event) Fill(profile string) Event {
	e.Version = Version
	if s, ok := byCode[e.StatusCode]; ok {
		e.Phase = s.Phase
		e.StatusURI = s.URI(profile)
	} else {
		e.StatusURI = "otep:" + profile + ":" + string(e.StatusCode)
	}
	e.PhaseURI = "otep:phase:" + e.Phase
	return e
}

// Fold builds the timeline of a subject from its events, in any order. Events
// that are not actual do not count for the current status.
func Fold(profile string, s Subject, events []Event) Timeline {
	t := Timeline{Version: Version, Profile: profile, Subject: s, Events: make([]Event, 0, len(events))}
	for _, e := range events {
		t.Events = append(t.Events, e.Fill(profile))
	}
	slices.SortStableFunc(t.Events, Compare)
	for i := len(t.Events) - 1; i >= 0; i-- {
		e := &t.Events[i]
		if e.TimeType != "" && e.TimeType != "actual" {
			continue
		}
		spec := byCode[e.StatusCode]
		t.Current, t.CurrentPhase, t.LastEventAt = &e.StatusCode, &e.Phase, &e.OccurredAt
		t.Delivered, t.Terminal = e.StatusCode == Delivered, spec.Terminal
		break
	}
	return t
}

// Reached reports whether any event has a universal code of phase pickup or
// later, side phases left out.
func Reached(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool {
		s, ok := byCode[e.StatusCode]
		if !ok || s.Profile != "" {
			return false
		}
		switch s.Phase {
		case PhasePickup, PhaseInbound, PhaseTransit, PhaseOutForDelivery, PhaseDelivered:
			return true
		}
		return false
	})
}
