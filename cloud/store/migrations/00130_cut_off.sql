-- +goose Up
-- When a cabinet was cut off last: certificates and enrolment tokens that were
-- made before count for nothing.
ALTER TABLE device ADD COLUMN cut_off_at @int;
