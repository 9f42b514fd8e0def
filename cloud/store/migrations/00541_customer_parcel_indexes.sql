-- +goose NO TRANSACTION
-- +goose Up
-- What waits for the recipient with a mail address.
DROP INDEX @beside IF EXISTS delivery_mail_waiting;
CREATE INDEX @beside delivery_mail_waiting ON delivery (business_id, (LOWER(TRIM(@mailto))), id) WHERE purpose = '' AND status IN ('delivered', 'expired');
-- What that recipient has collected, by when.
DROP INDEX @beside IF EXISTS delivery_mail_collected;
CREATE INDEX @beside delivery_mail_collected ON delivery (business_id, (LOWER(TRIM(@mailto))), picked_up_at, id) WHERE purpose = '' AND status = 'picked_up';
-- What the sender with a mail address is still to bring.
DROP INDEX @beside IF EXISTS delivery_mail_sender;
CREATE INDEX @beside delivery_mail_sender ON delivery (business_id, (LOWER(TRIM(@mailfrom))), id) WHERE purpose <> '' AND status IN ('created', 'doors_opened');
