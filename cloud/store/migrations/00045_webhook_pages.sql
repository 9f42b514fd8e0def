-- +goose Up
-- The delivery log of a business has all channels. Of the account channel there
-- are indexes; these are the same of its partners' channels, and of one receiver.
CREATE INDEX outbox_partner ON outbox (business_id, created_at, id) WHERE provider_id <> 0;
CREATE INDEX outbox_partner_event ON outbox (business_id, event, created_at, id) WHERE provider_id <> 0;
CREATE INDEX outbox_partner_unsent ON outbox (business_id, state, created_at, id) WHERE provider_id <> 0 AND state IN ('retrying', 'failed', 'dead', 'paused');
CREATE INDEX outbox_receiver ON outbox (business_id, endpoint_id, created_at, id);
