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
	OccurredAt string            `json:"occurred_at" format:"moment" doc:"Now when absent, and not in the future; UTC where it has no offset"`
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
		if at[i] = check.Moment(e.OccurredAt, time.UTC); at[i].IsZero() || at[i].After(now) {
			at[i] = now
		}
		if check.Moment(e.OccurredAt, time.UTC).After(now.Add(clockSlack)) {
			f.Add(fmt.Sprintf("events.%d.occurred_at", i), "The time must not be in the future.")
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	var out eventsOutput
	err := s.play(ctx, c, func(m *machine) error {
		out = eventsOutput{Result: true, Rejected: []rejectedEvent{}}
		for i, e := range in.Events {
			problem, err := m.Work.ReportEvent(e.ID, locker.Occurrence{Record: wire.Record{Kind: wire.KindTrackingEvent, At: at[i].UnixNano()}, OccurredAt: at[i].Truncate(time.Millisecond)},
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
