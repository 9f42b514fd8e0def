-- +goose Up
-- Settings of cabinets under a name, and roll-outs of them.
CREATE TABLE cabinet_profile (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  name TEXT NOT NULL,
  revision @int NOT NULL,
  settings TEXT NOT NULL
) @strict;
CREATE INDEX cabinet_profile_business ON cabinet_profile (business_id, id);
CREATE UNIQUE INDEX cabinet_profile_name ON cabinet_profile (business_id, name);
ALTER TABLE rollout ADD COLUMN profile_id @int NOT NULL DEFAULT 0;
ALTER TABLE rollout ADD COLUMN profile_name TEXT NOT NULL DEFAULT '';
ALTER TABLE rollout ADD COLUMN revision @int NOT NULL DEFAULT 0;
ALTER TABLE rollout ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
