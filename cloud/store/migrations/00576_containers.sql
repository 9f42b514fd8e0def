-- +goose Up
-- Containers of a business, when things were put into them and taken out, and their events.
CREATE TABLE container (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  kind TEXT NOT NULL,
  scheme TEXT NOT NULL,
  identity TEXT NOT NULL,
  key TEXT NOT NULL,
  provider_id @int NOT NULL
) @strict;
CREATE INDEX container_business ON container (business_id, id);
CREATE INDEX container_provider ON container (business_id, provider_id, id);
CREATE UNIQUE INDEX container_key ON container (business_id, key);
CREATE TABLE container_mark (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  container_id @int NOT NULL,
  child TEXT NOT NULL,
  at @int NOT NULL,
  inside @bool NOT NULL,
  cause TEXT NOT NULL,
  shipment_id @int NOT NULL
) @strict;
CREATE INDEX container_mark_business ON container_mark (business_id, id);
CREATE INDEX container_mark_container ON container_mark (container_id, child);
CREATE INDEX container_mark_child ON container_mark (business_id, child);
CREATE TABLE container_event (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  container_id @int NOT NULL,
  event_id TEXT NOT NULL,
  occurred_at @int NOT NULL,
  provider_id @int NOT NULL,
  event TEXT NOT NULL,
  withdrawn_at @int,
  reason TEXT NOT NULL,
  withdrawn_by TEXT NOT NULL,
  corrected_by TEXT NOT NULL
) @strict;
CREATE INDEX container_event_business ON container_event (business_id, id);
CREATE UNIQUE INDEX container_event_id ON container_event (container_id, event_id);
CREATE INDEX container_event_time ON container_event (container_id, occurred_at);
-- What is to follow at the things inside.
CREATE TABLE container_task (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  root TEXT NOT NULL,
  since @int NOT NULL,
  until @int NOT NULL,
  finished TEXT NOT NULL
) @strict;
CREATE INDEX container_task_business ON container_task (business_id, id);
CREATE TABLE container_turn (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL
) @strict;
CREATE INDEX container_turn_business ON container_turn (business_id, id);
