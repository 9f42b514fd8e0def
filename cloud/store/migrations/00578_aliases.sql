-- +goose Up
-- Numbers by which others know parcels, packages and containers.
CREATE TABLE alias (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  thing TEXT NOT NULL,
  shipment_id @int NOT NULL,
  kind TEXT NOT NULL,
  issuer TEXT NOT NULL,
  value TEXT NOT NULL,
  key TEXT NOT NULL,
  since @int NOT NULL,
  until @int,
  provider_id @int NOT NULL
) @strict;
CREATE INDEX alias_business ON alias (business_id, id);
CREATE INDEX alias_key ON alias (business_id, key, id);
CREATE INDEX alias_thing ON alias (business_id, thing, id);
CREATE UNIQUE INDEX alias_open ON alias (business_id, kind, issuer, key) WHERE until IS NULL;
