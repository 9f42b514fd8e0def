-- +goose NO TRANSACTION
-- +goose Up
-- Deliveries that hold packages of an order.
DROP INDEX @beside IF EXISTS package_order;
CREATE INDEX @beside package_order ON package (order_id, delivery_id) WHERE order_id <> 0;
