-- +goose NO TRANSACTION
-- +goose Up
-- The returns of one delivery.
DROP INDEX @beside IF EXISTS delivery_returns;
CREATE INDEX @beside delivery_returns ON delivery (returns_id, id) WHERE returns_id <> 0;
