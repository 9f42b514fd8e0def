-- +goose Up
-- Running numbers of what goes to a receiver that wants them; -1 is one that is
-- still to be given.
ALTER TABLE endpoint ADD COLUMN numbered @bool NOT NULL DEFAULT FALSE;
ALTER TABLE outbox ADD COLUMN sequence @int NOT NULL DEFAULT 0;
CREATE TABLE endpoint_sequence (
  endpoint_id @int PRIMARY KEY,
  last @int NOT NULL
) @strict;
