-- +goose Up
-- Writes of agents that wait for a person's word, or had it. What was given and
-- what came of it is sealed; nobody makes a pending one expired: it is once
-- expires_at has passed and nobody has decided.
CREATE TABLE approval (
  id TEXT PRIMARY KEY,
  business_id @int NOT NULL,
  status TEXT NOT NULL,
  tool TEXT NOT NULL,
  requested_by @int NOT NULL,
  requested_at @int,
  expires_at @int,
  reviewed_by @int NOT NULL,
  reviewed_at @int,
  body TEXT NOT NULL,
  sealed @bytes NOT NULL
) @strict;
CREATE INDEX approval_requested ON approval (business_id, requested_at, id);
CREATE INDEX approval_pending ON approval (business_id, requested_at, id) WHERE status = 'pending';
CREATE INDEX approval_reviewed ON approval (business_id, reviewed_at, id) WHERE status <> 'pending';
