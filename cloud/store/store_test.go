package store_test

import (
	"testing"

	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *store.DB { return storetest.OpenSQLite(t) })
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *store.DB { return storetest.OpenPostgres(t) })
}

func TestTracesOfTwoNodes(t *testing.T) {
	t.Parallel()
	storetest.TracesOfTwoNodes(t)
}
