-- +goose Up
-- Receivers of the account channel: customer_id 0 is the business's own level.
CREATE TABLE webhook_setting (
  business_id @int NOT NULL,
  customer_id @int NOT NULL,
  secret @bytes,
  secret_next @bytes,
  next_until @int,
  body TEXT NOT NULL,
  PRIMARY KEY (business_id, customer_id)
) @keyed;

ALTER TABLE endpoint ADD COLUMN customer_id @int NOT NULL DEFAULT 0;
CREATE INDEX endpoint_account ON endpoint (business_id, id) WHERE provider_id = 0;

-- Which setting named the receiver, and of whose level that is.
ALTER TABLE outbox ADD COLUMN setting TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN customer_id @int NOT NULL DEFAULT 0;
CREATE INDEX outbox_account ON outbox (business_id, id) WHERE provider_id = 0;
CREATE INDEX outbox_account_customer ON outbox (business_id, customer_id, id) WHERE provider_id = 0 AND customer_id <> 0;
