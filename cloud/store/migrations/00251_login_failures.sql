-- +goose Up
-- Failed logins by the digest of the email that was given, whether an account has it or
-- not: all processes count together.
CREATE TABLE login_failure (
  key @bytes PRIMARY KEY,
  times TEXT NOT NULL,
  locked_until @int,
  over_at @int NOT NULL
) @strict;
CREATE INDEX login_failure_over ON login_failure (over_at);
