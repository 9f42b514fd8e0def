-- +goose Up
-- When receivers were told of a driver's place, and when they are to be.
ALTER TABLE driver_place ADD COLUMN told_at @int;
ALTER TABLE driver_place ADD COLUMN due_at @int;
CREATE INDEX driver_place_due ON driver_place (due_at) WHERE due_at IS NOT NULL;

-- Of such events only the newest about a driver is sent.
CREATE INDEX outbox_place ON outbox (endpoint_id, reference_id, id) WHERE event = 'driver.location_update';
CREATE INDEX outbox_place_waiting ON outbox (endpoint_id, reference_id) WHERE event = 'driver.location_update' AND state IN ('pending', 'retrying', 'paused');
