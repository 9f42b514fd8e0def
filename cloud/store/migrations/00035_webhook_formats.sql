-- +goose Up
-- How what goes to a receiver is put and signed; '' is native. The key is the
-- sealed seed of an Ed25519 key.
ALTER TABLE endpoint ADD COLUMN format TEXT NOT NULL DEFAULT '';
ALTER TABLE endpoint ADD COLUMN signature TEXT NOT NULL DEFAULT '';
ALTER TABLE endpoint ADD COLUMN signing_key @bytes;
