-- +goose Up
-- Attempts a second at most, and at once; 0 is unbounded.
ALTER TABLE endpoint ADD COLUMN rate @real NOT NULL DEFAULT 0;
ALTER TABLE endpoint ADD COLUMN burst @int NOT NULL DEFAULT 0;
