package truth

import (
	"slices"
	"time"
)

// flightTime is how long a delivery to the receiver is in flight at most, so how
// far before its repeat an outage may lie.
const flightTime = 2 * time.Minute

// events: each event came, with the same bytes each time, and twice only when its
// answer was lost.
func (j *judge) events() {
	if j.Received == nil {
		return
	}
	came := map[string][]Received{}
	for _, r := range j.Received {
		came[r.EventID] = append(came[r.EventID], r)
	}
	for _, e := range j.Cloud.Events {
		j.Events++
		posts := came[e.ID]
		if e.Delivered && !slices.ContainsFunc(posts, func(r Received) bool { return r.Status/100 == 2 }) {
			j.find("event", nil, 0, time.Time{}, "%s counts as delivered and never came", e.ID)
		}
		if !e.Delivered {
			j.find("event", nil, 0, time.Time{}, "%s was never delivered", e.ID)
		}
		j.repeats(e.ID, posts)
	}
	for id := range came {
		if !slices.ContainsFunc(j.Cloud.Events, func(e Event) bool { return e.ID == id }) && !isForgotten(j.Forgotten, came[id][0].At) {
			j.find("event", nil, 0, came[id][0].At, "%s came and is not in the log", id)
		}
	}
}

// isForgotten reports whether a cloud that was restored since need not know of a moment.
func isForgotten(spans []Span, at time.Time) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return within(at, s.At, s.Until) })
}

func (j *judge) repeats(id string, posts []Received) {
	for i, r := range posts {
		if r.Body != posts[0].Body {
			j.find("event", nil, 0, r.At, "%s came again with other bytes", id)
		}
		if i == 0 || posts[i-1].Status/100 != 2 {
			continue
		}
		before := posts[i-1].At
		if isForgotten(j.Forgotten, before) {
			continue
		}
		if !slices.ContainsFunc(j.Outages, func(s Span) bool { return s.touches(before.Add(-time.Second), before.Add(flightTime)) }) {
			j.find("event", nil, 0, r.At, "%s came twice, and nothing was cut off at %s", id, clockTime(before))
		}
	}
}
