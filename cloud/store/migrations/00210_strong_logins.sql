-- +goose Up
-- What let a person in was as good as a second factor: a passkey or a sign-in provider.
-- Agents have it from the login that they were allowed by.
ALTER TABLE token ADD COLUMN strong @bool NOT NULL DEFAULT FALSE;
ALTER TABLE oauth_grant ADD COLUMN strong @bool NOT NULL DEFAULT FALSE;
