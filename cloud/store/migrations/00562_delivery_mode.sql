-- +goose NO TRANSACTION
-- +goose Up
-- Live deliveries of a business, or its tests, alone.
DROP INDEX @beside IF EXISTS delivery_business_mode;
CREATE INDEX @beside delivery_business_mode ON delivery (business_id, livemode, id);
