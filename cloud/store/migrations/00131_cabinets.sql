-- +goose Up
-- When a cabinet was taken out of use for good, and since when it takes no new
-- deliveries.
ALTER TABLE device ADD COLUMN retired_at @int;
ALTER TABLE device ADD COLUMN maintenance_at @int;
-- Opening hours, indoor guide and features, JSON.
ALTER TABLE device ADD COLUMN profile TEXT NOT NULL DEFAULT '';
-- The history of a cabinet's doors is read by time.
CREATE INDEX opening_device_at ON opening (device_id, requested_at, id);
