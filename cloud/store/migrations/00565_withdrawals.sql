-- +goose Up
-- Why an event was taken back, by which provider, and which event took its place.
ALTER TABLE timeline ADD COLUMN withdrawn_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE timeline ADD COLUMN withdrawn_by TEXT NOT NULL DEFAULT '';
ALTER TABLE timeline ADD COLUMN corrected_by TEXT NOT NULL DEFAULT '';
