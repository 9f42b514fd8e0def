-- +goose Up
-- When staff last declared a compartment empty; NULL: never.
ALTER TABLE compartment ADD COLUMN cleared_at @int;
