-- +goose Up
-- When the recipient of a delivery is to be reminded of it. The row goes when its time has
-- come, whatever has become of the delivery.
CREATE TABLE reminder (
  delivery_id @int NOT NULL PRIMARY KEY,
  at @int NOT NULL
) @strict;
CREATE INDEX reminder_at ON reminder (at, delivery_id);
