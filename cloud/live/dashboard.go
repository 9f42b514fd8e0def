package live

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// dashboards are the listeners to changes of statuses, and how far these were sent.
// Service.mu guards it.
type dashboards struct {
	open  map[cloud.BusinessID]int // listeners here
	marks []mark                   // numbers of operations that had been given at a time, oldest first
	since time.Time                // what is older is not sent
	idle  time.Time                // since when there is no listener; zero: there is one
}

// statusKey is one change: the row has no number yet when it is sent at once.
type statusKey struct {
	order cloud.OrderID
	at    time.Time
	to    cloud.OrderStatus
}

type mark struct {
	at time.Time
	n  int64
}

// statusBody is what a dashboard receives.
type statusBody struct {
	OrderID  cloud.OrderID     `json:"order_id"`
	StatusID cloud.OrderStatus `json:"order_status_id"`
	Key      otep.Code         `json:"tracking_event_key"`
	At       string            `json:"at"`
}

func statusItem(op cloud.OrderOperation) item {
	body, _ := json.Marshal(statusBody{op.OrderID, op.After, op.After.State().Code, op.At.UTC().Format(time.RFC3339)}) // plain fields always encode
	return item{channel{dashboard, op.BusinessID, 0}, statusKey{op.OrderID, op.At, op.After}, op.At, body}
}

// watched reports whether this node has a listener to a business.
func (s *Service) watched(b cloud.BusinessID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dash.open[b] > 0
}

// behind is how many operations before the newest one may be under way when
// a listener comes.
const behind = 1000

// expect prepares for a dashboard that is about to listen: what is committed from
// now on will be found.
func (s *Service) expect(ctx context.Context) error {
	s.mu.Lock()
	ready := len(s.dash.marks) > 0
	if ready {
		s.dash.idle = time.Time{}
	}
	s.mu.Unlock()
	if ready {
		return nil
	}
	now := time.Now()
	n, err := s.cfg.Store.LastOperation(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dash.marks) == 0 {
		s.dash.marks, s.dash.since, s.dash.idle = []mark{{now, max(0, n-behind)}}, now.Add(-lookBack), time.Time{}
	}
	return nil
}

// pollDashboards tells what other nodes did to orders. It looks again at what may
// have been under way fifteen seconds ago.
func (s *Service) pollDashboards(ctx context.Context) error {
	now := time.Now()
	from, since, ok := s.dash.begin(&s.mu, now)
	if !ok {
		return nil
	}
	const page = 1000
	last := from
	for {
		found, err := s.cfg.Store.OperationsAfter(ctx, last, page)
		if err != nil {
			return err
		}
		for _, op := range found {
			last = op.ID
			if op.Before != op.After && !op.At.Before(since) && s.watched(op.BusinessID) {
				s.sendItem(statusItem(op))
			}
		}
		if len(found) < page {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dash.marks = append(s.dash.marks, mark{now, last})
	return nil
}

// begin gives the number after which a poll looks; not ok without a listener.
func (d *dashboards) begin(mu *sync.Mutex, now time.Time) (from int64, since time.Time, ok bool) {
	mu.Lock()
	defer mu.Unlock()
	if len(d.marks) == 0 {
		return 0, since, false
	}
	switch {
	case len(d.open) > 0:
		d.idle = time.Time{}
	case d.idle.IsZero():
		d.idle = now
	case now.Sub(d.idle) > lookBack: // no listener has come
		d.marks = nil
		return 0, since, false
	}
	for len(d.marks) > 1 && now.Sub(d.marks[1].at) > lookBack {
		d.marks = d.marks[1:]
	}
	return d.marks[0].n, d.since, true
}
