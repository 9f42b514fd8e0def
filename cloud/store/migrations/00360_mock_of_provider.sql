-- +goose NO TRANSACTION
-- +goose Up
-- The mock cabinet of a provider.
DROP INDEX @beside IF EXISTS device_mock;
CREATE UNIQUE INDEX @beside device_mock ON device (owner_provider_id) WHERE protocol = 'mock';
