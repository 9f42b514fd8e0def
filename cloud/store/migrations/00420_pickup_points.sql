-- +goose Up
ALTER TABLE device ADD COLUMN public @bool NOT NULL DEFAULT FALSE;
