-- +goose Up
-- What is said about orders: one conversation for each.
CREATE TABLE conversation (
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  id @int NOT NULL UNIQUE,
  closed_at @int,
  reopened_at @int,
  shown_at @int, -- when everybody last saw a change, NULL before they saw any
  updated_at @int, -- the same for dispatchers and drivers
  body TEXT NOT NULL,
  PRIMARY KEY (business_id, order_id)
) @keyed;
CREATE INDEX conversation_updated ON conversation (business_id, updated_at, order_id);
CREATE INDEX conversation_shown ON conversation (business_id, shown_at, order_id);
CREATE INDEX conversation_open ON conversation (business_id, order_id) WHERE closed_at IS NULL;
CREATE INDEX conversation_closed ON conversation (business_id, closed_at) WHERE closed_at IS NOT NULL;

-- How far each member has read, for lists; the member itself is in the body.
CREATE TABLE chat_member (
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  account_id @int NOT NULL, -- 0: the recipient
  read_to @int NOT NULL,
  muted @bool NOT NULL,
  gone @bool NOT NULL, -- staff took them out
  PRIMARY KEY (business_id, order_id, account_id)
) @keyed;

CREATE TABLE chat_message (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  sender_id @int NOT NULL, -- 0: the recipient, -1: the system
  client_id TEXT NOT NULL,
  staff @bool NOT NULL,
  deleted @bool NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE INDEX chat_message_order ON chat_message (business_id, order_id, id);
CREATE INDEX chat_message_shown ON chat_message (business_id, order_id, id) WHERE NOT staff;
CREATE UNIQUE INDEX chat_message_client ON chat_message (business_id, order_id, sender_id, client_id) WHERE client_id <> '';

-- Who had read up to which message, and when.
CREATE TABLE chat_read (
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  account_id @int NOT NULL,
  up_to @int NOT NULL,
  at @int NOT NULL,
  PRIMARY KEY (business_id, order_id, account_id, up_to)
) @keyed;

-- Files that no message has yet.
CREATE TABLE chat_attachment (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  order_id @int NOT NULL,
  at @int NOT NULL,
  body TEXT NOT NULL
) @strict;
CREATE INDEX chat_attachment_at ON chat_attachment (at, id);
CREATE INDEX chat_attachment_order ON chat_attachment (business_id, order_id);
