-- +goose Up
-- Lists of orders are read out of indexes: those of a customer, a contractor, a
-- driver, a warehouse, a route or of none of them have at their end what lists
-- filter and sort by (store/orderlist.go), so that orders themselves are read for
-- the page that is shown only.
DROP INDEX orders_business;
DROP INDEX orders_customer;
DROP INDEX orders_broker;
DROP INDEX orders_driver;
CREATE INDEX orders_business ON orders (business_id, id, status_id, type, scheduled_date, created_at, updated_at, priority, customer_id, broker_id, driver_id, warehouse_id, route_id);
CREATE INDEX orders_customer ON orders (business_id, customer_id, id, status_id, type, scheduled_date, created_at, updated_at, priority) WHERE customer_id <> 0;
CREATE INDEX orders_broker ON orders (business_id, broker_id, id, status_id, type, scheduled_date, created_at, updated_at, priority) WHERE broker_id <> 0;
CREATE INDEX orders_driver ON orders (business_id, driver_id, id, status_id, type, scheduled_date, created_at, updated_at, priority) WHERE driver_id <> 0;
CREATE INDEX orders_route ON orders (business_id, route_id, id) WHERE route_id <> 0;
CREATE INDEX orders_warehouse ON orders (business_id, warehouse_id, id) WHERE warehouse_id <> 0;
CREATE INDEX orders_status ON orders (business_id, status_id, id);
CREATE INDEX orders_created ON orders (business_id, created_at, id);
CREATE INDEX orders_updated ON orders (business_id, updated_at, id);
CREATE INDEX orders_priority ON orders (business_id, priority, id);
CREATE INDEX orders_type ON orders (business_id, type, id);
