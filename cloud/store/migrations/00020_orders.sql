-- +goose Up
-- Orders. The body is the whole order; columns beside it are what queries ask
-- for and are written from the same value.
CREATE TABLE orders (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  customer_id @int NOT NULL,
  number_key TEXT NOT NULL UNIQUE,
  ref TEXT NOT NULL,
  type TEXT NOT NULL,
  status_id @int NOT NULL,
  scheduled_date TEXT NOT NULL,
  priority @int NOT NULL,
  warehouse_id @int NOT NULL,
  route_id @int NOT NULL,
  driver_id @int NOT NULL,
  broker_id @int NOT NULL,
  created_at @int,
  updated_at @int,
  body TEXT NOT NULL
) @strict;
CREATE UNIQUE INDEX orders_ref ON orders (business_id, customer_id, ref) WHERE ref <> '';
CREATE INDEX orders_by_ref ON orders (business_id, ref) WHERE ref <> '';
CREATE INDEX orders_business ON orders (business_id, id);
CREATE INDEX orders_customer ON orders (business_id, customer_id, id) WHERE customer_id <> 0;
CREATE INDEX orders_broker ON orders (business_id, broker_id, id) WHERE broker_id <> 0;
CREATE INDEX orders_scheduled ON orders (business_id, scheduled_date, id);

-- By what a package is found; the package itself is in the order's body.
CREATE TABLE order_package (
  id @int PRIMARY KEY,
  order_id @int NOT NULL,
  business_id @int NOT NULL,
  number_key TEXT NOT NULL UNIQUE,
  external_key TEXT NOT NULL
) @strict;
CREATE INDEX order_package_order ON order_package (order_id);
CREATE INDEX order_package_external ON order_package (external_key) WHERE external_key <> '';

CREATE TABLE order_operation (
  n @serial,
  order_id @int NOT NULL,
  business_id @int NOT NULL,
  type @int NOT NULL,
  at @int,
  body TEXT NOT NULL
) @strict;
CREATE INDEX order_operation_order ON order_operation (business_id, order_id, n);

ALTER TABLE shipment ADD COLUMN order_id @int NOT NULL DEFAULT 0;
ALTER TABLE shipment ADD COLUMN customer_id @int NOT NULL DEFAULT 0;
CREATE INDEX shipment_order ON shipment (order_id) WHERE order_id <> 0;

-- What orders are found by in a search: a row for each order and field,
-- rowid = 8 × order + field, kept by trigrams.
@grams;

CREATE TABLE interception (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  status TEXT NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE INDEX interception_order ON interception (business_id, order_id, id);

-- Orders that are made in the background. A row without a result is still to
-- be made.
CREATE TABLE order_job (
  id TEXT PRIMARY KEY,
  business_id @int NOT NULL,
  status TEXT NOT NULL,
  created_at @int,
  finished_at @int,
  body TEXT NOT NULL
) @strict;
CREATE INDEX order_job_open ON order_job (created_at, id) WHERE finished_at IS NULL;
CREATE INDEX order_job_finished ON order_job (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE order_job_row (
  job_id TEXT NOT NULL,
  row_number @int NOT NULL,
  failed @bool NOT NULL,
  input @bytes NOT NULL,
  result @bytes,
  PRIMARY KEY (job_id, row_number)
) @strict;
CREATE INDEX order_job_row_open ON order_job_row (job_id, row_number) WHERE result IS NULL;
