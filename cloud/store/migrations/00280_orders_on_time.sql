-- +goose Up
-- Delivered orders of a day are counted by when they were delivered in the index alone.
DROP INDEX orders_day;
CREATE INDEX orders_day ON orders (business_id, scheduled_date, status_id, status_at);
