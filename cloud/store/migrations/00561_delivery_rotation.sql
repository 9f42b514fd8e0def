-- +goose Up
-- The newest replacement of a code of the delivery, JSON; empty: none was.
ALTER TABLE delivery ADD COLUMN rotation TEXT NOT NULL DEFAULT '';
