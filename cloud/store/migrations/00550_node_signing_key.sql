-- +goose Up
-- The identifier of the key that a process signs with; empty: it runs a release that did not say.
ALTER TABLE node ADD COLUMN signing_key TEXT NOT NULL DEFAULT '';
