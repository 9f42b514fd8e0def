-- +goose Up
-- Pictures that devices have taken.
CREATE TABLE device_photo (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  device_id @int NOT NULL,
  name TEXT NOT NULL,
  door @int NOT NULL,
  opening_id TEXT NOT NULL,
  taken_at @int NOT NULL,
  path TEXT NOT NULL
) @strict;
CREATE INDEX device_photo_business ON device_photo (business_id, id);
CREATE INDEX device_photo_device ON device_photo (business_id, device_id, door, id);
CREATE UNIQUE INDEX device_photo_name ON device_photo (name);
CREATE INDEX device_photo_age ON device_photo (created_at);
