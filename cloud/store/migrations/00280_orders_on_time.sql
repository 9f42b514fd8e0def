-- +goose NO TRANSACTION
-- +goose Up
-- Delivered orders of a day are counted by when they were delivered in the index alone.
DROP INDEX @beside IF EXISTS orders_day_status;
CREATE INDEX @beside orders_day_status ON orders (business_id, scheduled_date, status_id, status_at);
DROP INDEX @beside IF EXISTS orders_day;
