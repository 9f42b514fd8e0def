-- +goose Up
-- Which administrator has a link to another person's new password.
ALTER TABLE ticket ADD COLUMN made_by @int NOT NULL DEFAULT 0;
