-- +goose Up
-- What an employee may do, as scopes.
ALTER TABLE account ADD COLUMN permissions TEXT NOT NULL DEFAULT 'null';
