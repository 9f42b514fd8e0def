-- +goose Up
-- Each time that this database went back to an earlier moment: it was made from a backup, or
-- recovered by other means. done_at is when its numbers went on above those that were given
-- since that moment. The load of a backup makes the table as well, for those of before it.
CREATE TABLE IF NOT EXISTS recovery (
  noted_at @int NOT NULL PRIMARY KEY,
  state_at @int NOT NULL,
  done_at @int
) @strict;
