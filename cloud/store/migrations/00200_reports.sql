-- +goose Up
-- What reports add up, written with the deliveries that it is about (store/report.go): in
-- each quarter of an hour deposits, collections by how long the parcel had waited, and the
-- sum of the waits in milliseconds. On PostgreSQL a quarter has several rows, so that
-- transactions seldom wait for each other.
CREATE TABLE report_slot (
  business_id @int NOT NULL,
  livemode @bool NOT NULL,
  slot @int NOT NULL,
  shard @int NOT NULL,
  deposits @int NOT NULL,
  taken0 @int NOT NULL,
  taken1 @int NOT NULL,
  taken2 @int NOT NULL,
  taken3 @int NOT NULL,
  taken4 @int NOT NULL,
  taken5 @int NOT NULL,
  taken6 @int NOT NULL,
  waited @int NOT NULL,
  PRIMARY KEY (business_id, livemode, slot, shard)
) @keyed;
CREATE INDEX report_slot_walk ON report_slot (business_id, slot);

INSERT INTO report_slot (business_id, livemode, slot, shard, deposits, taken0, taken1, taken2, taken3, taken4, taken5, taken6, waited)
SELECT business_id, livemode, slot, shard, SUM(deposit), SUM(CASE WHEN taken = 1 AND w < 3600000 THEN 1 ELSE 0 END), SUM(CASE WHEN taken = 1 AND w >= 3600000 AND w < 14400000 THEN 1 ELSE 0 END), SUM(CASE WHEN taken = 1 AND w >= 14400000 AND w < 43200000 THEN 1 ELSE 0 END), SUM(CASE WHEN taken = 1 AND w >= 43200000 AND w < 86400000 THEN 1 ELSE 0 END), SUM(CASE WHEN taken = 1 AND w >= 86400000 AND w < 172800000 THEN 1 ELSE 0 END), SUM(CASE WHEN taken = 1 AND w >= 172800000 AND w < 259200000 THEN 1 ELSE 0 END), SUM(CASE WHEN taken = 1 AND w >= 259200000 THEN 1 ELSE 0 END), SUM(w) FROM (
  SELECT business_id, livemode, deposited_at / 900000 AS slot, id % @shards AS shard, 1 AS deposit, 0 AS w, 0 AS taken FROM delivery WHERE deposited_at IS NOT NULL
  UNION ALL SELECT business_id, livemode, picked_up_at / 900000, id % @shards, 0, picked_up_at - deposited_at, 1 FROM delivery WHERE picked_up_at IS NOT NULL AND deposited_at IS NOT NULL) AS happened
GROUP BY business_id, livemode, slot, shard;

-- From when to when a cabinet had no connection, for a minute or longer.
CREATE TABLE connection_gap (
  business_id @int NOT NULL,
  ended_at @int NOT NULL,
  device_id @int NOT NULL,
  began_at @int NOT NULL,
  PRIMARY KEY (business_id, ended_at, device_id)
) @keyed;

-- Orders of a day by state, and compartments of a cabinet by state, are counted in these.
CREATE INDEX orders_day ON orders (business_id, scheduled_date, status_id);
CREATE INDEX compartment_state ON compartment (device_id, state, col, pickup_enabled);
