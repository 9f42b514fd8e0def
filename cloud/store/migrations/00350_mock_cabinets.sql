-- +goose Up
-- The state of mock cabinets, one for each provider of locker services. due_at is when
-- time alone or an order changes something.
CREATE TABLE mock_cabinet (
  device_id @int NOT NULL PRIMARY KEY,
  state @bytes NOT NULL,
  due_at @int
) @strict;
CREATE INDEX mock_cabinet_due ON mock_cabinet (due_at, device_id) WHERE due_at IS NOT NULL;
