-- +goose Up

-- A package of a delivery may be one of an order's, or with package 0 the whole
-- order. 0: it has a timeline of its own.
ALTER TABLE package ADD COLUMN order_id @int NOT NULL DEFAULT 0;
ALTER TABLE package ADD COLUMN order_package_id @int NOT NULL DEFAULT 0;
