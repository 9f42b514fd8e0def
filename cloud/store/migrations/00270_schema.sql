-- +goose Up
-- Which programs may run on these tables: those whose newest migration has this number or
-- a greater one. A migration that older programs cannot live with raises it.
CREATE TABLE schema_oldest (number @int NOT NULL) @strict;
INSERT INTO schema_oldest (number) VALUES (250);
-- How far migrations that fill rows in steps are: the key of the last row.
CREATE TABLE schema_fill (
  number @int PRIMARY KEY,
  key @int NOT NULL,
  filled @int NOT NULL
) @strict;
-- The newest migration that a process knows. Programs that do not write it are older.
ALTER TABLE node ADD COLUMN schema_number @int NOT NULL DEFAULT 250;
