-- +goose Up
-- Changes of timelines, in the order in which they became readable. An epoch begins when the
-- database is recovered to an earlier moment, where transactions and rows count from lower
-- numbers again. The subject is an event's id, of an estimate its value.
CREATE TABLE feed_change (
  n @serial,
  epoch @int NOT NULL,
  transaction_id @int NOT NULL,
  business_id @int NOT NULL,
  shipment_id @int NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  at @int NOT NULL
) @strict;
CREATE INDEX feed_change_order ON feed_change (business_id, epoch, transaction_id, n);
