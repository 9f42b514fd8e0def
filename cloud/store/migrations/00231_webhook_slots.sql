-- +goose Up
-- Deliveries are shared among nodes by slots: all about one reference to one receiver are
-- of the same slot, which one node has at a time. Numbers of references put them in order.
ALTER TABLE outbox ADD COLUMN slot @int NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN reference_sequence @int NOT NULL DEFAULT 0;
@shared DROP INDEX outbox_hot;
@shared CREATE INDEX outbox_due ON outbox (endpoint_id, slot, next_at, id) WHERE state IN ('pending', 'delivering', 'retrying');
@shared CREATE INDEX outbox_line ON outbox (endpoint_id, reference_id) WHERE state IN ('pending', 'delivering', 'retrying');
CREATE TABLE webhook_slot (
  slot @int PRIMARY KEY,
  owner TEXT NOT NULL DEFAULT ''
) @strict;
INSERT INTO webhook_slot (slot) WITH RECURSIVE n(slot) AS (SELECT 0 UNION ALL SELECT slot + 1 FROM n WHERE slot < 63) SELECT slot FROM n;
