-- +goose Up
-- What the platform did to businesses, and passes of its operators into them.
CREATE TABLE business_state (
  business_id @int PRIMARY KEY,
  suspended_at @int,
  reason TEXT NOT NULL,
  suspended_by @int NOT NULL,
  limits TEXT NOT NULL
) @keyed;
CREATE TABLE platform_pass (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  account_id @int NOT NULL,
  operator TEXT NOT NULL,
  reason TEXT NOT NULL,
  token_hash @bytes NOT NULL UNIQUE,
  created_at @int,
  expires_at @int,
  ended_at @int,
  ended_by @int NOT NULL
) @strict;
CREATE INDEX platform_pass_business ON platform_pass (business_id, id);
