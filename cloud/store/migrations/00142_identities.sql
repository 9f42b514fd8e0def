-- +goose Up
-- People at the sign-in providers of businesses, with the accounts that they have here.
CREATE TABLE identity (
  business_id @int NOT NULL,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  account_id @int NOT NULL,
  created_at @int NOT NULL,
  PRIMARY KEY (business_id, issuer, subject)
) @keyed;
CREATE UNIQUE INDEX identity_account ON identity (account_id, issuer);
