package account

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestPricesAreHiddenFromCustomersByFamily(t *testing.T) {
	t.Parallel()
	a := cloud.Account{Type: cloud.Customer, PriceHidden: []string{"label", "ltl"}}
	require.True(t, cloud.Caller{Account: a}.PricesHidden("label"))
	require.False(t, cloud.Caller{Account: a}.PricesHidden("storage"))
	require.False(t, cloud.Caller{Account: a}.PricesHidden(""))
	a.Type = cloud.ClientAdmin
	require.False(t, cloud.Caller{Account: a}.PricesHidden("label"), "the business sees its own prices")
	require.False(t, cloud.Caller{}.PricesHidden("label"))
}
