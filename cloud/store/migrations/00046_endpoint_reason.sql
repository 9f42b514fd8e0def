-- +goose Up
-- Why a receiver is paused.
ALTER TABLE endpoint ADD COLUMN status_reason TEXT NOT NULL DEFAULT '';
