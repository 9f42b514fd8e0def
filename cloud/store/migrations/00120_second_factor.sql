-- +goose Up
-- What people prove themselves with besides their password. Secrets are sealed,
-- recovery codes are kept as their digests.
CREATE TABLE second_factor (
  account_id @int PRIMARY KEY,
  secret @bytes,
  pending @bytes,
  pending_until @int,
  step @int NOT NULL,
  recovery TEXT NOT NULL,
  wrong @int NOT NULL,
  locked_until @int,
  set_up_at @int,
  reset_at @int
) @strict;

-- Secrets that are good once and for a while: the second step of a login, a link
-- to a new password. Kept as their digests.
CREATE TABLE ticket (
  hash @bytes PRIMARY KEY,
  kind TEXT NOT NULL,
  account_id @int NOT NULL,
  password_mark @bytes NOT NULL,
  name TEXT NOT NULL,
  life @int NOT NULL,
  expires_at @int NOT NULL,
  used_at @int
) @strict;
CREATE INDEX ticket_expires ON ticket (expires_at);
CREATE INDEX ticket_account ON ticket (account_id, kind);
