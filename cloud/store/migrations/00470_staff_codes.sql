-- +goose Up
CREATE TABLE staff_code (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  account_id @int NOT NULL,
  day TEXT NOT NULL,
  starts_at @int NOT NULL,
  ends_at @int NOT NULL,
  sealed @bytes NOT NULL,
  dropped_at @int
) @strict;
CREATE INDEX staff_code_business ON staff_code (business_id, id);
CREATE INDEX staff_code_live ON staff_code (ends_at) WHERE dropped_at IS NULL;

CREATE TABLE staff_code_holder (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  created_at @int NOT NULL,
  updated_at @int NOT NULL,
  account_id @int NOT NULL
) @strict;
CREATE INDEX staff_code_holder_business ON staff_code_holder (business_id, id);
CREATE UNIQUE INDEX staff_code_holder_account ON staff_code_holder (account_id);

-- How often the staff codes of a business have changed, when the next are drawn, and which
-- of these changes are on a cabinet's code list.
CREATE TABLE staff_rota (
  business_id @int NOT NULL PRIMARY KEY,
  version @int NOT NULL,
  next_at @int NOT NULL
) @strict;
CREATE INDEX staff_rota_next ON staff_rota (next_at);
CREATE TABLE staff_list (
  device_id @int NOT NULL PRIMARY KEY,
  version @int NOT NULL,
  number @int NOT NULL
) @strict;

-- The staff code that an entry of a code list is for; 0: it is a delivery's.
ALTER TABLE code_entry ADD COLUMN staff_code_id @int NOT NULL DEFAULT 0;
