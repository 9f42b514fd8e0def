-- +goose Up
-- The first start of the deployment: one row for all nodes. nonce is what the
-- one-time address is derived from, NULL before one was shown; keys_digest names
-- the keys file that the database belongs to, NULL until a node claims it.
CREATE TABLE setup (
  id @int PRIMARY KEY,
  nonce @bytes,
  expires_at @int,
  keys_digest @bytes
) @strict;
INSERT INTO setup (id) VALUES (1);
CREATE INDEX account_administrator ON account (type) WHERE type = 'client_admin';
