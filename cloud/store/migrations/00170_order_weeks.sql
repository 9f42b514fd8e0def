-- +goose Up
-- Orders of a time of creation are listed by id week by week (store/orderlist.go):
-- each week has its newest orders first in this index.
CREATE INDEX orders_week ON orders (business_id, (created_at / 604800000), id, created_at);
