-- +goose Up
CREATE TABLE site (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  name TEXT NOT NULL,
  address TEXT NOT NULL,
  timezone TEXT NOT NULL,
  hours TEXT NOT NULL
) @strict;
CREATE INDEX site_business ON site (business_id, id);
CREATE UNIQUE INDEX site_name ON site (business_id, name);

CREATE TABLE announced_package (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  provider_id @int NOT NULL,
  carrier_reference TEXT NOT NULL,
  member_number TEXT NOT NULL,
  tracking_number TEXT NOT NULL,
  recipient TEXT NOT NULL,
  site_id @int NOT NULL,
  size TEXT NOT NULL,
  weight @real NOT NULL,
  status TEXT NOT NULL,
  request_hash @bytes NOT NULL
) @strict;
CREATE INDEX announced_package_business ON announced_package (business_id, id);
CREATE UNIQUE INDEX announced_package_reference ON announced_package (business_id, provider_id, carrier_reference);
CREATE INDEX announced_package_provider ON announced_package (business_id, provider_id, id);
CREATE INDEX announced_package_member ON announced_package (business_id, provider_id, member_number, id);
CREATE INDEX announced_package_site ON announced_package (business_id, site_id, id);
