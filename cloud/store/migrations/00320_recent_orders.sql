-- +goose NO TRANSACTION
-- +goose Up
-- The newest orders of a device about the use of its compartments.
DROP INDEX @beside IF EXISTS command_use;
CREATE INDEX @beside command_use ON command (device_id, id) WHERE kind IN ('block', 'unblock', 'close_session');
