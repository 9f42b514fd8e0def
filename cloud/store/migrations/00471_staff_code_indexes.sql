-- +goose NO TRANSACTION
-- +goose Up
-- Entries of staff codes that have ended.
DROP INDEX @beside IF EXISTS code_entry_staff;
CREATE INDEX @beside code_entry_staff ON code_entry (device_id, dropped_at) WHERE staff_code_id > 0;
