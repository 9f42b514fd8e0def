package httpdevice

import (
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

type eventInput struct {
	ID         string            `json:"event_id" required:"true" max:"64" doc:"The device's own name of it; one that was taken before for the same parcel changes nothing"`
	Number     string            `json:"tracking_number" required:"true" max:"512" doc:"Of the parcel, or the text of its label"`
	Status     string            `json:"status_code" required:"true" max:"64"`
	OccurredAt string            `json:"occurred_at" format:"moment" doc:"Now when absent; not in the future, and not more than a day before the device was made; UTC where it has no offset"`
	Location   string            `json:"location" max:"100" line:"true" doc:"Name of the place; the device's own when absent"`
	Extensions map[string]string `json:"extensions" max:"20" item_max:"200"`
}

type eventsInput struct {
	Events []eventInput `json:"events" required:"true" min:"1" max:"50" doc:"Each is taken or rejected by itself; a malformed one refuses the call"`
}

type rejectedEvent struct {
	Index int    `json:"index"`
	Code  string `json:"code"`
}

type eventsOutput struct {
	Result   bool            `json:"result"`
	Accepted int             `json:"accepted"`
	Rejected []rejectedEvent `json:"rejected"`
}

// clockSlack is how far a device's clock may be ahead.
const clockSlack = time.Minute

// readTime is a time by a device's clock, to the millisecond: now where there is none, and where
// it is a little ahead. One that is further ahead is a fault of its member.
func readTime(f check.Fields, member, text string, made, now time.Time) time.Time {
	at := check.Moment(text, time.UTC)
	switch {
	case at.After(now.Add(clockSlack)):
		f.Add(member, "The time must not be in the future.")
	case text != "" && at.Before(made.AddDate(0, 0, -1)):
		f.Add(member, "The time must not be more than a day before the device was made here: leave it out while the clock is not set.")
	}
	if at.IsZero() || at.After(now) {
		at = now
	}
	return at.Truncate(time.Millisecond)
}

// rejections are the errors of events that lead to nothing.
var rejections = map[string]string{cloud.DevForeignReference: "TRACKING_NOT_FOUND", cloud.DevBadBatch: "BAD_REQUEST", locker.ProblemFull: "OTEP_TIMELINE_FULL"}

// events takes events that the device has made of parcels, as a scanner does.
func (s *Service) events(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	var in eventsInput
	if err := read(r, &in); err != nil {
		return nil, err
	}
	now, f := time.Now().UTC(), check.Fields{}
	at := make([]time.Time, len(in.Events))
	for i, e := range in.Events {
		if _, _, ok := otep.Canonical(e.Status); !ok {
			f.Add(fmt.Sprintf("events.%d.status_code", i), "Use a status code of the Open Tracking Event Protocol, such as received.")
		}
		at[i] = readTime(f, fmt.Sprintf("events.%d.occurred_at", i), e.OccurredAt, c.device.CreatedAt, now)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	var out eventsOutput
	err := s.play(ctx, c, func(m *machine) error {
		out = eventsOutput{Result: true, Rejected: []rejectedEvent{}}
		for i, e := range in.Events {
			problem, err := m.Work.ReportEvent(e.ID, locker.Occurrence{Record: wire.Record{Kind: wire.KindTrackingEvent, At: at[i].UnixNano()}, OccurredAt: at[i]},
				wire.TrackingEvent{Subject: e.Number, StatusCode: e.Status, Location: e.Location, Extensions: e.Extensions})
			if err != nil {
				return err
			}
			if problem == "" {
				out.Accepted++
				continue
			}
			out.Rejected = append(out.Rejected, rejectedEvent{i, rejections[problem]})
		}
		return nil
	})
	return out, err
}
