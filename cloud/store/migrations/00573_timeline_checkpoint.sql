-- +goose Up
-- What stands for the events of a timeline up to a moment. It is deleted with an event that comes, or is
-- taken back, before it; one of other rules or other packages is not read.
CREATE TABLE timeline_checkpoint (
  shipment_id @int NOT NULL PRIMARY KEY,
  version @int NOT NULL,
  upto @int NOT NULL,
  events @int NOT NULL,
  packages @int NOT NULL,
  last_package @int NOT NULL
) @strict;
-- The events that later ones are judged by.
CREATE TABLE timeline_kept (
  shipment_id @int NOT NULL,
  event_id TEXT NOT NULL,
  PRIMARY KEY (shipment_id, event_id)
) @strict;
