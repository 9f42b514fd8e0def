-- +goose Up
-- Lists of accounts of one kind, as customers and drivers, and of routes begin
-- behind a row in any of their orders (store/keyset.go).
CREATE INDEX account_type ON account (business_id, type, id);
CREATE INDEX account_name ON account (business_id, type, name, id);
CREATE INDEX account_address ON account (business_id, type, email, id);
CREATE INDEX account_created ON account (business_id, type, (COALESCE(created_at, 0)), id);
CREATE INDEX route_name ON route (business_id, name, id);
