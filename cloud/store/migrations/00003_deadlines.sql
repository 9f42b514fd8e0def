-- +goose Up

ALTER TABLE opening ADD COLUMN reason TEXT NOT NULL DEFAULT '';

CREATE INDEX delivery_unused ON delivery (deliver_before, id) WHERE status = 'created';
CREATE INDEX delivery_uncollected ON delivery (due_at, id) WHERE status = 'delivered';
