-- +goose Up
-- The mark of address and password at which the person of an account has shown that the
-- mailbox is theirs, and the cabinet that a customer prefers.
ALTER TABLE account ADD COLUMN mail_proof @bytes;
ALTER TABLE account ADD COLUMN preferred_device_id @int NOT NULL DEFAULT 0;
-- Links that went to the address of their account, and into no answer.
ALTER TABLE ticket ADD COLUMN mailed @bool NOT NULL DEFAULT FALSE;
ALTER TABLE invitation ADD COLUMN mailed @bool NOT NULL DEFAULT FALSE;
