-- +goose Up
-- Mails to people, with what became of each. body is sealed, and erased at the end.
CREATE TABLE mail (
  n @serial,
  id TEXT NOT NULL UNIQUE,
  business_id @int NOT NULL,
  account_id @int NOT NULL,
  kind TEXT NOT NULL,
  at @int NOT NULL,
  until @int NOT NULL,
  state TEXT NOT NULL,
  attempts @int NOT NULL,
  next_at @int,
  ended_at @int,
  reason TEXT NOT NULL,
  lease_owner TEXT NOT NULL,
  lease_until @int,
  generation @int NOT NULL,
  body @bytes
) @strict;
CREATE INDEX mail_due ON mail (next_at, n) WHERE state = 'waiting';
CREATE INDEX mail_old ON mail (at, n);
CREATE INDEX mail_business ON mail (business_id, n);

-- Wishes of anonymous callers for a link to a new password, one an address.
CREATE TABLE reset_request (
  digest @bytes PRIMARY KEY,
  email TEXT NOT NULL,
  language TEXT NOT NULL,
  at @int NOT NULL,
  done_at @int
) @strict;
CREATE INDEX reset_request_waiting ON reset_request (at) WHERE done_at IS NULL;
CREATE INDEX reset_request_old ON reset_request (at);
