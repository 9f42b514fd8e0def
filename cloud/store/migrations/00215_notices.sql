-- +goose Up
-- When the configuration, the code list, the secrets or the standing of a device changed
-- last, for nodes that look for what others committed; NULL: not since this column is
-- there.
ALTER TABLE device ADD COLUMN changed_at @int;
CREATE INDEX device_changed ON device (changed_at) WHERE changed_at IS NOT NULL;
CREATE INDEX command_queued ON command (issued_at) WHERE state = 'queued';
