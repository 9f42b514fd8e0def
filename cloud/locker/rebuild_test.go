package locker_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/protocol/wire"
)

// rebuilt reads the journal of a data folder again.
func (s *story) rebuilt(dir string, write bool) server.Rebuilt {
	s.t.Helper()
	srv, err := server.New(ctx, server.Config{Dir: dir, Node: "one"})
	require.NoError(s.t, err)
	found, err := srv.Rebuild(ctx, write)
	require.NoError(s.t, err)
	require.NoError(s.t, srv.Broker.Close())
	require.NoError(s.t, srv.Store.Close())
	return found
}

func (s *story) sql(dir string, f func(*sql.DB)) {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "postern.db"))
	require.NoError(s.t, err)
	f(db)
	require.NoError(s.t, db.Close())
}

// dump is every row of every table; rows of timelines without their places.
func (s *story) dump(dir string) (out map[string][]string) {
	s.t.Helper()
	out = map[string][]string{}
	s.sql(dir, func(db *sql.DB) {
		var tables []string
		names, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'`)
		require.NoError(s.t, err)
		for names.Next() {
			var name string
			require.NoError(s.t, names.Scan(&name))
			tables = append(tables, name)
		}
		require.NoError(s.t, names.Err())
		for _, table := range tables {
			rows, err := db.Query("SELECT * FROM " + table)
			require.NoError(s.t, err)
			columns, err := rows.Columns()
			require.NoError(s.t, err)
			for rows.Next() {
				values, into := make([]any, len(columns)), make([]any, len(columns))
				for i := range values {
					into[i] = &values[i]
				}
				require.NoError(s.t, rows.Scan(into...))
				if table == "timeline" {
					values = values[slices.Index(columns, "n")+1:]
				}
				out[table] = append(out[table], fmt.Sprintf("%v", values))
			}
			require.NoError(s.t, rows.Err())
			slices.Sort(out[table])
		}
	})
	return out
}

// A timeline that lost its events of the cabinet gets them back from the
// journal, row for row, and nothing else in the database changes.
func TestTimelinesAreRebuiltFromTheJournal(t *testing.T) {
	t.Parallel()
	tell(t, 2, nil, func(s *story) {
		time.Sleep(15 * time.Second)
		s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-1", StatusCode: "otep:parcel:arrival_scan", Location: "Dock\x00", Extensions: map[string]string{"lane": "4"}})
		s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-1", StatusCode: "nonsense"})
		s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-2", StatusCode: "in_transit"})
		time.Sleep(3 * time.Second)
		a := s.open()
		s.settle(a)
		time.Sleep(3 * time.Second)
		s.settle(a, wire.Failed) // the cabinet says it again, otherwise
		time.Sleep(3 * time.Second)
		s.pickUp("op_p", 2, a.Doors[1:], a.Doors[0])
		time.Sleep(3 * time.Second)
		s.pickUp("op_q", 2, nil, a.Doors[1:]...)
		time.Sleep(3 * time.Second)
		s.pickUp("op_r", 2, nil, a.Doors[1:]...) // once more
		synctest.Wait()

		whole, hurt := s.Copy(), s.Copy()
		found := s.rebuilt(whole, true)
		require.Empty(s.t, found.Missing)
		require.Empty(s.t, found.Different)
		require.GreaterOrEqual(s.t, found.Events, 6)
		want := s.dump(whole)
		require.NotEmpty(s.t, want["outbox_event"])

		s.sql(hurt, func(db *sql.DB) {
			gone, err := db.Exec(`DELETE FROM timeline WHERE event LIKE '%"type":"locker"}%'`)
			require.NoError(s.t, err)
			n, err := gone.RowsAffected()
			require.NoError(s.t, err)
			require.EqualValues(s.t, found.Events, n, "all that can be proven")
			_, err = db.Exec(`UPDATE shipment SET current_code = 'in_transit', last_at = created_at`)
			require.NoError(s.t, err)
		})
		before := s.dump(hurt)
		dry := s.rebuilt(hurt, false)
		require.False(s.t, dry.Written)
		require.Len(s.t, dry.Missing, found.Events)
		require.Equal(s.t, before["timeline"], s.dump(hurt)["timeline"], "looking changes nothing")
		require.Len(s.t, s.rebuilt(hurt, true).Missing, found.Events)
		got := s.dump(hurt)
		for table := range want {
			if table == "feed_change" { // what came back is a change that readers see
				require.Len(s.t, got[table], len(want[table])+found.Events)
				require.Subset(s.t, got[table], want[table], table)
				continue
			}
			require.Equal(s.t, want[table], got[table], table)
		}
		require.Empty(s.t, s.rebuilt(hurt, true).Missing, "once")

		s.sql(hurt, func(db *sql.DB) {
			_, err := db.Exec(`UPDATE timeline SET event = replace(event, '"arrival_scan"', '"received"')`)
			require.NoError(s.t, err)
		})
		other := s.rebuilt(hurt, true)
		require.Len(s.t, other.Different, 1)
		require.EqualValues(s.t, "received", other.Different[0].StoredCode)
		require.True(s.t, strings.HasPrefix(other.Different[0].EventID, "evt_"))
	})
}

// A settlement that names a package which its delivery does not have, as one that was taken out of it
// meanwhile, proves what it says of the others.
func TestASettlementOfAnUnknownPackageIsRebuilt(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		door := a.Doors[0]
		a.Packages = map[uint][]string{door: {"PK-9", "PK-1"}}
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
		found, err := s.Rebuild(ctx, false)
		require.NoError(s.t, err)
		require.Equal(s.t, 1, found.Events)
		require.Empty(s.t, found.Missing)
	})
}
