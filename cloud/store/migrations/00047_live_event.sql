-- +goose Up
-- What listeners are told over MQTT, for minutes only.
CREATE TABLE live_event (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  business_id @int NOT NULL,
  subject @int NOT NULL,
  at @int NOT NULL,
  passing @bool NOT NULL,
  body @bytes NOT NULL
) @strict;
CREATE INDEX live_event_at ON live_event (at, id);
CREATE INDEX live_event_subject ON live_event (business_id, kind, subject, at, id);
