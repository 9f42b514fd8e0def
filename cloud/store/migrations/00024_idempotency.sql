-- +goose Up
-- What repeats of a call are answered, for a day. The id is a digest of caller,
-- address and key; the answer is sealed.
CREATE TABLE call_answer (
  id @bytes PRIMARY KEY,
  request @bytes NOT NULL,
  at @int NOT NULL,
  running_until @int,
  answer @bytes NOT NULL
) @keyed;
CREATE INDEX call_answer_at ON call_answer (at);
