-- +goose Up
-- What keys and programs may do without a person, and what they did of it on a
-- day of UTC. Rows of key_use are dropped after the day.
ALTER TABLE token ADD COLUMN policy TEXT NOT NULL DEFAULT '{}';
ALTER TABLE oauth_grant ADD COLUMN policy TEXT NOT NULL DEFAULT '{}';
CREATE TABLE key_use (
  key TEXT NOT NULL,
  day TEXT NOT NULL,
  writes @int NOT NULL,
  money @int NOT NULL,
  PRIMARY KEY (key, day)
) @strict;
CREATE INDEX key_use_day ON key_use (day);
