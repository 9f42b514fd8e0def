package device

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// answer sends what a status asks for: refusals of its epoch, time, receipts for both lanes
// (once a session), newer configuration, missing codes, waiting commands. Time
// goes before commands, which cannot be judged without it.
func (s queue) answer(ctx context.Context, x *session, st *wire.Status, d cloud.Device, lanes [wire.Lanes]cloud.LaneState, forks []wire.Ack) {
	x.mu.Lock()
	first := !x.greeted
	x.greeted = true
	x.mu.Unlock()
	if len(st.Ends) > int(wire.Telemetry) {
		l := lanes[wire.Telemetry]
		s.backlog(x, st.Epoch, l.Next, &st.Ends[wire.Telemetry])
	}
	for _, a := range forks {
		s.sendAck(x, a)
	}
	s.sendTime(x, st, nil)
	if first && len(forks) == 0 {
		for _, l := range lanes {
			s.sendAck(x, wire.Ack{Epoch: l.Epoch, Lane: l.Lane, Next: l.Next, Head: l.Head})
		}
	}
	if d.ConfigVersion > st.ConfigVersion && x.configDue(d.ConfigVersion, time.Now()) {
		s.sendConfig(x, d)
	}
	x.hold(listOf(st))
	s.sendCodes(ctx, x, d, st.Nonce)
	s.sendCommands(ctx, x)
}

// sendTime answers the nonce of a status, if it has one, with a challenge if the
// status has yet to be proven.
func (s downlink) sendTime(x *session, st *wire.Status, challenge []byte) {
	if len(st.Nonce) > 0 {
		s.signed(x, topic.Down, wire.DownTime, signed.ForTime, wire.Time{DeviceCode: x.code, Nonce: st.Nonce, ServerTime: time.Now().UnixNano(), Challenge: challenge})
	}
}

// signed sends one signed down message.
func (s downlink) signed(x *session, leaf topic.Leaf, t wire.DownType, p signed.Purpose, payload any) {
	env, err := s.cfg.Signer.Sign(p, payload)
	if err != nil {
		s.log.Error("sign down message", "device", x.code, "purpose", p, "err", err)
		return
	}
	s.send(x, leaf, wire.EncodeDown(t, env), false)
}

func (s downlink) send(x *session, leaf topic.Leaf, payload []byte, retain bool) {
	if !s.sessions.isPresent(x) {
		return
	}
	if err := s.sender.Send(x.code, leaf, payload, retain); err != nil {
		s.log.Debug("send to device", "device", x.code, "topic", leaf, "err", err)
	}
}

// sendConfig sends the current configuration, signed. The retained copy is a
// convenience.
func (s downlink) sendConfig(x *session, d cloud.Device) {
	if len(d.Config) == 0 {
		return
	}
	x.mu.Lock()
	x.config, x.configAt = d.ConfigVersion, time.Now()
	x.mu.Unlock()
	var c wire.Config
	if err := wire.Decode(d.Config, &c); err != nil {
		s.log.Error("read configuration", "device", d.Code, "err", err)
		return
	}
	env, err := s.cfg.Signer.Sign(signed.ForConfig, c)
	if err != nil {
		s.log.Error("sign configuration", "device", d.Code, "err", err)
		return
	}
	s.send(x, topic.Config, env, true)
}

// configDue reports whether a version was not sent in this session, or a while
// ago: a device that will not have it says so with every status.
func (x *session) configDue(version uint64, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.config != version || now.Sub(x.configAt) >= resendEvery
}

// notAgain keeps a command that was accepted or has expired from being looked
// at again in this session.
const notAgain = 100 * 24 * time.Hour

// sendCommands sends what waits for a device: what was never sent in this
// session at once, the rest again every five seconds until it is accepted.
func (s downlink) sendCommands(ctx context.Context, x *session) {
	if sent := s.sendDue(ctx, x); len(sent) > 0 {
		s.markSent(ctx, x, sent, time.Now().UTC())
	}
}

// sendDue sends what is due by now. It returns the commands that were sent for the first time.
func (s downlink) sendDue(ctx context.Context, x *session) (sent []cloud.Command) {
	x.sending.Lock()
	defer x.sending.Unlock()
	var open []cloud.Command
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		open, err = v.OpenCommands(x.id)
		return err
	})
	if err != nil {
		s.log.Error("read commands", "device", x.code, "err", err)
		return nil
	}
	now := time.Now()
	x.mu.Lock()
	live := make(map[string]time.Time, len(open))
	var due []cloud.Command
	for _, c := range open {
		last, was := x.commands[c.ID]
		live[c.ID] = last
		if c.State == cloud.CommandAccepted && was || !now.Before(c.ExpiresAt) {
			live[c.ID] = now.Add(notAgain)
			continue
		}
		if !was || now.Sub(last) >= resendEvery {
			live[c.ID] = now
			due = append(due, c)
		}
	}
	x.commands = live
	x.mu.Unlock()
	for _, c := range due {
		s.signed(x, topic.Down, wire.DownCommand, signed.ForCommand, wire.Command{CommandID: c.ID, DeviceCode: x.code,
			IssuedAt: c.IssuedAt.UnixNano(), ExpiresAt: c.ExpiresAt.UnixNano(), Versions: c.Versions, Kind: c.Kind, Body: c.Body, Trace: c.Trace})
		if c.State == cloud.CommandQueued {
			sent = append(sent, c)
		}
	}
	return sent
}

// markSent moves queued commands to sent. Where that fails nothing is lost:
// they are sent again.
func (s downlink) markSent(ctx context.Context, x *session, sent []cloud.Command, at time.Time) {
	err := s.cfg.Store.Decide(ctx, x.id, func(v cloud.View) (*cloud.Changes, error) {
		ch := &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: x.generation}}
		for _, c := range sent {
			row, err := v.Command(c.ID)
			if err != nil {
				return nil, err
			}
			if row.State == cloud.CommandQueued {
				row.State, row.SentAt = cloud.CommandSent, at
				ch.Commands = append(ch.Commands, row)
			}
		}
		return ch, nil
	})
	if err != nil && !errors.Is(err, cloud.ErrStale) && ctx.Err() == nil {
		s.log.Error("mark commands sent", "device", x.code, "err", err)
	}
}

// Committed receives every commit, so that commands, codes and configuration
// leave at once. It does not block.
func (s downlink) Committed(ctx context.Context, ch *cloud.Changes) {
	wake, listed := map[cloud.DeviceID]bool{}, map[cloud.DeviceID]bool{}
	for _, c := range ch.Commands {
		if c.State == cloud.CommandQueued {
			wake[c.DeviceID] = true
		}
	}
	for _, c := range ch.Codes {
		wake[c.DeviceID], listed[c.DeviceID] = true, true
	}
	for _, d := range ch.Devices {
		if s.sessions.hasFormer(d) {
			go s.sender.Kick(d.Code)
		}
		wake[d.ID] = wake[d.ID] || d.ConfigVersion > 0
	}
	if len(wake) == 0 {
		return
	}
	for _, x := range s.sessions.list() {
		if wake[x.id] {
			go s.push(ctx, x, listed[x.id])
		}
	}
}

// push sends what a connected device lacks by now. codes says that it is to ask
// for the whole list, if it needs that.
func (s downlink) push(ctx context.Context, x *session, codes bool) {
	x.mu.Lock()
	ready := x.greeted && !x.closed
	x.mu.Unlock()
	if !ready {
		return // the status on connect brings it
	}
	var d cloud.Device
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err = v.Device(x.id)
		return err
	})
	if err != nil {
		return
	}
	s.sendLacking(ctx, x, d, true, codes)
}

// sendLacking sends configuration and commands that a device lacks, and of the code list
// if codes is set. ask says that it is to ask for the whole list, if it needs that.
func (s downlink) sendLacking(ctx context.Context, x *session, d cloud.Device, codes, ask bool) {
	if d.ConfigVersion > d.Applied && x.configDue(d.ConfigVersion, time.Time{}) {
		s.sendConfig(x, d)
	}
	s.sendCommands(ctx, x)
	if codes && (!ask || !s.announceCodes(x, d)) {
		s.sendCodes(ctx, x, d, nil)
	}
}

// tend repeats what was not confirmed.
func (s downlink) tend(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			for _, x := range s.sessions.list() {
				if x.due(now) {
					s.push(ctx, x, true)
				}
			}
		}
	}
}

// due reports whether anything sent to the device waits for confirmation.
func (x *session) due(now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.codesTo != 0 && now.Sub(x.codesAt) >= resendEvery {
		return true
	}
	for _, at := range x.commands {
		if now.Sub(at) >= resendEvery {
			return true
		}
	}
	return false
}

// behaved notes whether batches were refused: credit falls to one record a
// second, until one is stored again.
func (x *session) behaved(refused, stored bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bad = refused || x.bad && !stored
}

// backlog notes how many records of lane 1 a session has that the cloud lacks,
// which holds next-1 of them. end is where the lane ends, as a status said; nil
// leaves what the last one said.
func (s receipts) backlog(x *session, epoch wire.Epoch, next uint64, end *wire.LaneEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if end != nil {
		x.end, x.endEpoch = *end, epoch
	}
	if x.closed || x.endEpoch != epoch {
		return
	}
	records := uint64(0)
	if x.end.Last >= next {
		records = x.end.Last - next + 1
	}
	s.flow.owes(x, records)
}

// credit is how many records of lane 1 a session may send a second until its
// next receipt, of whichever lane; nil is no limit. held says that the flow
// limits it, which pace will lift.
func (s receipts) credit(x *session) (c *uint64, held bool) {
	c = s.flow.credit(x, time.Now())
	held = c != nil
	x.mu.Lock()
	defer x.mu.Unlock()
	if one := uint64(1); x.bad && (c == nil || *c > one) {
		c = &one
	}
	return c, held
}

// pace tells sessions that are held back when that changes: a turn begins, or
// there is no limit any more. Their last receipt goes again with the new credit.
func (s receipts) pace(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.held:
		}
		t := time.NewTicker(turnEvery)
		for left := 1; left > 0 && ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case now := <-t.C:
				left = s.turn(now)
			}
		}
		t.Stop()
	}
}

// turn gives out turns and lifts limits; it returns how many sessions are still
// held back.
func (s receipts) turn(now time.Time) (left int) {
	for _, x := range s.flow.next(now) {
		s.remind(x)
	}
	for _, x := range s.sessions.list() {
		if !x.isHeld() {
			continue
		}
		if s.flow.credit(x, now) == nil {
			s.remind(x)
		} else {
			left++
		}
	}
	return left
}

func (x *session) isHeld() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held
}

// remind sends the newest receipt of lane 1 again.
func (s receipts) remind(x *session) {
	x.mu.Lock()
	last := x.last
	x.mu.Unlock()
	if last.Next > 0 {
		s.sendAck(x, last)
	}
}

// acknowledge sends a receipt, at once or together with those of the next
// moments.
func (s receipts) acknowledge(x *session, a wire.Ack, records int, now bool) {
	if now {
		s.sendAck(x, a)
		return
	}
	x.mu.Lock()
	x.acks[a.Lane] = &a
	x.pending += records
	if x.pending < ackRecords && !x.closed {
		if x.timer == nil {
			x.timer = time.AfterFunc(ackDelay, func() { s.flush(x) })
		} else if x.pending == records {
			x.timer.Reset(ackDelay)
		}
		x.mu.Unlock()
		return
	}
	x.mu.Unlock()
	s.flush(x)
}

func (s receipts) flush(x *session) {
	x.mu.Lock()
	acks := x.acks
	x.acks, x.pending = [wire.Lanes]*wire.Ack{}, 0
	x.mu.Unlock()
	for _, a := range acks {
		if a != nil {
			s.sendAck(x, *a)
		}
	}
}

func (s receipts) sendAck(x *session, a wire.Ack) {
	if a.Lane == wire.Telemetry && a.Refused == "" {
		s.backlog(x, a.Epoch, a.Next, nil)
	}
	credit, held := s.credit(x)
	a.Credit = credit
	if held {
		select {
		case s.held <- struct{}{}:
		default: // pace is at it
		}
	}
	x.mu.Lock()
	x.held = held
	if a.Lane == wire.Telemetry && a.Refused == "" && (a.Epoch != x.last.Epoch || a.Next >= x.last.Next) {
		x.last = a
		x.last.ResendFrom = 0
	}
	x.mu.Unlock()
	if x.upKey != nil {
		s.signed(x, topic.Down, wire.DownReceipt, signed.ForReceipt, a)
		return
	}
	s.send(x, topic.Down, wire.EncodeDown(wire.DownAck, wire.MustEncode(a)), false)
}
