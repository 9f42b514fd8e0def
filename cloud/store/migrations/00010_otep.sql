-- +goose Up
-- Timelines that come from partners: who may add to them, what else a parcel
-- is known by, events that their source took back, and the last word of
-- sources that only know a current status.
ALTER TABLE provider ADD COLUMN source_type TEXT NOT NULL DEFAULT 'partner';
ALTER TABLE provider ADD COLUMN scope TEXT NOT NULL DEFAULT 'own';

ALTER TABLE shipment ADD COLUMN external_key TEXT NOT NULL DEFAULT '';
ALTER TABLE shipment ADD COLUMN sscc TEXT NOT NULL DEFAULT '';
ALTER TABLE shipment ADD COLUMN piece TEXT NOT NULL DEFAULT '';
ALTER TABLE shipment ADD COLUMN estimated TEXT NOT NULL DEFAULT '';
UPDATE shipment SET external_key = upper(external);
CREATE INDEX shipment_external ON shipment (external_key) WHERE external_key <> '';
CREATE INDEX shipment_sscc ON shipment (sscc) WHERE sscc <> '';
CREATE INDEX shipment_piece ON shipment (piece) WHERE piece <> '';

ALTER TABLE timeline ADD COLUMN withdrawn_at @int;
CREATE INDEX timeline_business ON timeline (business_id, occurred_at, n);

CREATE TABLE observation (
  shipment_id @int NOT NULL,
  source TEXT NOT NULL,
  raw TEXT NOT NULL,
  code TEXT NOT NULL,
  seen_at @int,
  PRIMARY KEY (shipment_id, source)
) @strict;
