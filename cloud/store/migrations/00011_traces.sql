-- +goose Up
-- What a trace collector was told: 0 an event that it was not, 1 one that it
-- was, 2 one that was withdrawn since. trace_push has one row: which events
-- are older than pushing, and which node pushes.
ALTER TABLE timeline ADD COLUMN told @int NOT NULL DEFAULT 0;
CREATE INDEX timeline_untold ON timeline (n) WHERE told = 0;
CREATE INDEX timeline_taken_back ON timeline (n) WHERE told = 2;

CREATE TABLE trace_push (
  id @int PRIMARY KEY,
  start_n @int NOT NULL,
  lease_owner TEXT NOT NULL,
  lease_until @int
) @strict;
