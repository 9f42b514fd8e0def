package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Lease is how long a claimed delivery stays with its node unless renewed, on
// PostgreSQL. On SQLite it stays until it is given back or the node starts.
const Lease = 30 * time.Second

const (
	sqlNextHotEndpoint = `SELECT MIN(endpoint_id) FROM outbox
WHERE state IN ('pending', 'delivering', 'retrying') AND endpoint_id > $1`
	sqlEndpointDue = `SELECT 1 FROM outbox
WHERE endpoint_id = $1 AND state IN ('pending', 'delivering', 'retrying') AND next_at <= $2
  AND (lease_owner = '' OR lease_until < @now) LIMIT 1`
	sqlClaim = `UPDATE outbox SET lease_owner = $1, lease_until = @lease, generation = generation + 1
WHERE id IN (SELECT id FROM outbox
  WHERE endpoint_id = $2 AND state IN ('pending', 'delivering', 'retrying') AND next_at <= $3
    AND (lease_owner = '' OR lease_until < @now)
  ORDER BY next_at, id LIMIT $4 @skip)
RETURNING ` + outboxColumns
	pgRenew    = `UPDATE outbox SET lease_until = @lease WHERE id = ANY($2::BIGINT[]) AND lease_owner = $1 RETURNING id`
	sqlRelease = `UPDATE outbox SET lease_owner = '', lease_until = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3`
	sqlReleaseAll = `UPDATE outbox SET lease_owner = '', lease_until = NULL WHERE lease_owner = $1 AND lease_owner <> ''`
	sqlReleaseHot = `UPDATE outbox SET lease_owner = '', lease_until = NULL
WHERE state IN ('pending', 'delivering', 'retrying') AND lease_owner <> ''`
	sqlReleaseForgotten = `UPDATE outbox SET lease_owner = '', lease_until = NULL
WHERE reason = 'interrupted' AND lease_owner <> '' AND lease_until < @now`
	sqlReleaseInterrupted = `UPDATE outbox SET lease_owner = '', lease_until = NULL WHERE reason = 'interrupted' AND lease_owner <> ''`
	sqlFinish             = `UPDATE outbox SET state = $4, attempts = $5, next_at = $6, reason = $7, delivered_at = $8,
  lease_owner = '', lease_until = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3`
	sqlResume = `UPDATE outbox SET state = $2, next_at = $3, reason = $4
WHERE id IN (SELECT id FROM outbox WHERE endpoint_id = $1 AND state = 'paused' ORDER BY id LIMIT $5)`
	sqlNextKept       = `SELECT MIN(endpoint_id) FROM outbox WHERE state = 'paused' AND endpoint_id > $1`
	sqlIsPaused       = `SELECT 1 FROM endpoint WHERE id = $1 AND (enabled AND status = 'paused' OR status_since > $2)`
	sqlOutboxEvent    = `SELECT ` + outboxEventColumns + ` FROM outbox_event WHERE event_id = $1`
	sqlDeliveryEvents = `SELECT ` + outboxEventColumns + ` FROM outbox_event
WHERE reference_type = 'locker_delivery' AND reference_id = $1 AND business_id = $2 AND provider_id = $3 ORDER BY sequence DESC LIMIT $4`
	sqlOutboxDelivery = `SELECT ` + outboxColumns + ` FROM outbox WHERE id = $1`
	sqlLastAttempt    = `SELECT ` + attemptColumns + ` FROM outbox_attempt WHERE delivery_id = $1 ORDER BY attempt DESC LIMIT 1`
	sqlAttempts       = `SELECT ` + attemptColumns + ` FROM outbox_attempt WHERE delivery_id = $1 ORDER BY attempt`
	sqlWaiting        = `SELECT CASE e.kind WHEN 'locker_provider' THEN 'locker_provider' WHEN 'third_party_delivery' THEN 'third_party' ELSE 'account' END AS channel,
  w.state, CAST(SUM(w.n) AS @int), MIN(w.oldest) FROM (
  SELECT endpoint_id, state, COUNT(*) AS n, MIN(next_at) AS oldest FROM outbox WHERE state IN ('pending', 'delivering', 'retrying') GROUP BY endpoint_id, state) AS w
LEFT JOIN endpoint AS e ON e.id = w.endpoint_id GROUP BY channel, w.state ORDER BY channel, w.state`

	outboxEventColumns = `event_id, event, business_id, provider_id, channel, reference_type, reference_id, occurred_at,
  created_at, test, body, sequence, trace`
	outboxColumns = `id, event_id, endpoint_id, business_id, webhook_id, state, attempts, max_attempts, next_at, reason,
  lease_owner, lease_until, generation, created_at, delivered_at, replay_of, setting, customer_id, url, sequence`
	outboxRowColumns = `o.id, o.event_id, o.endpoint_id, o.business_id, o.webhook_id, o.state, o.attempts, o.max_attempts,
  o.next_at, o.reason, o.lease_owner, o.lease_until, o.generation, o.created_at, o.delivered_at, o.replay_of,
  o.setting, o.customer_id, o.url, o.sequence, e.event, e.provider_id, e.channel, e.reference_type, e.reference_id, e.occurred_at, e.created_at, e.test`
	attemptColumns = `delivery_id, attempt, at, url, delivery_uid, http_status, duration_us, error_code, error, request_head,
  answer_head, answer_body, reused, repeated, retry_after, dns_us, connect_us, tls_us, first_byte_us, remote_ip,
  planned_at, wait_reason`
)

// Of events that supersede others: what waits and no node has taken up ends when
// a newer one is written, and what was taken up is looked at before it is sent.
const (
	sqlSupersede = `UPDATE outbox SET state = 'failed', reason = 'superseded', next_at = NULL
WHERE endpoint_id = $1 AND reference_id = $2 AND event = 'driver.location_update' AND state IN ('pending', 'retrying', 'paused') AND lease_owner = '' AND replay_of = 0`
	sqlSuperseded = `SELECT 1 FROM outbox
WHERE endpoint_id = $1 AND reference_id = $2 AND event = 'driver.location_update' AND id > $3 AND replay_of = 0 LIMIT 1`
)

const sqlAddOutboxEvent = `INSERT INTO outbox_event (
  event_id, event, business_id, provider_id, channel, reference_type, reference_id, occurred_at, created_at,
  test, body, sequence, trace)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

const sqlAddOutbox = `INSERT INTO outbox (
  id, event_id, endpoint_id, business_id, provider_id, event, reference_id, webhook_id, state, attempts,
  max_attempts, next_at, reason, lease_owner, generation, created_at, delivered_at, replay_of, setting,
  customer_id, url, sequence, slot, reference_sequence)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`

// sqlAddOutboxLeased is sqlAddOutbox by a node that sends it itself.
const sqlAddOutboxLeased = `INSERT INTO outbox (
  id, event_id, endpoint_id, business_id, provider_id, event, reference_id, webhook_id, state, attempts,
  max_attempts, next_at, reason, lease_owner, generation, created_at, delivered_at, replay_of, setting,
  customer_id, url, sequence, slot, reference_sequence, lease_until)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, @lease)`

const sqlAddAttempt = `INSERT INTO outbox_attempt (
  delivery_id, attempt, at, url, delivery_uid, http_status, duration_us, error_code, error, request_head,
  answer_head, answer_body, reused, repeated, retry_after, dns_us, connect_us, tls_us, first_byte_us, remote_ip,
  planned_at, wait_reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`

func scanOutbox(r rows, d *cloud.OutboxDelivery) error { return r.Scan(outboxFields(d)...) }

func outboxFields(d *cloud.OutboxDelivery) []any {
	return []any{&d.ID, &d.EventID, &d.EndpointID, &d.BusinessID, &d.WebhookID, &d.State, &d.Attempts, &d.MaxAttempts,
		when(&d.NextAt), &d.Reason, &d.LeaseOwner, when(&d.LeaseUntil), &d.Generation, when(&d.CreatedAt),
		when(&d.DeliveredAt), &d.ReplayOf, &d.Setting, &d.CustomerID, &d.URL, &d.Sequence}
}

// scanOutboxEvent leaves the body sealed.
func scanOutboxEvent(r rows, e *cloud.OutboxEvent) error {
	return r.Scan(&e.EventID, &e.Event, &e.BusinessID, &e.ProviderID, &e.Channel, &e.ReferenceType, &e.ReferenceID,
		when(&e.OccurredAt), when(&e.CreatedAt), &e.Test, &e.Body, &e.Sequence, &e.Trace)
}

func scanOutboxRow(r rows, o *cloud.OutboxRow) error {
	e := &o.Event
	err := r.Scan(append(outboxFields(&o.Delivery), &e.Event, &e.ProviderID, &e.Channel, &e.ReferenceType, &e.ReferenceID,
		when(&e.OccurredAt), when(&e.CreatedAt), &e.Test)...)
	e.EventID, e.BusinessID = o.Delivery.EventID, o.Delivery.BusinessID
	return err
}

func scanAttempt(r rows, a *cloud.OutboxAttempt) error {
	var us, dns, connect, tls, first int64
	err := r.Scan(&a.DeliveryID, &a.Attempt, when(&a.At), &a.URL, &a.DeliveryUID, &a.HTTPStatus, &us, &a.ErrorCode, &a.Error,
		&a.RequestHead, &a.AnswerHead, &a.AnswerBody, &a.Reused, &a.Repeated, &a.RetryAfter, &dns, &connect, &tls, &first, &a.RemoteIP, when(&a.PlannedAt), &a.WaitReason)
	for to, us := range map[*time.Duration]int64{&a.Duration: us, &a.DNS: dns, &a.Connect: connect, &a.TLS: tls, &a.FirstByte: first} {
		*to = time.Duration(us) * time.Microsecond
	}
	return err
}

func scanOutboxID(r rows, id *cloud.OutboxID) error { return r.Scan(id) }

// outboxIDs are ids as an argument of a statement.
func outboxIDs(ids []cloud.OutboxID) []int64 {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

func bodyPurpose(eventID string) string { return "outbox/" + eventID }

// Fresh reports whether a new delivery is due at once, so that the node that
// writes it leases it to itself, with generation 1, and sends it from memory. One
// that is to get a number is taken up from the table.
func Fresh(d *cloud.OutboxDelivery) bool {
	return d.State == cloud.OutboxPending && !d.NextAt.After(d.CreatedAt) && d.Sequence != cloud.Unnumbered
}

func (w *writer) outbox(c *cloud.Changes) {
	for i := range c.Outbox {
		o := &c.Outbox[i]
		if len(o.Deliveries) == 0 && !o.Kept || o.Stored {
			continue
		}
		e := &o.Event
		w.add(anything, sqlAddOutboxEvent, e.EventID, e.Event, int64(e.BusinessID), int64(e.ProviderID), e.Channel,
			e.ReferenceType, e.ReferenceID, ms(e.OccurredAt), ms(e.CreatedAt), e.Test,
			w.box.Seal(bodyPurpose(e.EventID), e.Body), e.Sequence, e.Trace)
	}
	for i := range c.Outbox { // after all events, so that rows of a kind stand together
		e := &c.Outbox[i].Event
		for j := range c.Outbox[i].Deliveries {
			d := &c.Outbox[i].Deliveries[j]
			if e.Supersedes() && d.ReplayOf == 0 {
				w.add(anything, sqlSupersede, int64(d.EndpointID), e.ReferenceID)
			}
			w.outboxDelivery(e, d)
		}
	}
}

// ReasonInterrupted is the reason of a delivery whose sender ended before it
// could tell what had come of it.
const ReasonInterrupted = "interrupted"

// outboxDelivery writes a delivery and notes in d whether it was leased to this
// node, so that the sender, notified of the commit, knows whether it is its own.
func (w *writer) outboxDelivery(e *cloud.OutboxEvent, d *cloud.OutboxDelivery) {
	next, sql, slot := d.NextAt, sqlAddOutbox, cloud.OutboxSlot(d.EndpointID, e.Reference())
	d.LeaseOwner, d.Generation = "", 0
	if next.IsZero() && d.State == cloud.OutboxPending {
		next = d.CreatedAt
	}
	state := d.State
	switch {
	case state == cloud.OutboxDelivering:
		state, d.Reason = cloud.OutboxFailed, ReasonInterrupted
		sql, d.LeaseOwner, d.Generation = sqlAddOutboxLeased, w.node, 1
	case w.owner != "" && w.slots>>slot&1 == 1 && Fresh(d):
		sql, d.LeaseOwner, d.Generation = sqlAddOutboxLeased, w.owner, 1
	}
	w.add(anything, sql, int64(d.ID), e.EventID, int64(d.EndpointID), int64(d.BusinessID), int64(e.ProviderID), e.Event,
		e.ReferenceID, d.WebhookID, string(state), int64(d.Attempts), int64(d.MaxAttempts), ms(next), d.Reason, d.LeaseOwner,
		d.Generation, ms(d.CreatedAt), ms(d.DeliveredAt), int64(d.ReplayOf), d.Setting, int64(d.CustomerID), d.URL, d.Sequence, int64(slot), e.Sequence)
}

// OwnFresh says whether new deliveries are written leased to this node: from
// when its sender listens until it stops.
func (db webhooks) OwnFresh(on bool) { db.own.Store(on) }

// DueEndpoints lists receivers that have a delivery of this node's slots due at now which
// no node has taken up.
func (db webhooks) DueEndpoints(ctx context.Context, now time.Time) ([]cloud.EndpointID, error) {
	var due []cloud.EndpointID
	if db.Peers() {
		return shares(db).dueEndpoints(ctx, now)
	}
	err := db.engine.read(ctx, func(ctx context.Context, q querier) error {
		for at := int64(-1); ; {
			next, err := one(ctx, q, sqlNextHotEndpoint, func(r rows, n **int64) error { return r.Scan(n) }, at)
			if err != nil || next == nil {
				return err
			}
			at = *next
			found, err := list(ctx, q, sqlEndpointDue, scanInt, at, now.UnixMilli())
			if err != nil {
				return err
			}
			if len(found) > 0 {
				due = append(due, cloud.EndpointID(at))
			}
		}
	})
	return due, err
}

// ClaimOutbox takes up at most limit deliveries to one receiver that are due at
// now, oldest first, and leases them to this node. That none come proves
// nothing: another node may be looking at them.
func (db webhooks) ClaimOutbox(ctx context.Context, id cloud.EndpointID, now time.Time, limit int) ([]cloud.OutboxWork, error) {
	var work []cloud.OutboxWork
	err := db.write(ctx, 0, func(ctx context.Context, s session) (_ *cloud.Changes, err error) {
		work, err = shares(db).claim(ctx, s, id, now, limit)
		return nil, err
	})
	return work, err
}

const (
	sqlTakeNumbers = `INSERT INTO endpoint_sequence (endpoint_id, last) VALUES ($1, $2)
ON CONFLICT (endpoint_id) DO UPDATE SET last = endpoint_sequence.last + $2 RETURNING last`
	sqlNumber = `UPDATE outbox SET sequence = $2 WHERE id = $1`
)

// number gives running numbers to deliveries that are to have one and were taken
// up for the first time. That is no part of the transactions that emit them,
// which would wait for each other.
func number(ctx context.Context, s session, id cloud.EndpointID, work []cloud.OutboxWork) error {
	n := int64(0)
	for i := range work {
		if work[i].Delivery.Sequence == cloud.Unnumbered {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	last, err := changedInt(ctx, s, sqlTakeNumbers, int64(id), n)
	if err != nil {
		return err
	}
	next := last - n + 1
	var ops []op
	for i := range work {
		if d := &work[i].Delivery; d.Sequence == cloud.Unnumbered {
			d.Sequence = next
			ops = append(ops, op{sql: sqlNumber, args: []any{int64(d.ID), next}})
			next++
		}
	}
	return s.apply(ctx, ops)
}

// eventsAtOnce are read in one statement.
const eventsAtOnce = 64

var outboxEvents = func() string {
	list := make([]string, eventsAtOnce)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Replace(sqlOutboxEvent, "= $1", "IN ("+strings.Join(list, ", ")+")", 1)
}()

// withEvents gives claimed deliveries their events.
func (db webhooks) withEvents(ctx context.Context, q querier, work []cloud.OutboxWork) error {
	for part := range slices.Chunk(work, eventsAtOnce) {
		args := make([]any, eventsAtOnce)
		for i := range args { // what is left over asks for the last once more
			args[i] = part[min(i, len(part)-1)].Delivery.EventID
		}
		found, err := list(ctx, q, outboxEvents, sealer{db.box}.scanOpenEvent, args...)
		if err != nil {
			return err
		}
		events := make(map[string]cloud.OutboxEvent, len(found))
		for _, e := range found {
			events[e.EventID] = e
		}
		for i := range part {
			e, ok := events[part[i].Delivery.EventID]
			if !ok {
				return fmt.Errorf("event %s: %w", part[i].Delivery.EventID, cloud.ErrNotFound)
			}
			part[i].Event = e
		}
	}
	return nil
}

func (v accountView) OutboxWork(id cloud.OutboxID) (o cloud.OutboxWork, err error) {
	if o.Delivery, err = one(v.ctx, v.q, sqlOutboxDelivery, scanOutbox, int64(id)); err == nil {
		o.Event, err = v.sealer().outboxEvent(v.ctx, v.q, o.Delivery.EventID)
	}
	return o, err
}

// DeliveryEvents are the newest events of a locker delivery, by its number, with their
// bodies, oldest first.
func (v accountView) DeliveryEvents(b cloud.BusinessID, p cloud.ProviderID, number string, limit int) ([]cloud.OutboxEvent, error) {
	out, err := list(v.ctx, v.q, sqlDeliveryEvents, v.sealer().scanOpenEvent, number, int64(b), int64(p), limit)
	slices.Reverse(out)
	return out, err
}

// scanOpenEvent is scanOutboxEvent with the body opened.
func (b sealer) scanOpenEvent(r rows, e *cloud.OutboxEvent) (err error) {
	if err := scanOutboxEvent(r, e); err != nil {
		return err
	}
	if e.Body, err = b.box.Open(bodyPurpose(e.EventID), e.Body); err != nil {
		return fmt.Errorf("body of event %s: %w", e.EventID, err)
	}
	return nil
}

func (db webhooks) outboxEvent(ctx context.Context, q querier, id string) (cloud.OutboxEvent, error) {
	return sealer{db.box}.outboxEvent(ctx, q, id)
}

func (b sealer) outboxEvent(ctx context.Context, q querier, id string) (cloud.OutboxEvent, error) {
	e, err := one(ctx, q, sqlOutboxEvent, b.scanOpenEvent, id)
	if err != nil {
		return e, fmt.Errorf("event %s: %w", id, err)
	}
	return e, nil
}

// Superseded reports whether something newer is sent in place of a delivery.
func (db webhooks) Superseded(ctx context.Context, w cloud.OutboxWork) (bool, error) {
	if !w.Event.Supersedes() || w.Delivery.ReplayOf != 0 {
		return false, nil
	}
	found, err := readList(ctx, db.database, sqlSuperseded, scanInt, int64(w.Delivery.EndpointID), w.Event.ReferenceID, int64(w.Delivery.ID))
	return len(found) > 0, err
}

// FinishOutbox stores what became of deliveries, each with its attempt, in one
// transaction, and gives their leases back. Deliveries whose lease was lost are
// left as they are and returned.
func (db webhooks) FinishOutbox(ctx context.Context, results []cloud.OutboxResult) (lost []cloud.OutboxID, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		lost, err = db.finish(ctx, s, results)
		return nil, err
	})
	return lost, err
}

// finish gives each lease back if it still holds, which the number of rows says,
// and adds the attempts of those that held.
func (db webhooks) finish(ctx context.Context, s session, results []cloud.OutboxResult) (lost []cloud.OutboxID, err error) {
	ends, held := make([]op, len(results)), make([]int64, len(results))
	for i := range results {
		r := &results[i]
		ends[i] = op{sql: sqlFinish, args: []any{int64(r.ID), db.node, r.Generation, string(r.State), int64(r.Attempts),
			ms(r.NextAt), r.Reason, ms(r.DeliveredAt)}, count: &held[i]}
	}
	if err := s.apply(ctx, ends); err != nil {
		return nil, err
	}
	attempts := make([]op, 0, len(results))
	for i := range results {
		switch r := &results[i]; {
		case held[i] == 0:
			lost = append(lost, r.ID)
		case r.Attempt != nil:
			attempts = append(attempts, addAttempt(r.ID, r.Attempt))
		}
	}
	return lost, s.last(ctx, attempts)
}

func addAttempt(id cloud.OutboxID, a *cloud.OutboxAttempt) op {
	return op{sql: sqlAddAttempt, args: []any{int64(id), int64(a.Attempt), ms(a.At), a.URL, a.DeliveryUID,
		int64(a.HTTPStatus), a.Duration.Microseconds(), a.ErrorCode, a.Error, a.RequestHead, a.AnswerHead,
		a.AnswerBody, a.Reused, a.Repeated, a.RetryAfter, a.DNS.Microseconds(), a.Connect.Microseconds(), a.TLS.Microseconds(),
		a.FirstByte.Microseconds(), a.RemoteIP, ms(a.PlannedAt), a.WaitReason}}
}

// RenewOutbox keeps leases of this node alive, and gives those that it still has. On
// SQLite, which needs no renewing, these are all. A lease that its node does not renew runs
// out: so does one that was written in a commit whose answer was lost, of which the node
// knows nothing.
func (db webhooks) RenewOutbox(ctx context.Context, ids []cloud.OutboxID) (held []cloud.OutboxID, err error) {
	if !db.Peers() {
		return ids, nil
	}
	sorted := slices.Sorted(slices.Values(ids))          // neighbours lie on the same pages
	for part := range slices.Chunk(sorted, rowsAtOnce) { // outcomes are stored meanwhile, and overtake what takes long
		var found []cloud.OutboxID
		err = db.write(ctx, 0, func(ctx context.Context, s session) (_ *cloud.Changes, err error) {
			found, err = list(ctx, changing{s}, pgRenew, scanOutboxID, db.node, outboxIDs(part))
			return nil, err
		})
		if err != nil {
			return nil, err
		}
		held = append(held, found...)
	}
	return held, nil
}

// ReleaseOutbox gives back deliveries that were taken up and not tried. Only ID
// and Generation of each are used.
func (db webhooks) ReleaseOutbox(ctx context.Context, ds []cloud.OutboxResult) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		ops := make([]op, len(ds))
		for i, d := range ds {
			ops[i] = op{sql: sqlRelease, args: []any{int64(d.ID), db.node, d.Generation}, need: anything}
		}
		return nil, s.last(ctx, ops)
	})
}

// RecoverOutbox gives back everything that an earlier run of this node had
// taken up; on SQLite, where there is one node, whatever its name was.
func (db webhooks) RecoverOutbox(ctx context.Context) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		if s.postgres() {
			return nil, s.last(ctx, []op{{sql: sqlReleaseAll, args: []any{db.node}, need: anything}})
		}
		return nil, s.last(ctx, []op{{sql: sqlReleaseHot}, {sql: sqlReleaseInterrupted}})
	})
}

// EndForgotten ends what was sent by hand by nodes that have died since, and that
// may never be back under their names.
func (db webhooks) EndForgotten(ctx context.Context) error { return db.exec(ctx, sqlReleaseForgotten) }

// EndPause lets a receiver's paused deliveries go, or with a reason ends them as
// failed, oldest first, some of them in each transaction.
func (db webhooks) EndPause(ctx context.Context, id cloud.EndpointID, now time.Time, failed string) error {
	state, next := cloud.OutboxPending, now
	if failed != "" {
		state, next = cloud.OutboxFailed, time.Time{}
	}
	for {
		var n int64
		err := db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
			return nil, s.last(ctx, []op{{sql: sqlResume, args: []any{int64(id), string(state), ms(next), failed, pauseStep}, count: &n}})
		})
		if err != nil || n < pauseStep {
			return err
		}
	}
}

const (
	pauseStep = 500         // deliveries in a transaction
	pauseRest = time.Minute // since a pause ended
)

// EndOldPauses lets deliveries go that are kept for receivers which are not paused,
// and were not just before: the end of that pause says what comes of them. It is
// about those that a sender, by what it knew, kept just after the pause had ended, and
// those of receivers that are gone, of which the sender finds that out.
func (db webhooks) EndOldPauses(ctx context.Context, now time.Time) error {
	for at := int64(-1); ; {
		next, err := readOne(ctx, db.database, sqlNextKept, func(r rows, n **int64) error { return r.Scan(n) }, at)
		if err != nil || next == nil {
			return err
		}
		at = *next
		paused, err := readList(ctx, db.database, sqlIsPaused, scanInt, at, now.Add(-pauseRest).UnixMilli())
		if err == nil && len(paused) == 0 {
			err = db.EndPause(ctx, cloud.EndpointID(at), now, "")
		}
		if err != nil {
			return err
		}
	}
}

// SetEndpointStatus sets the health of a receiver, and why it is paused; a pause
// that there is stays. now is since when.
func (db webhooks) SetEndpointStatus(ctx context.Context, id cloud.EndpointID, status, reason string, now time.Time) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlSetEndpointState, args: []any{int64(id), status, ms(now), reason}, need: anything}})
	})
}

// Redeliver puts a stored event on its way again by hand: a new delivery with the same
// event, receiver and webhook id, given to OnCommit like a new event, in one transaction
// with what with decides beside it (nil: nothing). With a url it goes there, and the caller
// sends it. id is of kind Outboxes; 0: a new one. cloud.ErrNotFound when there is no such
// delivery or it is another owner's.
func (db webhooks) Redeliver(ctx context.Context, whose cloud.OutboxOwner, of, id cloud.OutboxID, url string, now time.Time,
	with func(cloud.View, cloud.OutboxWork) (*cloud.Changes, error)) (work cloud.OutboxWork, err error) {
	var written []cloud.OutboxDelivery
	err = db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		old, err := v.OutboxWork(of)
		if err != nil {
			return nil, err
		}
		if !whose.Owns(old) {
			return nil, cloud.ErrNotFound
		}
		next := id
		if next == 0 {
			n, err := v.NewID(cloud.OutboxIDs)
			if err != nil {
				return nil, err
			}
			next = cloud.OutboxID(n)
		}
		work = cloud.OutboxWork{Event: old.Event, Delivery: again(old.Delivery, next, url, now)}
		c := &cloud.Changes{}
		if with != nil {
			if c, err = with(v, work); err != nil {
				return nil, err
			}
		}
		written = []cloud.OutboxDelivery{work.Delivery}
		c.Outbox = []cloud.OutboxWrite{{Event: work.Event, Deliveries: written, Stored: true}}
		return c, nil
	})
	if err == nil {
		work.Delivery = written[0] // with its lease
	}
	return work, err
}

// again is a new delivery of what was delivered.
func again(old cloud.OutboxDelivery, id cloud.OutboxID, url string, now time.Time) cloud.OutboxDelivery {
	d := cloud.OutboxDelivery{
		ID: id, EventID: old.EventID, EndpointID: old.EndpointID, BusinessID: old.BusinessID, WebhookID: old.WebhookID,
		State: cloud.OutboxPending, MaxAttempts: 1, CreatedAt: now, ReplayOf: old.ID,
		Setting: old.Setting, CustomerID: old.CustomerID, URL: url, Sequence: old.Sequence,
	}
	if url != "" {
		d.State = cloud.OutboxDelivering
	}
	return d
}

// providerLog is a list of a provider's log.
func providerLog(f cloud.OutboxFilter) keyList {
	var c conditions
	c.and(`o.provider_id <> 0 AND o.provider_id = $%d`, int64(f.ProviderID))
	if f.ReferenceID != "" {
		c.and(`o.reference_id = $%d`, f.ReferenceID)
	}
	if f.Event != "" {
		c.and(`o.event = $%d`, f.Event)
	}
	if f.State != "" {
		c.and(`CASE WHEN o.lease_owner <> '' THEN 'delivering' ELSE o.state END = $%d`, string(f.State))
	}
	if f.BusinessID != 0 {
		c.and(`o.business_id = $%d`, int64(f.BusinessID))
	}
	c.created("o.", f.From, f.To)
	return keyList{columns: outboxRowColumns, from: `outbox o` + withEvents, counted: `outbox o`, where: c, prefix: "o.", page: newest(f.Page)}
}

// ListOutbox lists a page of a provider's delivery log, newest first, and counts all
// that the filter chooses up to cloud.MaxTotal. A row that a sender holds shows as
// delivering. Error: cloud.ErrNoMark.
func (db webhooks) ListOutbox(ctx context.Context, f cloud.OutboxFilter) (cloud.Listed, []cloud.OutboxRow, error) {
	if f.ProviderID == 0 {
		return cloud.Listed{}, nil, errors.New("list outbox: the filter names no provider")
	}
	return readLog(ctx, db.database, providerLog(f))
}

// last gives rows of the log their last attempts.
func last(ctx context.Context, q querier, out []cloud.OutboxRow) error {
	for i := range out {
		tried, err := list(ctx, q, sqlLastAttempt, scanAttempt, int64(out[i].Delivery.ID))
		if err != nil {
			return err
		}
		if len(tried) > 0 {
			out[i].Last = &tried[0]
		}
		setVisibleState(&out[i].Delivery)
	}
	return nil
}

// setVisibleState is the state that people see.
func setVisibleState(d *cloud.OutboxDelivery) {
	if d.LeaseOwner != "" {
		d.State = cloud.OutboxDelivering
	}
}

// FindOutbox finds a delivery with its event, body included.
func (db webhooks) FindOutbox(ctx context.Context, id cloud.OutboxID) (cloud.OutboxWork, error) {
	var o cloud.OutboxWork
	err := db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if o.Delivery, err = one(ctx, q, sqlOutboxDelivery, scanOutbox, int64(id)); err != nil {
			return err
		}
		setVisibleState(&o.Delivery)
		o.Event, err = db.outboxEvent(ctx, q, o.Delivery.EventID)
		return err
	})
	return o, err
}

// OutboxAttempts lists the attempts of a delivery, first to last.
func (db webhooks) OutboxAttempts(ctx context.Context, id cloud.OutboxID) ([]cloud.OutboxAttempt, error) {
	return readList(ctx, db.database, sqlAttempts, scanAttempt, int64(id))
}

// OutboxWaiting counts what waits, by channel and state.
func (db webhooks) OutboxWaiting(ctx context.Context) ([]cloud.OutboxCount, error) {
	return readList(ctx, db.database, sqlWaiting, func(r rows, w *cloud.OutboxCount) error {
		return r.Scan(&w.Channel, &w.State, &w.Count, when(&w.Oldest))
	})
}
