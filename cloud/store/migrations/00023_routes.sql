-- +goose Up
-- Routes. The body is the whole route; phase is the part of its status that it
-- decides itself, its orders' stops tell the rest.
CREATE TABLE route (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  broker_id @int NOT NULL,
  driver_id @int NOT NULL,
  date TEXT NOT NULL,
  name TEXT NOT NULL,
  phase TEXT NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE INDEX route_business ON route (business_id, id);
CREATE INDEX route_date ON route (business_id, date, id);
CREATE INDEX route_driver ON route (business_id, driver_id, id) WHERE driver_id <> 0;
CREATE INDEX route_broker ON route (business_id, broker_id, id) WHERE broker_id <> 0;

-- Stops of an order on routes, written from the order's body with it.
CREATE TABLE route_stop (
  order_id @int NOT NULL,
  n @int NOT NULL,
  business_id @int NOT NULL,
  route_id @int NOT NULL,
  pending @bool NOT NULL,
  PRIMARY KEY (order_id, n)
) @strict;
CREATE INDEX route_stop_route ON route_stop (business_id, route_id, order_id);

CREATE INDEX orders_driver ON orders (business_id, driver_id, id) WHERE driver_id <> 0;

-- What is kept of drivers beside their accounts.
CREATE TABLE driver (
  account_id @int PRIMARY KEY,
  business @int NOT NULL,
  broker_id @int NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE INDEX driver_broker ON driver (business, broker_id, account_id) WHERE broker_id <> 0;
