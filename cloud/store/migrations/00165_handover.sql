-- +goose Up
-- Whom a recipient has named to collect a delivery, JSON; empty: the recipient collects.
ALTER TABLE delivery ADD COLUMN handover TEXT NOT NULL DEFAULT '';
