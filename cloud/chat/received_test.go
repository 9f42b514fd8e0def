package chat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// What a listener has acknowledged counts as delivered, as far as it may hear it.
func TestWhatListenersHeardIsDelivered(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		heard := func(who cloud.AccountID, ids ...string) {
			t.Helper()
			order := cloud.OrderID(0)
			if who == recipient {
				who, order = 0, theOrder
			}
			require.NoError(t, r.nodes[0].Received(t.Context(), 42, who, order, theOrder, ids))
		}
		fresh := func() (ids []string) {
			for _, e := range r.told() {
				ids = append(ids, e.ID)
			}
			return ids
		}
		status := func(who cloud.AccountID, id cloud.ChatMessageID) string {
			t.Helper()
			for _, m := range r.messages(who) {
				if m.ID == id {
					return m.Status
				}
			}
			return ""
		}
		first := r.says(customer, "Where are you?")
		ids := fresh()
		heard(customer, ids...)
		require.Equal(t, "sent", status(customer, first.ID), "one's own")
		heard(admin, "och_UNKNOWN")
		heard(stranger, ids...)
		require.Equal(t, "sent", status(customer, first.ID))
		heard(recipient, ids...)
		require.Equal(t, "delivered", status(customer, first.ID))

		hidden := r.says(admin, "Careful", audienceStaff)
		ids = fresh()
		heard(customer, ids...)
		require.Equal(t, "sent", r.talk(admin).LastMessage.Status, "who may not hear it did not")
		heard(driver, ids...)
		require.Equal(t, "delivered", status(admin, hidden.ID))

		late := r.says(customer, "Hello?")
		ids = fresh()
		r.wait(cloud.LiveKept + time.Second)
		heard(driver, ids...)
		require.Equal(t, "sent", status(customer, late.ID), "nobody knows the event any more")
		require.Empty(t, r.told(), "being delivered is told to nobody")
	})
}
