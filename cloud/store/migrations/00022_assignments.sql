-- +goose Up
-- Orders that are handed to one contractor. Rows stay when their order is deleted.
CREATE TABLE broker_assignment (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  broker_id @int NOT NULL,
  status TEXT NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE UNIQUE INDEX broker_assignment_active ON broker_assignment (order_id) WHERE status = 'active';
CREATE INDEX broker_assignment_business ON broker_assignment (business_id, id);
CREATE INDEX broker_assignment_broker ON broker_assignment (business_id, broker_id, id);
CREATE INDEX broker_assignment_order ON broker_assignment (business_id, order_id, id);
