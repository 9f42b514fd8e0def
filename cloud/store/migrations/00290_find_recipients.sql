-- +goose NO TRANSACTION
-- +goose Up
-- Deliveries are found by how the name, the last name or the telephone number of their
-- recipient begins (store/find.go), byte for byte in small letters.
DROP INDEX @beside IF EXISTS delivery_find_name;
CREATE INDEX @beside delivery_find_name ON delivery (business_id, (LOWER(@called) @bytewise), id);
DROP INDEX @beside IF EXISTS delivery_find_surname;
CREATE INDEX @beside delivery_find_surname ON delivery (business_id, (LOWER(@surname) @bytewise), id);
DROP INDEX @beside IF EXISTS delivery_find_phone;
CREATE INDEX @beside delivery_find_phone ON delivery (business_id, (@digits @bytewise), id);
