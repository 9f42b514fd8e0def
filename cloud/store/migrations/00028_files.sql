-- +goose Up
-- Files that are kept outside of the database and still needed. The shard is
-- the folder that a file lies in.
CREATE TABLE kept_file (
  path TEXT PRIMARY KEY,
  shard TEXT NOT NULL,
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  at @int
) @strict;
CREATE INDEX kept_file_shard ON kept_file (shard);
CREATE INDEX kept_file_order ON kept_file (business_id, order_id) WHERE order_id <> 0;

-- Orders that need somebody: those that stopped, and those that are still to be
-- done, by day.
ALTER TABLE orders ADD COLUMN status_at @int;
UPDATE orders SET status_at = updated_at;
CREATE INDEX orders_stopped ON orders (business_id, status_at, id) WHERE status_id IN (3, 22, 42, 43, 45, 48);
CREATE INDEX orders_open ON orders (business_id, scheduled_date, id) WHERE status_id IN (1, 2, 4, 10, 11, 12, 13, 20, 21, 23, 30, 31, 32, 33, 40, 44);
