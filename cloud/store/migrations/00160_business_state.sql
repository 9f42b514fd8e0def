-- +goose Up
-- Every business has a state, at which a suspension waits for decisions that its people
-- have begun.
INSERT INTO business_state (business_id, suspended_at, reason, suspended_by, limits)
SELECT id, NULL, '', 0, '{}' FROM business WHERE id > 0 AND NOT EXISTS (SELECT 1 FROM business_state s WHERE s.business_id = business.id);
