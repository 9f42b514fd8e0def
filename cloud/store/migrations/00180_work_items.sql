-- +goose Up
-- What people say about work items: who sees to one, a note, until when it is put off.
-- The items themselves are read from the rows that they are about.
CREATE TABLE work_item (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int,
  updated_at @int,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  owner_id @int NOT NULL,
  note TEXT NOT NULL,
  snooze_until @int
) @strict;
CREATE INDEX work_item_business ON work_item (business_id, id);
CREATE UNIQUE INDEX work_item_subject ON work_item (business_id, kind, subject);
-- Open exceptions by how grave they are and how long they wait.
CREATE INDEX exception_work ON exception (business_id, severity, opened_at, id) WHERE status = 'open';
