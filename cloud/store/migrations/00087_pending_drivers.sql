-- +goose Up
-- Registrations that wait for a review are bounded. Those from before are not counted.
ALTER TABLE driver ADD COLUMN waits_since @int NOT NULL DEFAULT 0;
CREATE INDEX driver_waiting ON driver (business, waits_since, account_id) WHERE waits_since <> 0;
