-- +goose NO TRANSACTION
-- +goose Up
-- Notifications of a delivery, and the inbox of the sandbox by business and by provider.
DROP INDEX @beside IF EXISTS mail_delivery;
CREATE INDEX @beside mail_delivery ON mail (delivery_id, n) WHERE delivery_id > 0;
DROP INDEX @beside IF EXISTS mail_sandbox;
CREATE INDEX @beside mail_sandbox ON mail (business_id, n) WHERE state = 'sandbox';
DROP INDEX @beside IF EXISTS mail_sandbox_provider;
CREATE INDEX @beside mail_sandbox_provider ON mail (provider_id, n) WHERE state = 'sandbox';
DROP INDEX @beside IF EXISTS mail_sandbox_old;
CREATE INDEX @beside mail_sandbox_old ON mail (at, n) WHERE state = 'sandbox';
-- Those about deliveries that are none of the sandbox, by business, by provider, and of each by state.
DROP INDEX @beside IF EXISTS mail_live;
CREATE INDEX @beside mail_live ON mail (business_id, n) WHERE state <> 'sandbox' AND delivery_id > 0;
DROP INDEX @beside IF EXISTS mail_live_state;
CREATE INDEX @beside mail_live_state ON mail (business_id, state, n) WHERE state <> 'sandbox' AND delivery_id > 0;
DROP INDEX @beside IF EXISTS mail_live_provider;
CREATE INDEX @beside mail_live_provider ON mail (provider_id, n) WHERE state <> 'sandbox' AND delivery_id > 0;
DROP INDEX @beside IF EXISTS mail_live_provider_state;
CREATE INDEX @beside mail_live_provider_state ON mail (provider_id, state, n) WHERE state <> 'sandbox' AND delivery_id > 0;
-- What waits, by channel.
DROP INDEX @beside IF EXISTS mail_waiting;
CREATE INDEX @beside mail_waiting ON mail (channel, next_at, n) WHERE state = 'waiting';
DROP INDEX @beside IF EXISTS mail_due;
