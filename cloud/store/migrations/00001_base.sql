-- +goose Up

CREATE TABLE id_block (
  kind TEXT PRIMARY KEY,
  next @int NOT NULL
) @keyed;

CREATE TABLE business (
  id @int PRIMARY KEY,
  code TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  timezone TEXT NOT NULL,
  support_phone TEXT NOT NULL,
  support_email TEXT NOT NULL
) @strict;

CREATE TABLE provider (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  code TEXT NOT NULL,
  name TEXT NOT NULL,
  services TEXT NOT NULL,
  livemode_allowed @bool NOT NULL,
  created_at @int,
  UNIQUE (business_id, code)
) @strict;

CREATE TABLE account (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  type TEXT NOT NULL,
  email TEXT NOT NULL,
  name TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  provider_id @int NOT NULL,
  locale TEXT NOT NULL,
  enabled @bool NOT NULL,
  created_at @int
) @strict;
CREATE UNIQUE INDEX account_email ON account (email) WHERE email <> '';

CREATE TABLE token (
  hash @bytes PRIMARY KEY,
  account_id @int NOT NULL,
  name TEXT NOT NULL,
  created_at @int,
  expires_at @int,
  revoked_at @int
) @keyed;
CREATE INDEX token_account ON token (account_id);

CREATE TABLE endpoint (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  provider_id @int NOT NULL,
  kind TEXT NOT NULL,
  url TEXT NOT NULL,
  sandbox_url TEXT NOT NULL,
  sandbox_enabled @bool NOT NULL,
  events TEXT NOT NULL,
  secret @bytes,
  secret_next @bytes,
  next_until @int,
  enabled @bool NOT NULL,
  status TEXT NOT NULL,
  status_since @int,
  created_at @int
) @strict;
CREATE INDEX endpoint_provider ON endpoint (provider_id, id);

CREATE TABLE device (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  code TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  address TEXT NOT NULL,
  latitude @real NOT NULL,
  longitude @real NOT NULL,
  timezone TEXT NOT NULL,
  protocol TEXT NOT NULL,
  disabled @bool NOT NULL,
  livemode @bool NOT NULL,
  owner_provider_id @int NOT NULL,
  created_at @int,
  secret_mac @bytes,
  sealed_code @bytes,
  enrolled_at @int,
  config @bytes,
  config_version @int NOT NULL,
  code_list @int NOT NULL
) @strict;
CREATE INDEX device_business ON device (business_id, id);

-- What a device last said, apart from the device: it is written with every
-- batch, and the device row carries its configuration.
CREATE TABLE device_seen (
  device_id @int PRIMARY KEY,
  applied @int NOT NULL,
  codes_held @int NOT NULL,
  firmware TEXT NOT NULL,
  last_seen_at @int,
  last_placed @int,
  status_at @int,
  status_end0 @int NOT NULL,
  status_end1 @int NOT NULL,
  status_epoch @bytes
) @strict;

CREATE TABLE device_session (
  device_id @int PRIMARY KEY,
  generation @int NOT NULL,
  node TEXT NOT NULL,
  online @bool NOT NULL,
  instance TEXT NOT NULL,
  instances TEXT NOT NULL,
  connected_at @int,
  last_seen_at @int
) @strict;

CREATE TABLE epoch (
  epoch @bytes PRIMARY KEY,
  device_id @int NOT NULL,
  prev @bytes,
  is_current @bool NOT NULL,
  opened_at @int,
  closed_at @int
) @keyed;
CREATE UNIQUE INDEX epoch_current ON epoch (device_id) WHERE is_current;

CREATE TABLE lane (
  device_id @int NOT NULL,
  epoch @bytes NOT NULL,
  lane @int NOT NULL,
  next @int NOT NULL,
  head @bytes NOT NULL,
  PRIMARY KEY (device_id, epoch, lane)
) @keyed;

CREATE TABLE journal (
  n @serial,
  device_id @int NOT NULL,
  epoch @bytes NOT NULL,
  lane @int NOT NULL,
  first @int NOT NULL,
  count @int NOT NULL,
  received_at @int,
  aside TEXT NOT NULL,
  head @bytes NOT NULL,
  bytes @bytes NOT NULL
) @strict;
CREATE UNIQUE INDEX journal_range ON journal (device_id, epoch, lane, first) WHERE aside = '';
CREATE INDEX journal_aside ON journal (device_id, n) WHERE aside <> '';

CREATE TABLE gap (
  device_id @int NOT NULL,
  epoch @bytes NOT NULL,
  lane @int NOT NULL,
  first @int NOT NULL,
  last @int NOT NULL,
  reason TEXT NOT NULL,
  missing @int NOT NULL,
  head @bytes NOT NULL,
  PRIMARY KEY (device_id, epoch, lane, first)
) @keyed;

CREATE TABLE device_exception (
  n @serial,
  device_id @int NOT NULL,
  type TEXT NOT NULL,
  detail TEXT NOT NULL,
  count @int NOT NULL,
  opened_at @int,
  seen_at @int,
  closed_at @int
) @strict;
CREATE UNIQUE INDEX device_exception_open ON device_exception (device_id, type) WHERE closed_at IS NULL;
CREATE INDEX device_exception_device ON device_exception (device_id, n);

CREATE TABLE enrolment (
  hash @bytes PRIMARY KEY,
  device_id @int NOT NULL,
  expires_at @int,
  used_at @int
) @keyed;

CREATE TABLE command (
  id TEXT PRIMARY KEY,
  device_id @int NOT NULL,
  opening_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  body @bytes,
  versions TEXT NOT NULL,
  issued_at @int,
  expires_at @int,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  doors TEXT NOT NULL,
  sent_at @int,
  ended_at @int
) @keyed;
CREATE INDEX command_open ON command (device_id, id) WHERE state IN ('queued', 'sent', 'accepted');

CREATE TABLE code_entry (
  device_id @int NOT NULL,
  number @int NOT NULL,
  delivery_id @int NOT NULL,
  entry @bytes NOT NULL,
  created_at @int,
  dropped_at @int,
  PRIMARY KEY (device_id, number)
) @keyed;
CREATE INDEX code_entry_delivery ON code_entry (delivery_id, device_id, number);
CREATE INDEX code_entry_live ON code_entry (device_id, number) WHERE dropped_at IS NULL;

CREATE TABLE shelf (
  device_id @int NOT NULL,
  position @int NOT NULL,
  code TEXT NOT NULL,
  PRIMARY KEY (device_id, position, code),
  UNIQUE (device_id, code)
) @keyed;

CREATE TABLE compartment (
  grid_id @int PRIMARY KEY,
  device_id @int NOT NULL,
  door @int NOT NULL,
  grid_code TEXT NOT NULL,
  shelf_code TEXT NOT NULL,
  pickup_number @int NOT NULL,
  label TEXT NOT NULL,
  col @int NOT NULL,
  lin @int NOT NULL,
  size TEXT NOT NULL,
  width @real NOT NULL,
  height @real NOT NULL,
  depth @real NOT NULL,
  pickup_enabled @bool NOT NULL,
  door_status TEXT NOT NULL,
  occupied @bool,
  state TEXT NOT NULL,
  block_reason TEXT NOT NULL,
  delivery_id @int NOT NULL,
  version @int NOT NULL,
  opening_id TEXT NOT NULL,
  UNIQUE (device_id, door)
) @strict;

CREATE TABLE delivery (
  id @int PRIMARY KEY,
  number TEXT NOT NULL UNIQUE,
  business_id @int NOT NULL,
  provider_id @int NOT NULL,
  device_id @int NOT NULL,
  reference TEXT NOT NULL,
  request_hash @bytes,
  status TEXT NOT NULL,
  recipient TEXT NOT NULL,
  courier TEXT NOT NULL,
  notify TEXT NOT NULL,
  deliver_before @int,
  collect_within_ms @int NOT NULL,
  due_at @int,
  sealed_codes @bytes,
  pickup_assigned @bool NOT NULL,
  pickup_code_active @bool NOT NULL,
  confirmed_by TEXT NOT NULL,
  expired_kind TEXT NOT NULL,
  cancel_reason TEXT NOT NULL,
  cancelled_by TEXT NOT NULL,
  failure_code TEXT NOT NULL,
  picked_up_by TEXT NOT NULL,
  picked_up_method TEXT NOT NULL,
  corrections @int NOT NULL,
  livemode @bool NOT NULL,
  metadata TEXT,
  created_at @int,
  doors_opened_at @int,
  deposited_at @int,
  picked_up_at @int,
  expired_at @int,
  cancelled_at @int,
  failed_at @int
) @strict;
CREATE UNIQUE INDEX delivery_reference ON delivery (provider_id, reference) WHERE reference <> '';
CREATE INDEX delivery_device_open ON delivery (device_id, id)
  WHERE status IN ('created', 'doors_opened', 'delivered', 'correcting');
CREATE INDEX delivery_business ON delivery (business_id, id);
CREATE INDEX delivery_provider ON delivery (provider_id, id);

CREATE TABLE package (
  delivery_id @int NOT NULL,
  position @int NOT NULL,
  tracking_number TEXT NOT NULL,
  reference TEXT NOT NULL,
  size TEXT NOT NULL,
  weight @real NOT NULL,
  length @real NOT NULL,
  width @real NOT NULL,
  height @real NOT NULL,
  description TEXT NOT NULL,
  grid_id @int NOT NULL,
  status TEXT NOT NULL,
  failure_code TEXT NOT NULL,
  PRIMARY KEY (delivery_id, position)
) @keyed;

CREATE TABLE opening (
  id TEXT PRIMARY KEY,
  business_id @int NOT NULL,
  device_id @int NOT NULL,
  delivery_id @int NOT NULL,
  kind TEXT NOT NULL,
  requester TEXT NOT NULL,
  doors TEXT NOT NULL,
  state TEXT NOT NULL,
  end_reason TEXT NOT NULL,
  confirmed_by TEXT NOT NULL,
  told @bool NOT NULL,
  requested_at @int,
  opened_at @int,
  ends_at @int,
  ended_at @int
) @keyed;
CREATE INDEX opening_running ON opening (device_id, requested_at, id) WHERE state IN ('requested', 'running');
CREATE INDEX opening_delivery ON opening (delivery_id, requested_at, id);

CREATE TABLE device_order (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  device_id @int NOT NULL,
  grid_code TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  next_actor TEXT NOT NULL,
  delivery_id @int NOT NULL,
  tracking TEXT NOT NULL,
  reference TEXT NOT NULL,
  removal_reason TEXT NOT NULL,
  due_at @int,
  overdue_at @int,
  stored_at @int,
  ended_at @int
) @strict;
CREATE INDEX device_order_delivery ON device_order (delivery_id, id);
CREATE INDEX device_order_open ON device_order (device_id, id) WHERE ended_at IS NULL;

CREATE TABLE exception (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  device_id @int NOT NULL,
  device_order_id @int NOT NULL,
  delivery_id @int NOT NULL,
  grid_code TEXT NOT NULL,
  source TEXT NOT NULL,
  type TEXT NOT NULL,
  severity TEXT NOT NULL,
  status TEXT NOT NULL,
  resolution TEXT NOT NULL,
  note TEXT NOT NULL,
  opened_at @int,
  closed_at @int,
  closed_by TEXT NOT NULL
) @strict;
CREATE UNIQUE INDEX exception_source ON exception (device_id, source) WHERE source <> '';
CREATE INDEX exception_open ON exception (device_id, id) WHERE status = 'open';
CREATE INDEX exception_business ON exception (business_id, id);

CREATE TABLE shipment (
  id @int PRIMARY KEY,
  business_id @int NOT NULL,
  number TEXT NOT NULL,
  number_key TEXT NOT NULL UNIQUE,
  external TEXT NOT NULL,
  provider_id @int NOT NULL,
  delivery_id @int NOT NULL,
  profile TEXT NOT NULL,
  current_code TEXT NOT NULL,
  last_at @int,
  created_at @int
) @strict;
CREATE INDEX shipment_delivery ON shipment (delivery_id) WHERE delivery_id <> 0;

CREATE TABLE timeline (
  n @serial,
  shipment_id @int NOT NULL,
  business_id @int NOT NULL,
  event_id TEXT NOT NULL,
  occurred_at @int,
  event TEXT NOT NULL
) @strict;
CREATE UNIQUE INDEX timeline_event ON timeline (shipment_id, event_id);
CREATE INDEX timeline_order ON timeline (shipment_id, occurred_at);

-- The fact and its bytes, once.
CREATE TABLE outbox_event (
  event_id TEXT PRIMARY KEY,
  event TEXT NOT NULL,
  business_id @int NOT NULL,
  provider_id @int NOT NULL,
  channel TEXT NOT NULL,
  reference_type TEXT NOT NULL,
  reference_id TEXT NOT NULL,
  occurred_at @int,
  created_at @int,
  test @bool NOT NULL,
  body @bytes NOT NULL
) @strict;

-- One fact to one receiver: the work item while it is hot, its log row for
-- ever after. Event, provider and reference are copied for the log's filters.
CREATE TABLE outbox (
  id @int PRIMARY KEY,
  event_id TEXT NOT NULL,
  endpoint_id @int NOT NULL,
  business_id @int NOT NULL,
  provider_id @int NOT NULL,
  event TEXT NOT NULL,
  reference_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts @int NOT NULL,
  max_attempts @int NOT NULL,
  next_at @int,
  reason TEXT NOT NULL,
  lease_owner TEXT NOT NULL,
  lease_until @int,
  generation @int NOT NULL,
  created_at @int,
  delivered_at @int,
  replay_of @int NOT NULL
) @strict;
CREATE INDEX outbox_hot ON outbox (endpoint_id, next_at, id) WHERE state IN ('pending', 'delivering', 'retrying');
CREATE INDEX outbox_leased ON outbox (lease_owner, id) WHERE lease_owner <> '';
CREATE INDEX outbox_log ON outbox (provider_id, id);
CREATE INDEX outbox_reference ON outbox (reference_id, provider_id, id);
CREATE INDEX outbox_unsent ON outbox (provider_id, state, id) WHERE state IN ('retrying', 'failed', 'dead', 'paused');

CREATE TABLE outbox_attempt (
  delivery_id @int NOT NULL,
  attempt @int NOT NULL,
  at @int,
  url TEXT NOT NULL,
  delivery_uid TEXT NOT NULL,
  http_status @int NOT NULL,
  duration_us @int NOT NULL,
  error_code TEXT NOT NULL,
  error TEXT NOT NULL,
  request_head TEXT NOT NULL,
  answer_head TEXT NOT NULL,
  answer_body TEXT NOT NULL,
  reused @bool NOT NULL,
  repeated @bool NOT NULL,
  retry_after TEXT NOT NULL,
  PRIMARY KEY (delivery_id, attempt)
) @keyed;

CREATE TABLE audit (
  n @serial,
  business_id @int NOT NULL,
  at @int,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  detail TEXT NOT NULL
) @strict;
CREATE INDEX audit_business ON audit (business_id, n);
