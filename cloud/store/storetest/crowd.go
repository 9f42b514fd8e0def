package storetest

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// Many decisions at once that read a row and write what follows from it all come
// to their end, and none is lost.
func crowd(t *testing.T, db *store.DB) {
	const people, each = 48, 3
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "0", Timezone: "UTC"}}}})
	var wg sync.WaitGroup
	for range people {
		wg.Go(func() {
			for range each {
				err := db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
					b, err := v.Business(42)
					if err != nil {
						return nil, err
					}
					time.Sleep(5 * time.Millisecond) // there is more to read than one row
					n, err := strconv.Atoi(b.Name)
					b.Name = strconv.Itoa(n + 1)
					return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	look(t, db, func(v cloud.View) {
		b, err := v.Business(42)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(people*each), b.Name)
	})
}
