package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// searches find deliveries and accounts by how what they are called by begins, in any
// case, of one business alone.
func searches(t *testing.T, db *store.DB) {
	c := &cloud.Changes{}
	for n := range 8 {
		d := cloud.Delivery{ID: cloud.DeliveryID(n + 1), Number: fmt.Sprintf("LD-%09d", 64020+n), BusinessID: 1, ProviderID: 3, DeviceID: 1, Status: cloud.DeliveryCreated, CreatedAt: now,
			Recipient: []cloud.Recipient{{Name: "Sam Lee", Phone: "+1 (416) 555-0123"}, {Name: "Lee Ann Öz"}, {Name: "Ida Off", Phone: "0049/30.123"}, {Email: "a@a.example"}, {Name: "Madonna"}, {Name: "Sam Lee", Phone: "+14165550123"}, {Name: "Ümit Ö"}, {}}[n],
			Reference: []string{"PO_1", "po%2", "Ärmel-7", "", "x1", "PO_9", "zz", "\U0010FFFFq"}[n],
			Packages:  []cloud.Package{{Position: 0, TrackingNumber: fmt.Sprintf("1Zabc%d", n/2), Size: "S"}}}
		if n == 5 {
			d.BusinessID = 2
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	for n, name := range []string{"Sam Lee", "sandra Öz", "100%_x", "Lee Ann", "Sam Other", "Sam Driver"} {
		a := cloud.Account{ID: cloud.AccountID(n + 1), BusinessID: 1, Type: cloud.ClientEmployee, Name: name, Email: fmt.Sprintf("%c%d@a.example", 'p'+n, n), Enabled: true, CreatedAt: now}
		switch n {
		case 4:
			a.BusinessID = 2
		case 5:
			a.Type = cloud.DriverAccount
		}
		c.Accounts = append(c.Accounts, a)
	}
	write(t, db, 0, c)
	deliveries := func(text string, limit int) (ids []cloud.DeliveryID) {
		look(t, db, func(v cloud.View) {
			found, err := v.SearchDeliveries(1, text, limit)
			require.NoError(t, err)
			for _, d := range found {
				require.Len(t, d.Packages, 1)
				ids = append(ids, d.ID)
			}
		})
		return ids
	}
	type ids = []cloud.DeliveryID
	require.Equal(t, ids{1}, deliveries("ld-000064020", 5))
	require.Equal(t, ids{1, 2, 3}, deliveries("Ld-0", 3))
	require.Equal(t, ids{1}, deliveries("po_", 5), "_ stands for itself, and another business has PO_9")
	require.Equal(t, ids{2}, deliveries("PO%", 5))
	require.Equal(t, ids{3}, deliveries("Ärm", 5))
	require.Equal(t, ids{4, 3}, deliveries("1ZABC1", 5))
	require.Equal(t, ids{5}, deliveries("1zabc2", 5), "of two with the package the other business has one")
	require.Equal(t, ids{8}, deliveries("\U0010FFFF", 5))
	require.Equal(t, ids{2, 1}, deliveries("lee", 5), "by name, then by last name; another business has a Sam Lee")
	require.Equal(t, ids{1}, deliveries("SAM L", 5))
	require.Equal(t, ids{2}, deliveries("ann", 5), "a part of a name, among the newest")
	require.Equal(t, ids{1}, deliveries("+1 416 555", 5))
	require.Equal(t, ids{1}, deliveries("(416) 555-0123", 5))
	require.Equal(t, ids{3}, deliveries("0049 30", 5))
	require.Equal(t, ids{7}, deliveries("Ümit", 5))
	for _, text := range []string{"1zabc", "d-0", "'; --", "\"", "%", "_", "\\", "po_9"} {
		require.Empty(t, deliveries(text, 5), text)
	}
	accounts := func(text string, limit int) (ids []cloud.AccountID) {
		look(t, db, func(v cloud.View) {
			found, err := v.SearchAccounts(1, cloud.ClientEmployee, text, limit)
			require.NoError(t, err)
			for _, a := range found {
				ids = append(ids, a.ID)
			}
		})
		return ids
	}
	require.Equal(t, []cloud.AccountID{1, 2}, accounts("SA", 5))
	require.Equal(t, []cloud.AccountID{4, 1}, accounts("lee", 5), "what begins so comes first")
	require.Equal(t, []cloud.AccountID{4}, accounts("lee", 1))
	require.Equal(t, []cloud.AccountID{2}, accounts("q1@", 5))
	require.Equal(t, []cloud.AccountID{3}, accounts("%_", 5))
	require.Empty(t, accounts("other", 5))
	require.Empty(t, accounts("!", 5))
	require.Empty(t, accounts("lee", 0))
}
