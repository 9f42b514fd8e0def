-- +goose Up
-- The audit trail is read by time, of all or by who, what and what about.
CREATE INDEX audit_at ON audit (business_id, at, n);
CREATE INDEX audit_actor ON audit (business_id, actor, at, n);
CREATE INDEX audit_action ON audit (business_id, action, at, n);
CREATE INDEX audit_target ON audit (business_id, target, at, n);
