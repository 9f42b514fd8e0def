-- +goose Up
ALTER TABLE shipment ADD COLUMN link_from @int NOT NULL DEFAULT 0;
