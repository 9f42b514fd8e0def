-- +goose Up
-- What a delivery is for: empty, send or return; who brings it, JSON; and the delivery whose packages a return brings back.
ALTER TABLE delivery ADD COLUMN purpose TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN returns_id @int NOT NULL DEFAULT 0;
