-- +goose Up

-- Providers that were made before the right was enforced keep their live cabinets.
UPDATE provider SET livemode_allowed = (1 = 1);
