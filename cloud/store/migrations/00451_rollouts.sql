-- +goose Up
-- Roll-outs of the agent, one ring of devices after the other. A business has one that runs.
CREATE TABLE rollout (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  version TEXT NOT NULL,
  state TEXT NOT NULL,
  stop TEXT NOT NULL,
  stop_note TEXT NOT NULL,
  ring @int NOT NULL,
  rings @int NOT NULL,
  healthy_seconds @int NOT NULL,
  patience_seconds @int NOT NULL,
  devices TEXT NOT NULL
) @strict;
CREATE INDEX rollout_business ON rollout (business_id, id);
CREATE INDEX rollout_state ON rollout (business_id, state, id);
CREATE UNIQUE INDEX rollout_running ON rollout (business_id) WHERE state = 'running';
