-- +goose Up

-- A code list with an older number than this is void as a whole.
ALTER TABLE device ADD COLUMN list_from @int NOT NULL DEFAULT 0;
