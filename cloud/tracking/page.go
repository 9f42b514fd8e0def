package tracking

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// maxShown is how many events an answer shows at most.
const maxShown = 500

// page is a part of a timeline: its newest events, or the newest before another one, at most so many.
type page struct {
	before *otep.Event // what Compare looks at; nil for the newest
	limit  int
}

// tail are the events of a list, which is in the order of otep.Compare, that a page shows, and whether there are
// events before them. Events that are equal in this order are not parted.
func tail[T any](p page, list []T, event func(*T) *otep.Event) ([]T, bool) {
	if p.before != nil {
		end := len(list)
		for end > 0 && otep.Compare(event(&list[end-1]), p.before) >= 0 {
			end--
		}
		list = list[:end]
	}
	cut := len(list) - p.limit
	for cut > 0 && otep.Compare(event(&list[cut-1]), event(&list[cut])) == 0 {
		cut--
	}
	if cut <= 0 {
		return slices.Clone(list), false
	}
	return slices.Clone(list[cut:]), true
}

func itself(e *otep.Event) *otep.Event { return e }

// isShown reports whether an event is for the caller to see: it is theirs when its time has come.
func (p *parcel) isShown(e *otep.Event, now time.Time) bool {
	return p.owner || e.TimeType != "" || !e.IsAhead(now)
}

// spare is how many rows are read beside those that a page is to show.
const spare = 12

// rowsBehind reads as many rows of a timeline as a page shows, and one that stands before these, beginning with
// rows that are there already, which are not all. A page without a cursor has a row that says the status, too. ended reports that no row is
// left. All rows of a millisecond are read together, since the database has no order of them.
func rowsBehind(v cloud.View, p *parcel, of page, rows []cloud.TimelineEvent, now time.Time) (out []cloud.TimelineEvent, ended bool, err error) {
	var upto time.Time
	if of.before != nil {
		upto = of.before.OccurredAt.Time
	}
	shown, counts := 0, of.before != nil
	for size := of.limit + spare; ; rows = nil {
		if rows == nil {
			if rows, err = v.TimelineUpto(p.shipment.ID, upto, size); err != nil {
				return nil, false, err
			}
			ended = len(rows) < size
		}
		if !ended {
			last := rows[len(rows)-1].Event.OccurredAt.UnixMilli()
			whole := slices.IndexFunc(rows, func(e cloud.TimelineEvent) bool { return e.Event.OccurredAt.UnixMilli() == last })
			if whole == 0 {
				size *= 2
				continue
			}
			rows, upto = rows[:whole], time.UnixMilli(last)
		}
		for i := range rows {
			e := &rows[i].Event
			if of.before != nil && otep.Compare(e, of.before) >= 0 {
				continue
			}
			if out = append(out, rows[i]); !e.Withdrawn && !e.Reported && p.isShown(e, now) {
				shown++
			}
			counts = counts || e.CountsAt(now)
		}
		if ended || shown > of.limit && counts {
			return out, ended, nil
		}
	}
}

// derive makes the timeline of a parcel of the events that were found with it, and shows the newest. Where there may be
// older ones it reads what is missing: of a timeline with events about single packages all of it.
func derive(ctx context.Context, store Store, p *parcel, found cloud.FoundTimeline, now time.Time) error {
	if found.Longer {
		err := store.Look(ctx, func(v cloud.View) error {
			split, err := v.IsSplit(p.shipment.ID)
			if err != nil {
				return err
			}
			if split {
				found.Events, err = v.Timeline(p.shipment.ID)
				return err
			}
			first := slices.Clone(found.Events)
			slices.SortStableFunc(first, func(a, b cloud.TimelineEvent) int { return b.Event.OccurredAt.Compare(a.Event.OccurredAt.Time) })
			rows, ended, err := rowsBehind(v, p, page{limit: maxShown}, first, now)
			found.Events, p.longer = rows, !ended
			return err
		})
		if err != nil {
			return err
		}
	}
	p.all = found.Events
	p.timeline = parts(p, found, now)
	p.events = slices.DeleteFunc(p.timeline.Events, func(e otep.Event) bool { return !p.isShown(&e, now) })
	p.cut(page{limit: maxShown})
	if p.longer {
		p.timeline.Reports = slices.DeleteFunc(p.timeline.Reports, func(e otep.Event) bool { return otep.Compare(&e, p.oldest) < 0 })
	}
	return nil
}

// cut shows a page of the events that are known of a parcel.
func (p *parcel) cut(of page) {
	p.oldest = nil
	if p.timeline.Events, p.truncated = tail(of, p.events, itself); p.truncated {
		p.oldest = &otep.Event{}
		*p.oldest = p.timeline.Events[0]
	}
}

// turn shows another page of a parcel.
func turn(ctx context.Context, store Store, p *parcel, of page, now time.Time) error {
	if p.longer && of.before != nil { // no event is about a single package
		err := store.Look(ctx, func(v cloud.View) (err error) {
			p.all, _, err = rowsBehind(v, p, of, nil, now)
			return err
		})
		if err != nil {
			return err
		}
		p.events = otep.FoldAt(p.shipment.Profile, p.timeline.Subject, timeline.OfOrder(p.all, nil, now), now).Events
		p.events = slices.DeleteFunc(p.events, func(e otep.Event) bool { return !p.isShown(&e, now) })
	}
	p.cut(of)
	return nil
}

// A cursor is the place of an event in the order of a parcel's timeline, with a hash of the parcel. It says nothing that
// the event did not.
type cursor struct {
	Of         []byte    `json:"of"`
	OccurredAt time.Time `json:"at"`
	Code       otep.Code `json:"code"`
	Phase      string    `json:"phase,omitempty"`
	RecordedAt time.Time `json:"recorded"`
	EventID    string    `json:"id"`
}

func (p *parcel) hash() []byte {
	sum := sha256.Sum256([]byte("timeline " + strconv.FormatInt(int64(p.shipment.ID), 10) + " " + strconv.FormatInt(int64(p.part), 10)))
	return sum[:8]
}

// next is the cursor of the page before that which is shown, "" without one.
func (p *parcel) next() string {
	if p.oldest == nil {
		return ""
	}
	e := p.oldest
	raw, _ := json.Marshal(cursor{p.hash(), e.OccurredAt.UTC(), e.StatusCode, e.Phase, e.RecordedAt.UTC(), e.EventID}) // times of events always encode
	return base64.RawURLEncoding.EncodeToString(raw)
}

const wrongEventsCursor = "Use next of an answer about this tracking number, or leave it out to begin with the newest events."

// placeOf is the place of a cursor, nil for none. Error: OTEP_INVALID_REQUEST for one that is none, or of another parcel.
func (p *parcel) placeOf(text string) (*otep.Event, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var c cursor
	if err != nil || json.Unmarshal(raw, &c) != nil || string(c.Of) != string(p.hash()) {
		return nil, invalid("cursor", wrongEventsCursor)
	}
	return &otep.Event{OccurredAt: otep.Time{Time: c.OccurredAt}, StatusCode: c.Code, Phase: c.Phase, RecordedAt: otep.Time{Time: c.RecordedAt}, EventID: c.EventID}, nil
}

// nextAddress is where the page before the one that is shown is read, "" without one.
func nextAddress(base, number, next string, args url.Values) string {
	if next == "" {
		return ""
	}
	args.Set("cursor", next)
	for name := range args {
		if args.Get(name) == "" {
			args.Del(name)
		}
	}
	return base + "/api/v1/otep/trackings/" + url.PathEscape(number) + "/events?" + args.Encode()
}
