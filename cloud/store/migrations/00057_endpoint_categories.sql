-- +goose Up
-- What a third party wants to be told of; none are all.
ALTER TABLE endpoint ADD COLUMN categories TEXT NOT NULL DEFAULT '[]';
