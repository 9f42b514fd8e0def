-- +goose Up
-- Public keys that people sign in with.
CREATE TABLE passkey (
  id @int PRIMARY KEY,
  account_id @int NOT NULL,
  credential @bytes NOT NULL,
  name TEXT NOT NULL,
  data TEXT NOT NULL,
  created_at @int NOT NULL,
  used_at @int
) @strict;
CREATE UNIQUE INDEX passkey_credential ON passkey (credential);
CREATE INDEX passkey_account ON passkey (account_id, id);
