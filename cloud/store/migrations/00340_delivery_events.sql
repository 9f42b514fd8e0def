-- +goose NO TRANSACTION
-- +goose Up
-- Events of locker deliveries are kept whether or not a receiver wanted them: a provider lists
-- those of a delivery, and old ones go.
DROP INDEX @beside IF EXISTS outbox_event_delivery;
CREATE INDEX @beside outbox_event_delivery ON outbox_event (reference_id, sequence) WHERE reference_type = 'locker_delivery';
DROP INDEX @beside IF EXISTS outbox_event_delivery_at;
CREATE INDEX @beside outbox_event_delivery_at ON outbox_event (created_at) WHERE reference_type = 'locker_delivery';
