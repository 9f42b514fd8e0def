-- +goose Up
-- Keys have an id; logins have 0. Empty lists are stored as null.
ALTER TABLE token ADD COLUMN id @int NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN scopes TEXT NOT NULL DEFAULT 'null';
ALTER TABLE token ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN ip_allowlist TEXT NOT NULL DEFAULT 'null';
CREATE UNIQUE INDEX token_id ON token (id) WHERE id <> 0;

CREATE INDEX account_business ON account (business_id, id);

-- Order families whose prices a customer does not see.
ALTER TABLE account ADD COLUMN price_hidden TEXT NOT NULL DEFAULT 'null';

-- A business's own settings, as JSON.
ALTER TABLE business ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
