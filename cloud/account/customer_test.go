package account

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestPricesAreHiddenFromCustomersByFamily(t *testing.T) {
	t.Parallel()
	a := cloud.Account{Type: cloud.Customer, PriceHidden: []string{"label", "ltl"}}
	require.True(t, PricesHidden(cloud.Caller{Account: a}, "label"))
	require.False(t, PricesHidden(cloud.Caller{Account: a}, "storage"))
	require.False(t, PricesHidden(cloud.Caller{Account: a}, ""))
	a.Type = cloud.ClientAdmin
	require.False(t, PricesHidden(cloud.Caller{Account: a}, "label"), "the business sees its own prices")
	require.False(t, PricesHidden(cloud.Caller{}, "label"))
}
