-- +goose Up
-- How long each part of an attempt took, in microseconds; where it went; when
-- it was planned, and what it waited for beside its plan.
ALTER TABLE outbox_attempt ADD COLUMN dns_us @int NOT NULL DEFAULT 0;
ALTER TABLE outbox_attempt ADD COLUMN connect_us @int NOT NULL DEFAULT 0;
ALTER TABLE outbox_attempt ADD COLUMN tls_us @int NOT NULL DEFAULT 0;
ALTER TABLE outbox_attempt ADD COLUMN first_byte_us @int NOT NULL DEFAULT 0;
ALTER TABLE outbox_attempt ADD COLUMN remote_ip TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox_attempt ADD COLUMN planned_at @int;
ALTER TABLE outbox_attempt ADD COLUMN wait_reason TEXT NOT NULL DEFAULT '';

-- An address that a delivery goes to once, in place of its receiver's.
ALTER TABLE outbox ADD COLUMN url TEXT NOT NULL DEFAULT '';

-- The log is read by time. What failed and waits is little, beside what did not.
DROP INDEX outbox_account;
DROP INDEX outbox_account_customer;
DROP INDEX outbox_unsent;
DROP INDEX outbox_log;
CREATE INDEX outbox_log ON outbox (provider_id, id) WHERE provider_id <> 0;
CREATE INDEX outbox_account ON outbox (business_id, created_at, id) WHERE provider_id = 0;
CREATE INDEX outbox_account_event ON outbox (business_id, event, created_at, id) WHERE provider_id = 0;
CREATE INDEX outbox_account_customer ON outbox (business_id, customer_id, created_at, id) WHERE provider_id = 0 AND customer_id <> 0;
CREATE INDEX outbox_unsent ON outbox (business_id, state, created_at, id) WHERE provider_id = 0 AND state IN ('retrying', 'failed', 'paused');

-- Leases are found by their owner where there are several.
DROP INDEX outbox_leased;
CREATE INDEX outbox_leased ON outbox (lease_owner, id) WHERE @leased;
CREATE INDEX outbox_interrupted ON outbox (id) WHERE reason = 'interrupted';

CREATE INDEX outbox_paused ON outbox (endpoint_id, id) WHERE state = 'paused';
-- Events outlive their first deliveries while they are sent again.
CREATE INDEX outbox_again ON outbox (event_id) WHERE replay_of <> 0;

-- How a receiver is doing. failures counts since the last success.
CREATE TABLE endpoint_health (
  endpoint_id @int PRIMARY KEY,
  succeeded_at @int,
  failed_at @int,
  failing_since @int,
  failures @int NOT NULL,
  warned @int NOT NULL
) @strict;

CREATE TABLE endpoint_hour (
  endpoint_id @int NOT NULL,
  hour @int NOT NULL,
  attempts @int NOT NULL,
  failures @int NOT NULL,
  PRIMARY KEY (endpoint_id, hour)
) @keyed;

-- Deliveries that are sent again in bulk, in the order of their ids.
CREATE TABLE replay_job (
  id TEXT PRIMARY KEY,
  business_id @int NOT NULL,
  customer_id @int NOT NULL,
  status TEXT NOT NULL,
  position_at @int NOT NULL,
  position @int NOT NULL,
  sent @int NOT NULL,
  total @int NOT NULL,
  created_at @int,
  finished_at @int,
  body TEXT NOT NULL
) @strict;
CREATE INDEX replay_job_open ON replay_job (created_at, id) WHERE finished_at IS NULL;
CREATE INDEX replay_job_done ON replay_job (finished_at, id) WHERE finished_at IS NOT NULL;
