-- +goose Up
CREATE TABLE saved_view (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  account_id @int NOT NULL,
  noun TEXT NOT NULL,
  name TEXT NOT NULL,
  query TEXT NOT NULL,
  shared @bool NOT NULL
) @strict;
CREATE INDEX saved_view_business ON saved_view (business_id, id);
CREATE UNIQUE INDEX saved_view_name ON saved_view (business_id, account_id, noun, name);
