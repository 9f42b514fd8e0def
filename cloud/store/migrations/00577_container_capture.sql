-- +goose Up
-- Aggregation events of EPCIS that put things into containers, and took them out.
CREATE TABLE container_capture (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  container_id @int NOT NULL,
  event_id TEXT NOT NULL,
  occurred_at @int NOT NULL,
  provider_id @int NOT NULL,
  content TEXT NOT NULL,
  withdrawn_at @int,
  reason TEXT NOT NULL
) @strict;
ALTER TABLE container_mark ADD COLUMN withdrawn_at @int;
CREATE INDEX container_capture_business ON container_capture (business_id, id);
CREATE UNIQUE INDEX container_capture_event ON container_capture (container_id, event_id);
