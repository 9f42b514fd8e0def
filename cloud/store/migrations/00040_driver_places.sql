-- +goose Up
-- Where drivers were last, by their own word.
CREATE TABLE driver_place (
  account_id @int PRIMARY KEY,
  business @int NOT NULL,
  recorded_at @int NOT NULL,
  body TEXT NOT NULL
) @strict;
