package cloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestHookNamed(t *testing.T) {
	t.Parallel()
	f := func(want bool, event string, names ...string) {
		t.Helper()
		require.Equal(t, want, cloud.HookNamed(names, event), names)
	}
	f(true, "order.delivered")
	f(true, "order.delivered", "order.cancelled", "order.delivered")
	f(true, "order.delivered", "order.*")
	f(true, "order.delivered", "*")
	f(false, "order.delivered", "order.delivered_twice", "order.deliver", "*.delivered")
	f(false, "order.delivered", "order.delivery*")
}

// Whose a delivery is does not depend on what is missing in a name.
func TestOutboxOwner(t *testing.T) {
	t.Parallel()
	account := cloud.OutboxWork{Event: cloud.OutboxEvent{BusinessID: 42, Channel: cloud.ChannelAccount}, Delivery: cloud.OutboxDelivery{CustomerID: 3}}
	provider := cloud.OutboxWork{Event: cloud.OutboxEvent{BusinessID: 42, ProviderID: 17, Channel: cloud.ChannelLocker}}
	for o, owns := range map[cloud.OutboxOwner][2]bool{{}: {}, {BusinessID: 42}: {true, false}, {BusinessID: 43}: {}, {BusinessID: 42, CustomerID: 3}: {true, false},
		{BusinessID: 42, CustomerID: 4}: {}, {CustomerID: 3}: {}, {BusinessID: 42, ProviderID: 17}: {false, true}, {BusinessID: 42, ProviderID: 18}: {}} {
		require.Equal(t, owns, [2]bool{o.Owns(account), o.Owns(provider)}, "%+v", o)
	}
}
