-- +goose Up

-- How many stores a device began lately.
CREATE INDEX epoch_opened ON epoch (device_id, opened_at);
