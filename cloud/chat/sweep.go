package chat

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sweepEvery = time.Minute
	sweepStep  = 100 // rows of one query
)

// Run closes what has ended and removes what is old or unused, every minute
// until ctx ends. Several nodes may do the same.
func (s sweeper) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Error("old conversations cannot be removed now", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep closes and removes once.
func (s sweeper) Sweep(ctx context.Context) error {
	if err := s.dropFiles(ctx); err != nil {
		return err
	}
	for b := cloud.BusinessID(0); ; {
		next, err := s.store.NextChatBusiness(ctx, b)
		if errors.Is(err, cloud.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = s.sweep(ctx, next)
		}
		if err != nil {
			return err
		}
		b = next
	}
}

func (s sweeper) sweep(ctx context.Context, id cloud.BusinessID) error {
	var b cloud.Business
	if err := s.store.Look(ctx, func(v cloud.View) (err error) { b, err = v.Business(id); return err }); err != nil {
		return err
	}
	now, chat := s.time(), b.Settings.Chat
	for after := cloud.OrderID(0); ; {
		list, err := s.store.EndedChats(ctx, id, after, now.Add(-chat.CloseAfter()), sweepStep)
		if err != nil {
			return err
		}
		for _, o := range list {
			if err := s.closeEnded(ctx, id, o); err != nil {
				return err
			}
			after = o
		}
		if len(list) < sweepStep {
			break
		}
	}
	old, err := s.store.OldChats(ctx, id, now.Add(-chat.Retention()), sweepStep)
	for _, o := range old {
		if err == nil {
			err = s.drop(ctx, id, o, now.Add(-chat.Retention()))
		}
	}
	return err
}

// joinAsSystem is at an order's chat for what the system does by itself. x is nil when
// the order is gone.
func (s *core) joinAsSystem(v cloud.View, b cloud.BusinessID, id cloud.OrderID) (x *participant, err error) {
	c := cloud.Caller{Account: cloud.Account{BusinessID: b}, Recipient: id}
	if x, err = s.join(v, c, id); refused(err) {
		err = nil
	}
	if x != nil {
		x.me = cloud.ChatParty{}
	}
	return x, err
}

// closeEnded writes that a conversation has closed by itself.
func (s *core) closeEnded(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) error {
	return s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.joinAsSystem(v, b, id)
		if err != nil || x == nil || !x.isClosureUnsent() {
			return nil, err
		}
		if err := x.close(x.closesAt()); err != nil {
			return nil, err
		}
		x.ch.Unaudited = true
		return x.changes(), nil
	})
}

// drop removes a conversation that was closed before a time.
func (s sweeper) drop(ctx context.Context, b cloud.BusinessID, id cloud.OrderID, before time.Time) error {
	return s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.joinAsSystem(v, b, id)
		if err != nil || x == nil || !x.known || x.talk.ClosedAt.IsZero() || !x.talk.ClosedAt.Before(before) {
			return nil, err
		}
		return &cloud.Changes{ChatChanges: cloud.ChatChanges{DroppedConversations: []cloud.OrderKey{{BusinessID: b, ID: id}}}, Unaudited: true}, nil
	})
}

// dropFiles removes files that no message has had for a day.
func (s sweeper) dropFiles(ctx context.Context) error {
	for {
		list, err := s.store.IdleAttachments(ctx, s.time().Add(-idleFile), sweepStep)
		if err != nil || len(list) == 0 {
			return err
		}
		err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			ch := &cloud.Changes{Unaudited: true}
			for _, a := range list {
				_, ok, err := found(v.ChatAttachment(a.BusinessID, a.ID))
				if err != nil {
					return nil, err
				}
				if ok { // no message took it meanwhile
					ch.DroppedChatAttachments, ch.DroppedFiles = append(ch.DroppedChatAttachments, a), append(ch.DroppedFiles, kept(a)...)
				}
			}
			return ch, nil
		})
		if err != nil {
			return err
		}
	}
}
