-- +goose Up

-- Wrong digits that were given as proof of being a parcel's recipient, by shipment.
CREATE TABLE proof_guess (
  shipment_id  @int PRIMARY KEY,
  business_id  @int NOT NULL,
  number       TEXT NOT NULL,
  wrong        @int NOT NULL, -- since the last lock
  total        @int NOT NULL,
  locks        @int NOT NULL,
  locked_at    @int,
  locked_until @int
);
CREATE INDEX proof_guess_locked ON proof_guess (business_id, locked_at) WHERE locked_at IS NOT NULL;
