-- +goose NO TRANSACTION
-- +goose Up
-- Lists of a business's device orders: all, by state, by cabinet, and those of one reference number.
DROP INDEX @beside IF EXISTS device_order_business;
CREATE INDEX @beside device_order_business ON device_order (business_id, id);
DROP INDEX @beside IF EXISTS device_order_business_status;
CREATE INDEX @beside device_order_business_status ON device_order (business_id, status, id);
DROP INDEX @beside IF EXISTS device_order_business_device;
CREATE INDEX @beside device_order_business_device ON device_order (business_id, device_id, id);
DROP INDEX @beside IF EXISTS device_order_business_reference;
CREATE INDEX @beside device_order_business_reference ON device_order (business_id, reference, id);
-- The exceptions about one delivery.
DROP INDEX @beside IF EXISTS exception_delivery;
CREATE INDEX @beside exception_delivery ON exception (delivery_id, id) WHERE delivery_id > 0;
