-- +goose Up
-- Jobs over records and files, beside those that make the orders of a batch: which
-- operation they run, what the check of their rows found, and which node works on them.
ALTER TABLE order_job ADD COLUMN account_id @int NOT NULL DEFAULT 0;
ALTER TABLE order_job ADD COLUMN operation TEXT NOT NULL DEFAULT '';
ALTER TABLE order_job ADD COLUMN lease_owner TEXT NOT NULL DEFAULT '';
ALTER TABLE order_job ADD COLUMN lease_until @int;
CREATE INDEX order_job_business ON order_job (business_id, id);
CREATE INDEX order_job_account ON order_job (business_id, account_id, id);
CREATE INDEX order_job_work ON order_job (created_at, id) WHERE operation <> '' AND finished_at IS NULL;
ALTER TABLE order_job_row ADD COLUMN checked @bytes;
ALTER TABLE order_job_row ADD COLUMN bad @bool NOT NULL DEFAULT FALSE;
CREATE INDEX order_job_row_unchecked ON order_job_row (job_id, row_number) WHERE checked IS NULL;
CREATE INDEX order_job_row_failed ON order_job_row (job_id, row_number) WHERE failed;
CREATE INDEX order_job_row_bad ON order_job_row (job_id, row_number) WHERE bad;

-- What a line of a file made is made once, whichever job does it.
CREATE TABLE job_key (
  business_id @int NOT NULL,
  key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  PRIMARY KEY (business_id, key)
) @keyed;
CREATE INDEX job_key_job ON job_key (job_id);

-- The columns of files that a business imports, as people matched them.
CREATE TABLE file_column (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  noun TEXT NOT NULL,
  header TEXT NOT NULL,
  path TEXT NOT NULL
) @strict;
CREATE INDEX file_column_business ON file_column (business_id, id);
CREATE UNIQUE INDEX file_column_header ON file_column (business_id, noun, header);
