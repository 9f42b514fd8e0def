-- +goose Up
-- What staff decide about events of timelines (cloud.Review).
CREATE TABLE review (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  tracking_number TEXT NOT NULL,
  shipment_id @int NOT NULL,
  package_id @int NOT NULL,
  provider_id @int NOT NULL,
  event_id TEXT NOT NULL,
  status_code TEXT NOT NULL,
  occurred_at @int,
  given TEXT NOT NULL,
  dispute_kind TEXT NOT NULL,
  note TEXT NOT NULL,
  ends_at @int,
  action TEXT NOT NULL,
  reason TEXT NOT NULL,
  decided_by @int NOT NULL,
  decided_at @int
) @strict;
CREATE INDEX review_business ON review (business_id, id);
CREATE INDEX review_status ON review (business_id, status, id);
CREATE INDEX review_shipment ON review (business_id, shipment_id);
CREATE INDEX review_provider ON review (business_id, provider_id, status);
CREATE INDEX review_end ON review (ends_at) WHERE status = 'open';
