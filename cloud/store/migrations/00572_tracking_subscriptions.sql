-- +goose Up
-- Who subscribes to events of parcels. A subscription to everything has one parcel, without a shipment.
CREATE TABLE tracking_subscription (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  account_id @int NOT NULL,
  level TEXT NOT NULL,
  customer_id @int NOT NULL,
  provider_id @int NOT NULL,
  endpoint_id @int NOT NULL,
  everything @bool NOT NULL,
  parcels @int NOT NULL,
  events TEXT NOT NULL,
  codes TEXT NOT NULL,
  expires_at @int
) @strict;
CREATE INDEX tracking_subscription_business ON tracking_subscription (business_id, id);
CREATE INDEX tracking_subscription_expires ON tracking_subscription (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE subscribed_parcel (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  subscription_id @int NOT NULL,
  shipment_id @int NOT NULL,
  package_id @int NOT NULL,
  number TEXT NOT NULL
) @strict;
CREATE INDEX subscribed_parcel_business ON subscribed_parcel (business_id, id);
CREATE INDEX subscribed_parcel_subscription ON subscribed_parcel (subscription_id, id);
CREATE INDEX subscribed_parcel_shipment ON subscribed_parcel (business_id, shipment_id);
