-- +goose Up
-- One person may work for several businesses: an email has one account in each.
DROP INDEX account_email;
CREATE UNIQUE INDEX account_email ON account (email, business_id) WHERE email <> '';
