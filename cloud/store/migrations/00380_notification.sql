-- +goose Up
-- Rows of mail are notifications of any channel since.
ALTER TABLE mail ADD COLUMN provider_id @int NOT NULL DEFAULT 0;
ALTER TABLE mail ADD COLUMN delivery_id @int NOT NULL DEFAULT 0;
ALTER TABLE mail ADD COLUMN channel TEXT NOT NULL DEFAULT 'email';
