-- +goose Up
-- Orders that delivery companies carry. Rows stay when their order is deleted.
CREATE TABLE third_party_assignment (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  provider_id @int NOT NULL,
  number TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE UNIQUE INDEX third_party_assignment_open ON third_party_assignment (order_id) WHERE status IN ('created', 'handed_over');
CREATE INDEX third_party_assignment_business ON third_party_assignment (business_id, id);
CREATE INDEX third_party_assignment_provider ON third_party_assignment (business_id, provider_id, id);
CREATE INDEX third_party_assignment_order ON third_party_assignment (business_id, order_id, id);
