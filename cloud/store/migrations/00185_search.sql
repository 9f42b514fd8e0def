-- +goose Up
-- Deliveries and accounts are found by how what people know them by begins
-- (store/find.go), byte for byte in small letters.
CREATE INDEX delivery_find_number ON delivery (business_id, (LOWER(number) @bytewise), id);
CREATE INDEX delivery_find_reference ON delivery (business_id, (LOWER(reference) @bytewise), id) WHERE reference <> '';
CREATE INDEX package_find ON package ((LOWER(tracking_number)), delivery_id) WHERE tracking_number <> '';
CREATE INDEX account_find_name ON account (business_id, type, (LOWER(name) @bytewise), id);
CREATE INDEX account_find_email ON account (business_id, type, (LOWER(email) @bytewise), id) WHERE email <> '';
