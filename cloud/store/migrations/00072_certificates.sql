-- +goose Up
-- What the client of certificate authorities keeps for all nodes: accounts,
-- certificates and their keys, open challenges. value is sealed.
CREATE TABLE certificate (
  key TEXT PRIMARY KEY,
  value @bytes NOT NULL,
  size @int NOT NULL,
  modified_at @int NOT NULL
) @strict;

-- One node at a time fetches or renews a certificate.
CREATE TABLE certificate_lock (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  expires_at @int NOT NULL
) @strict;
