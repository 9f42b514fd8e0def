-- +goose Up
CREATE TABLE qr_code (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  pass_id TEXT NOT NULL,
  device_id @int NOT NULL,
  delivery_id @int NOT NULL,
  kind TEXT NOT NULL,
  issued_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  ends_at @int NOT NULL,
  opening_id TEXT NOT NULL,
  used_at @int
) @strict;
CREATE INDEX qr_code_business ON qr_code (business_id, id);
CREATE UNIQUE INDEX qr_code_pass ON qr_code (pass_id);
