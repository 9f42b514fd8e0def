-- +goose Up

-- A device's own public key; NULL: it has none.
ALTER TABLE device ADD COLUMN up_key @bytes;
-- Counts up when the numbers of the code list may go back.
ALTER TABLE device ADD COLUMN code_generation @int NOT NULL DEFAULT 1;

-- The generation of the list that the device holds, and until when its keypad
-- takes no typed codes.
ALTER TABLE device_seen ADD COLUMN held_generation @int NOT NULL DEFAULT 0;
ALTER TABLE device_seen ADD COLUMN typed_locked @int;

-- How the cabinet and the cloud disagree about what lies in a compartment, JSON;
-- empty: they do not.
ALTER TABLE compartment ADD COLUMN dispute TEXT NOT NULL DEFAULT '';

-- The bounds of a deposit that was not seen; NULL: it was.
ALTER TABLE delivery ADD COLUMN deposited_earliest @int;
ALTER TABLE delivery ADD COLUMN deposited_latest @int;

CREATE INDEX device_exception_type ON device_exception (type) WHERE closed_at IS NULL;
