-- +goose Up
-- Words to drivers' apps, with what became of each. body is sealed.
CREATE TABLE push (
  n @serial,
  id TEXT NOT NULL UNIQUE,
  business_id @int NOT NULL,
  driver_id @int NOT NULL,
  type TEXT NOT NULL,
  collapse TEXT NOT NULL,
  test @bool NOT NULL,
  at @int NOT NULL,
  state TEXT NOT NULL,
  attempts @int NOT NULL,
  next_at @int,
  ended_at @int,
  reason TEXT NOT NULL,
  lease_owner TEXT NOT NULL,
  lease_until @int,
  generation @int NOT NULL,
  body @bytes NOT NULL
) @strict;
CREATE INDEX push_due ON push (next_at, n) WHERE state = 'waiting';
CREATE INDEX push_collapse ON push (driver_id, collapse, n) WHERE collapse <> '';
CREATE INDEX push_driver ON push (business_id, driver_id, at, n);
CREATE INDEX push_test ON push (business_id, at, n) WHERE test;
CREATE INDEX push_old ON push (at, n);

-- Where a driver's apps are reached through the provider, each as long as the
-- login that it was given with is good. token is sealed.
CREATE TABLE push_token (
  driver_id @int NOT NULL,
  hash @bytes NOT NULL,
  login @bytes NOT NULL,
  platform TEXT NOT NULL,
  at @int NOT NULL,
  token @bytes NOT NULL,
  PRIMARY KEY (driver_id, hash)
) @keyed;
CREATE UNIQUE INDEX push_token_hash ON push_token (hash);
CREATE INDEX push_token_login ON push_token (login);
