-- +goose NO TRANSACTION
-- +goose Up
-- Pickup points of a business, in the order of their names.
DROP INDEX @beside IF EXISTS device_public;
CREATE INDEX @beside device_public ON device (business_id, name, id) WHERE public;
