-- +goose Up
-- How many events there were about each reference, for receivers that put them in order.
CREATE TABLE reference_sequence (
  business_id @int NOT NULL,
  reference_id TEXT NOT NULL,
  reference_type TEXT NOT NULL,
  last @int NOT NULL,
  PRIMARY KEY (business_id, reference_id, reference_type)
) @keyed;
ALTER TABLE outbox_event ADD COLUMN sequence @int NOT NULL DEFAULT 0;
