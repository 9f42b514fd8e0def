package store

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/seal"
)

// The first start leads to the set-up address, without a line for each migration before it.
func TestANewDatabaseLogsNoMigrations(t *testing.T) {
	t.Parallel()
	box, err := seal.New(bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	var log bytes.Buffer
	db, err := Open(t.Context(), Config{Dir: t.TempDir(), Box: box, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NotContains(t, log.String(), "migration")
}
