-- +goose Up
-- Lists of a business's deliveries and exceptions by state and by cabinet.
CREATE INDEX delivery_business_status ON delivery (business_id, status, id);
CREATE INDEX delivery_business_device ON delivery (business_id, device_id, id);
CREATE INDEX exception_business_status ON exception (business_id, status, id);
CREATE INDEX exception_business_device ON exception (business_id, device_id, id);
