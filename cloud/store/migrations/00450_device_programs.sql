-- +goose Up
-- What devices said of their program: platform, and where updates stand.
ALTER TABLE device_seen ADD COLUMN program TEXT NOT NULL DEFAULT '{}';
