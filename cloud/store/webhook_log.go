package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Tests, which are tried once, count nowhere, and what was superseded is not
// missed.
const (
	sqlAccountFailing = `SELECT COUNT(*) FROM (SELECT 1 FROM outbox @by_unsent
WHERE provider_id = 0 AND business_id = $1 AND state IN ('retrying', 'failed', 'paused') AND state <> 'paused'
  AND (max_attempts > 1 OR replay_of <> 0) AND reason <> 'superseded' LIMIT $2) AS f`
	sqlPartnersFailing = `SELECT COUNT(*) FROM (SELECT 1 FROM outbox @by_partner_unsent
WHERE provider_id <> 0 AND business_id = $1 AND state IN ('retrying', 'failed', 'dead', 'paused') AND state <> 'paused'
  AND (max_attempts > 1 OR replay_of <> 0) AND reason <> 'superseded' LIMIT $2) AS f`
)

// conditions are those of a query, with their arguments.
type conditions struct {
	text string
	args []any
}

// and adds a condition with a %d for each number of a parameter.
func (c *conditions) and(sql string, values ...any) {
	var at []any
	for _, v := range values {
		c.args = append(c.args, v)
		at = append(at, len(c.args))
	}
	c.text += fmt.Sprintf(" AND "+sql, at...)
}

// oneOf is the part of a condition behind IN that stands for n values.
func oneOf(n int) string {
	return "(" + strings.TrimSuffix(strings.Repeat("$%d, ", n), ", ") + ")"
}

// where is what was added, to follow a table.
func (c *conditions) where() string {
	return ` WHERE ` + strings.TrimPrefix(c.text, " AND ")
}

// state adds that rows of outbox o show a state, and gives the index that has
// them where they are few: SQLite keeps no count of what is rare. kept names the
// index of what has not arrived, and its states.
func (c *conditions) state(s cloud.OutboxState, kept string, states ...cloud.OutboxState) (index string) {
	switch {
	case s == "":
		return ""
	case s == cloud.OutboxDelivering:
		c.and(held)
		return ` @by_id`
	case s == cloud.OutboxPending:
		c.and(`o.state IN ('pending', 'delivering', 'retrying') AND o.lease_owner = ''`)
		index = ` @by_hot`
	case slices.Contains(states, s):
		c.and(`o.state IN ('` + joined(states) + `') AND o.lease_owner = ''`)
		index = ` ` + kept
	}
	c.and(`o.state = $%d`, string(s))
	return index
}

func joined(states []cloud.OutboxState) string {
	var text []string
	for _, s := range states {
		text = append(text, string(s))
	}
	return strings.Join(text, `', '`)
}

// held are the rows that show as delivering: those that a sender has taken up,
// and those sent by hand of which nothing is known yet.
const held = `o.id IN (SELECT id FROM outbox @by_hot WHERE state IN ('pending', 'delivering', 'retrying') AND lease_owner <> ''
  UNION ALL SELECT id FROM outbox WHERE reason = 'interrupted' AND lease_owner <> '')`

var (
	accountUnsent  = []cloud.OutboxState{cloud.OutboxRetrying, cloud.OutboxFailed, cloud.OutboxPaused}
	partnersUnsent = []cloud.OutboxState{cloud.OutboxRetrying, cloud.OutboxFailed, cloud.OutboxDead, cloud.OutboxPaused}
)

// statement is a query with its arguments.
type statement struct {
	sql  string
	args []any
}

// businessLogSQL are the statements that together have a page of a business's
// log: one of each channel, or one of both where an index has both.
func businessLogSQL(f cloud.BusinessLog) []statement {
	unsent := slices.Contains(partnersUnsent, f.State)
	switch {
	case f.ReferenceID != "", f.EndpointID != 0 && !unsent, f.State == cloud.OutboxPending, f.State == cloud.OutboxDelivering:
		return []statement{businessLogPart(f, "", "", nil)}
	case f.State == cloud.OutboxDead: // of the account channel none ends so
		return []statement{businessLogPart(f, `o.provider_id <> 0`, `@by_partner_unsent`, partnersUnsent)}
	}
	return []statement{businessLogPart(f, `o.provider_id = 0`, `@by_unsent`, accountUnsent), businessLogPart(f, `o.provider_id <> 0`, `@by_partner_unsent`, partnersUnsent)}
}

func businessLogPart(f cloud.BusinessLog, channel, kept string, states []cloud.OutboxState) statement {
	var c conditions
	if channel != "" {
		c.and(channel)
	}
	index := c.state(f.State, kept, states...)
	if f.ReferenceID == "" {
		c.and(`o.business_id = $%d`, int64(f.BusinessID))
	} else {
		index = ` @by_reference`
		c.and(`o.business_id = $%d AND o.reference_id = $%d`, int64(f.BusinessID), f.ReferenceID)
	}
	if f.EndpointID != 0 {
		c.and(`o.endpoint_id = $%d`, int64(f.EndpointID))
	}
	if f.Event != "" {
		c.and(`o.event = $%d`, f.Event)
	}
	c.created("o.", f.From, f.To)
	if f.Before.ID != 0 {
		c.and(`(o.created_at, o.id) < ($%d, $%d)`, f.Before.At.UnixMilli(), int64(f.Before.ID))
	}
	sql := `SELECT ` + outboxRowColumns + ` FROM outbox o` + index + withEvents + c.where()
	c.args = append(c.args, f.Limit)
	return statement{sql + fmt.Sprintf(` ORDER BY o.created_at DESC, o.id DESC LIMIT $%d`, len(c.args)), c.args}
}

// ListBusinessOutbox lists rows of a business's delivery log. A row that a
// sender holds shows as delivering.
func (db webhooks) ListBusinessOutbox(ctx context.Context, f cloud.BusinessLog) (out []cloud.OutboxRow, err error) {
	if f.BusinessID == 0 {
		return nil, errors.New("list outbox: the filter names no business")
	}
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		out = nil
		for _, s := range businessLogSQL(f) {
			part, err := list(ctx, q, s.sql, scanOutboxRow, s.args...)
			if err != nil {
				return err
			}
			out = append(out, part...)
		}
		slices.SortFunc(out, func(a, b cloud.OutboxRow) int {
			return cmp.Or(b.Delivery.CreatedAt.Compare(a.Delivery.CreatedAt), cmp.Compare(b.Delivery.ID, a.Delivery.ID))
		})
		out = out[:min(len(out), f.Limit)]
		return last(ctx, q, out)
	})
	return out, err
}

// CountFailing counts a business's deliveries that did not arrive: those to be
// tried again, and those given up. It ends at cloud.MaxFailing.
func (db webhooks) CountFailing(ctx context.Context, b cloud.BusinessID) (total int, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		total = 0
		for _, sql := range []string{sqlAccountFailing, sqlPartnersFailing} {
			n, err := one(ctx, q, sql, scanInt, int64(b), cloud.MaxFailing)
			if err != nil {
				return err
			}
			total = min(total+int(n), cloud.MaxFailing)
		}
		return nil
	})
	return total, err
}
