-- +goose Up
-- Devices that speak HTTP: their secret, and the state of their rules. orders counts the
-- orders ever given; due_at is when time alone or an order of the cloud's changes something.
CREATE TABLE http_device (
  device_id @int NOT NULL PRIMARY KEY,
  sealed_secret @bytes NOT NULL,
  state @bytes NOT NULL,
  orders @int NOT NULL,
  due_at @int
) @strict;
CREATE INDEX http_device_due ON http_device (due_at, device_id) WHERE due_at IS NOT NULL;

-- Nonces that their requests have used.
CREATE TABLE http_nonce (
  device_id @int NOT NULL,
  nonce TEXT NOT NULL,
  expires_at @int NOT NULL,
  PRIMARY KEY (device_id, nonce)
) @strict;
