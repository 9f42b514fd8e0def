-- +goose Up
-- Exports of a business's data and removals of a business, in small steps.
CREATE TABLE business_job (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  kind TEXT NOT NULL,
  requested_by @int NOT NULL,
  reason TEXT NOT NULL,
  step @int NOT NULL,
  position TEXT NOT NULL,
  part @int NOT NULL,
  done_rows @int NOT NULL,
  bytes @int NOT NULL,
  found @int NOT NULL,
  created_at @int,
  finished_at @int
) @strict;
CREATE INDEX business_job_open ON business_job (id) WHERE finished_at IS NULL;
CREATE INDEX business_job_business ON business_job (business_id, kind, id);
-- What operators see of how businesses are, counted one after another.
CREATE TABLE business_health (
  business_id @int PRIMARY KEY,
  cabinets @int NOT NULL,
  online @int NOT NULL,
  endpoints @int NOT NULL,
  failing @int NOT NULL,
  backlog @int NOT NULL,
  counted_at @int NOT NULL
) @keyed;
CREATE INDEX endpoint_business ON endpoint (business_id, id);
