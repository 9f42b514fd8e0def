-- +goose Up
-- The package of an order that an event is about, 0 for the whole of it. event_id is then the
-- event's own with the package behind it: two packages may have one event each of the same id.
ALTER TABLE timeline ADD COLUMN package_id @int NOT NULL DEFAULT 0;
-- Of a source that had no say: shown beside the timeline, and counted for nothing.
ALTER TABLE timeline ADD COLUMN reported @bool NOT NULL DEFAULT FALSE;
-- Whether a provider's events may take over orders that rest.
ALTER TABLE provider ADD COLUMN authority TEXT NOT NULL DEFAULT 'moves';
