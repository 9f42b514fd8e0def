-- +goose Up

-- Tracking numbers that were replaced. Owners still find the order by them.
CREATE TABLE former_number (
  number_key  TEXT PRIMARY KEY,
  business_id @int NOT NULL,
  order_id    @int NOT NULL
);
CREATE INDEX former_number_order ON former_number (business_id, order_id);
