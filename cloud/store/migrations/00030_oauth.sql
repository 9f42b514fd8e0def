-- +goose Up
-- Programs that registered themselves, and what people let them do. A grant has
-- one authorization code, kept as its hash.
CREATE TABLE oauth_client (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  created_at @int NOT NULL,
  used_at @int
) @strict;
CREATE INDEX oauth_client_unused ON oauth_client (created_at) WHERE used_at IS NULL;
CREATE INDEX oauth_client_used ON oauth_client (used_at) WHERE used_at IS NOT NULL;

CREATE TABLE oauth_grant (
  id @int PRIMARY KEY,
  account_id @int NOT NULL,
  client_id TEXT NOT NULL,
  client_name TEXT NOT NULL,
  host TEXT NOT NULL,
  profile TEXT NOT NULL,
  scopes TEXT NOT NULL,
  audience TEXT NOT NULL,
  created_at @int NOT NULL,
  used_at @int,
  expires_at @int NOT NULL,
  ended_at @int,
  code_hash @bytes NOT NULL,
  code_redirect TEXT NOT NULL,
  code_challenge TEXT NOT NULL,
  code_expires_at @int NOT NULL,
  code_used_at @int
) @strict;
CREATE UNIQUE INDEX oauth_grant_code ON oauth_grant (code_hash);
CREATE INDEX oauth_grant_account ON oauth_grant (account_id, id);
CREATE INDEX oauth_grant_client ON oauth_grant (client_id);
CREATE INDEX oauth_grant_expires ON oauth_grant (expires_at);
CREATE INDEX oauth_grant_ended ON oauth_grant (ended_at) WHERE ended_at IS NOT NULL;

-- Tokens of a grant say what they are for and where they are good.
ALTER TABLE token ADD COLUMN grant_id @int NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN audience TEXT NOT NULL DEFAULT '';
CREATE INDEX token_grant ON token (grant_id) WHERE grant_id <> 0;
CREATE INDEX token_grant_expires ON token (expires_at) WHERE grant_id <> 0;
