-- +goose Up
-- People who were asked to join a business. The link is kept as its digest.
CREATE TABLE invitation (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  hash @bytes NOT NULL,
  email TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  permissions TEXT NOT NULL,
  invited_by @int NOT NULL,
  wrong @int NOT NULL,
  created_at @int NOT NULL,
  expires_at @int NOT NULL,
  accepted_at @int,
  withdrawn_at @int,
  account_id @int NOT NULL
) @strict;
CREATE UNIQUE INDEX invitation_hash ON invitation (hash);
CREATE INDEX invitation_business ON invitation (business_id, id);
