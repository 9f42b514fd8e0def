package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// Deliveries are found by their recipient through an index, however many there are: a
// million in the full ring.
func TestRecipientsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	n := int64(ring.Count(20_000, 1_000_000))
	from := strings.NewReplacer("id, number,", "i, 'LD-' || i,", " recipient,", ` '{"name":"Person' || i || ' Of Family' || (i % 5000) || '","phone":"+1 (416) ' || i || '"}',`).Replace(deliveryColumns)
	fill := ` INSERT INTO delivery (` + deliveryColumns + `) SELECT ` + from + ` FROM s CROSS JOIN delivery d WHERE d.id = 1`
	test := func(t *testing.T, db *DB, exec func(sql string, args ...any) error, series string, plan func(sql string, args ...any) string) {
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{Unaudited: true, LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{{ID: 1, Number: "LD-1", BusinessID: 1, ProviderID: 1, DeviceID: 1, Status: cloud.DeliveryCreated, CreatedAt: time.Now()}}}}, nil
		}))
		require.NoError(t, exec(series+fill, n))
		require.NoError(t, exec("ANALYZE delivery"))
		for sql, index := range map[string]string{sqlFindByRecipient: "delivery_find_name", sqlFindBySurname: "delivery_find_surname", sqlFindByPhone: "delivery_find_phone"} {
			text := plan(sql, int64(1), "141677", lastCharacter, int64(6))
			require.Contains(t, text, index)
			require.NotRegexp(t, "Sort|TEMP B-TREE", text)
		}
		require.NotRegexp(t, "Seq Scan|SCAN delivery", plan(sqlFindByRecipientPart, int64(1), "%family77%", "", int64(6)))
		for text, first := range map[string]cloud.DeliveryID{"PERSON777 of": 777, "family777": cloud.DeliveryID(n - 5000 + 777), "+1-416-" + strconv.FormatInt(n-1, 10): cloud.DeliveryID(n - 1)} {
			began := time.Now()
			require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
				found, err := v.SearchDeliveries(1, text, 6)
				require.True(t, slices.ContainsFunc(found, func(d cloud.Delivery) bool { return d.ID == first }), "%s: %d", text, len(found))
				return err
			}))
			t.Log(text, time.Since(began))
		}
	}
	onPlans(t, test)
}

// onPlans runs a test on both engines: exec runs a statement, series begins one with the
// rows s(i) from 2 to $1, and plan shows how a statement is run.
func onPlans(t *testing.T, test func(t *testing.T, db *DB, exec func(sql string, args ...any) error, series string, plan func(sql string, args ...any) string)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := openTest(t, Config{Dir: t.TempDir()})
		test(t, db, func(sql string, args ...any) error {
			return db.engine.write(t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
				return nil, s.apply(ctx, []op{{sql: sql, args: args}})
			})
		}, "WITH RECURSIVE s(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM s WHERE i < $1)", func(sql string, args ...any) string { return plan(t, db, liteTokens.Replace(sql), args...) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		db := openSchema(t)
		pool := db.engine.(*postgres).pool
		test(t, db, func(sql string, args ...any) error { _, err := pool.Exec(t.Context(), sql, args...); return err }, "WITH s(i) AS (SELECT generate_series(2, CAST($1 AS BIGINT)))", func(sql string, args ...any) string {
			rows, err := pool.Query(t.Context(), "EXPLAIN "+pgText(sql), args...)
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			return strings.Join(lines, "\n")
		})
	})
}
