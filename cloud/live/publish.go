package live

import (
	"bytes"
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/mqttbroker"
)

// item is a message for a channel.
type item struct {
	to   channel
	id   any // of the event, a string; of a change of status, a statusKey
	at   time.Time
	body []byte
}

// Committed queues what a decision reports. It is for store.OnCommit. Where there
// is no listener nothing is queued: a listener that begins after this finds the rows.
func (s *Service) Committed(c *cloud.Changes) {
	if s.subscriptions.Load() > 0 {
		for _, e := range c.Live {
			s.enqueue(item{channelOf(e), e.ID, e.At, bytes.Clone(e.Body)})
		}
		for _, p := range c.Pushes {
			e := p.Live()
			s.enqueue(item{channelOf(e), e.ID, e.At, e.Body})
		}
	}
	for _, op := range c.OrderOperations {
		if op.Before != op.After && s.watched(op.BusinessID) {
			s.enqueue(statusItem(op))
		}
	}
}

func (s *Service) enqueue(i item) {
	select {
	case s.queue <- i:
	default:
		s.missed.Store(true)
	}
}

// publish tells what was queued.
func (s *Service) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case i := <-s.queue:
			s.sendItem(i)
		}
	}
}

// sendItem gives a message to the listeners, once.
func (s *Service) sendItem(i item) {
	s.mu.Lock()
	_, told := s.sent[i.id]
	if !told {
		s.sent[i.id] = later(i.at, time.Now())
	}
	s.mu.Unlock()
	if told {
		return
	}
	id, _ := i.id.(string)
	s.publisher.Publish(i.to.topic(s.cfg.Prefix), mqttbroker.Message{ID: id, Payload: i.body})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// poll finds what other nodes committed, and what was too much for the queue.
func (s *Service) poll(ctx context.Context) error {
	if err := s.pollDashboards(ctx); err != nil {
		return err
	}
	now := time.Now()
	missed := s.missed.Swap(false)
	needed := s.subscriptions.Load() > 0 && (missed || s.cfg.Store.Peers())
	var err error
	if needed {
		err = s.pollEvents(ctx, now)
	}
	if err != nil {
		if missed {
			s.missed.Store(true)
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = now
	return nil
}

// lookFrom is from when on a look finds what was not seen yet: rows of before the last look
// that went well may have been committed since.
func (s *Service) lookFrom(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return later(s.looked.Add(-lookBack), now.Add(-lookMost))
}

func (s *Service) pollEvents(ctx context.Context, now time.Time) error {
	found, err := s.cfg.Store.LiveSince(ctx, s.lookFrom(now), s.known)
	if err != nil {
		return err
	}
	for _, e := range found {
		if e.Passing && e.At.Before(now.Add(-passingFor)) {
			continue
		}
		s.sendItem(item{channelOf(e), e.ID, e.At, e.Body})
	}
	return nil
}

func (s *Service) known(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.sent[id]
	return ok
}

// acknowledge takes down what was acknowledged.
func (s *Service) acknowledge(ctx context.Context) {
	flush := func(ctx context.Context) {
		type ear struct {
			claim *claim
			order cloud.OrderID
		}
		var pushes []string
		chats := map[ear][]string{}
		for len(s.acks) > 0 {
			a := <-s.acks
			if a.channel.kind == cloud.LiveDriver {
				pushes = append(pushes, a.id)
				continue
			}
			e := ear{a.claim, cloud.OrderID(a.channel.subject)}
			chats[e] = append(chats[e], a.id)
		}
		if len(pushes) > 0 {
			if err := s.cfg.Store.HeardPushes(ctx, pushes, time.Now().UTC()); err != nil {
				s.cfg.Log.Error("record pushes received by drivers", "err", err)
			}
		}
		for e, ids := range chats {
			if err := s.cfg.ChatReceived(ctx, e.claim.Listener, e.order, ids); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("record chat messages received by apps", "order", e.order, "err", err)
			}
		}
	}
	t := time.NewTicker(ackEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			flush(last)
			return
		case <-t.C:
			flush(ctx)
		}
	}
}
