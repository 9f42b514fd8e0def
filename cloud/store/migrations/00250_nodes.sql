-- +goose Up
-- Processes that share the database. A row is a lease: its beat rises every ten seconds,
-- and others remove a row whose beat stands still, with all that the process had taken up.
CREATE TABLE node (
  name TEXT NOT NULL PRIMARY KEY,
  instance TEXT NOT NULL UNIQUE,
  generation @int NOT NULL,
  address TEXT NOT NULL,
  version TEXT NOT NULL,
  schema TEXT NOT NULL,
  edge @bool NOT NULL,
  core @bool NOT NULL,
  started_at @int NOT NULL,
  beat @int NOT NULL
) @strict;
-- Which process does a background task of which one is enough.
CREATE TABLE task (
  name TEXT NOT NULL PRIMARY KEY,
  instance TEXT NOT NULL
) @strict;
CREATE INDEX command_expiring ON command (expires_at) WHERE state IN ('queued', 'sent');
