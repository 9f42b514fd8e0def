-- +goose Up
-- Events of timelines that count at a time to come (cloud.DueEvent).
CREATE TABLE due_event (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  shipment_id @int NOT NULL,
  package_id @int NOT NULL,
  event_id TEXT NOT NULL,
  provider_id @int NOT NULL,
  due_at @int NOT NULL
) @strict;
CREATE INDEX due_event_business ON due_event (business_id, id);
CREATE INDEX due_event_shipment ON due_event (business_id, shipment_id);
CREATE INDEX due_event_time ON due_event (due_at, id);
