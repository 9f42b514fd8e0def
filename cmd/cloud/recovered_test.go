package main

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cmd/internal/postgres"
	"github.com/postern-io/postern/internal/ring"
)

// PostgreSQL is recovered to a point in time by its own means, and the command lets it go on:
// what is given next is above what was given and forgotten since, and once is enough.
func TestADatabaseRecoveredToAPointInTimeGoesOn(t *testing.T) {
	ring.SkipUnlessCheck(t, "two servers are started for it")
	t.Parallel()
	ctx, parent := t.Context(), os.TempDir()
	first, err := postgres.New(ctx, parent)
	ring.Needs(t, ring.EnvTools, "PostgreSQL's programs", err == nil)
	t.Cleanup(func() { require.NoError(t, first.Remove()) })
	t.Cleanup(func() { require.NoError(t, first.Crash()) })
	require.NoError(t, first.Start(ctx))
	require.NoError(t, first.Archive(ctx))
	require.NoError(t, first.CreateDatabase(ctx))
	dir := t.TempDir()
	config := func(s *postgres.Server) string {
		return file(t, "listen: 127.0.0.1:0\nmqtt: {listen: '127.0.0.1:0'}\ndata: "+dir+"\ndatabase_file: "+file(t, postgres.Address(s))+"\n")
	}
	_, err = program(t, "-config", config(first), "demo-data")
	require.NoError(t, err)
	copied, err := first.Copy(ctx, parent)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, copied.Remove()) })
	t.Cleanup(func() { require.NoError(t, copied.Crash()) })

	id, version, given := numbersGiven(t, config(first), 3)
	time.Sleep(100 * time.Millisecond)
	at := time.Now()
	time.Sleep(100 * time.Millisecond)
	_, forgotten, last := numbersGiven(t, config(first), 5)
	require.Greater(t, forgotten, version)
	require.Greater(t, last, given)
	require.NoError(t, first.EndSegment(ctx))
	require.NoError(t, copied.RecoverTo(ctx, first, at))

	config2 := config(copied)
	_, err = program(t, "-config", config2, "recovered", time.Now().Add(time.Hour).Format(time.RFC3339))
	require.ErrorContains(t, err, "is not past")
	s, err := load(options{Config: config2})
	require.NoError(t, err)
	srv, err := open(ctx, s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	d, err := srv.Store.FindDeviceByCode(ctx, "CAB-1001")
	require.NoError(t, err)
	require.Equal(t, id, d.ID)
	require.Equal(t, version, d.ConfigVersion, "the state of the point in time")
	require.NoError(t, closeAll(srv))

	out, err := program(t, "-config", config2, "recovered", at.Format(time.RFC3339Nano))
	require.NoError(t, err)
	require.Contains(t, out, "the database goes on")
	_, next, above := numbersGiven(t, config2, 0)
	require.Greater(t, next, forgotten)
	require.Greater(t, above, last+1000)
	_, again, _ := numbersGiven(t, config2, 0)
	require.Equal(t, next, again, "it is done once")
}

// numbersGiven raises the version of a cabinet's configuration some times, and gives that
// and a new id.
func numbersGiven(t *testing.T, config string, times int) (device cloud.DeviceID, version uint64, id int64) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s, err := load(options{Config: config})
	require.NoError(t, err)
	srv, err := open(ctx, s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	d, err := srv.Store.FindDeviceByCode(ctx, "CAB-1001")
	require.NoError(t, err)
	for range times {
		require.NoError(t, srv.Store.Decide(ctx, d.ID, func(v cloud.View) (*cloud.Changes, error) {
			if d, err = v.Device(d.ID); err != nil {
				return nil, err
			}
			d.ConfigVersion++
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, nil
		}))
	}
	id, err = srv.Store.NewID(ctx, store.Deliveries)
	require.NoError(t, err)
	d, err = srv.Store.FindDeviceByCode(ctx, d.Code)
	require.NoError(t, err)
	require.NoError(t, closeAll(srv))
	return d.ID, d.ConfigVersion, id
}
