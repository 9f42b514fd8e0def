-- +goose Up
-- Files that cabinets are asked for by commands.
CREATE TABLE diagnosis (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  device_id @int NOT NULL,
  kind TEXT NOT NULL,
  grid_id @int NOT NULL,
  command_id TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  until @int NOT NULL,
  state TEXT NOT NULL,
  note TEXT NOT NULL,
  path TEXT NOT NULL,
  size_bytes @int NOT NULL,
  digest TEXT NOT NULL,
  ended_at @int
) @strict;
CREATE INDEX diagnosis_business ON diagnosis (business_id, id);
CREATE INDEX diagnosis_device ON diagnosis (business_id, device_id, id);
CREATE UNIQUE INDEX diagnosis_command ON diagnosis (command_id);
CREATE UNIQUE INDEX diagnosis_token ON diagnosis (token_hash);
CREATE INDEX diagnosis_age ON diagnosis (created_at);
