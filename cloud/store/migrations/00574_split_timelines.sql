-- +goose NO TRANSACTION
-- +goose Up
-- Whether a timeline has an event about one package alone.
DROP INDEX @beside IF EXISTS timeline_package;
CREATE INDEX @beside timeline_package ON timeline (shipment_id) WHERE package_id <> 0;
