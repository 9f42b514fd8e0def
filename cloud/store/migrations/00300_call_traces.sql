-- +goose Up
-- The trace that a row belongs to (cloud/span), as a traceparent; '' when its call was
-- not followed.
ALTER TABLE command ADD COLUMN trace TEXT NOT NULL DEFAULT '';
ALTER TABLE opening ADD COLUMN trace TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox_event ADD COLUMN trace TEXT NOT NULL DEFAULT '';
