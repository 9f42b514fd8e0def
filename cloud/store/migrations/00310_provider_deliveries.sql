-- +goose NO TRANSACTION
-- +goose Up
-- Lists of a provider's deliveries by state and by the time of their creation.
DROP INDEX @beside IF EXISTS delivery_provider_status;
CREATE INDEX @beside delivery_provider_status ON delivery (provider_id, status, id);
DROP INDEX @beside IF EXISTS delivery_provider_created;
CREATE INDEX @beside delivery_provider_created ON delivery (provider_id, created_at, id);
