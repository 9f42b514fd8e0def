package chat

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A deleted message reaches no listener who comes later: neither from the events that
// were sent a moment ago, nor from a push that waits or has been sent.
func TestDeletedMessagesAreNotSentAgain(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		kept := func(kind cloud.LiveKind, subject int64) (list []cloud.LiveEvent) {
			t.Helper()
			list, err := r.db.LiveOf(t.Context(), 42, kind, subject, started, 100)
			require.NoError(t, err)
			return list
		}
		r.says(admin, "Good morning")
		r.wait(time.Second)
		said := r.says(customer, "My secret code")
		hidden := r.says(contractor, "My secret", audienceStaff)
		r.wait(time.Second)
		_, err := r.nodes[0].Edit(t.Context(), r.caller(customer), EditInput{said.ID, "My secret code is 1234"})
		require.NoError(t, err)
		_, err = r.send(customer, SendInput{Location: &PlaceInput{ptr(43.6), ptr(-79.3), ptr("secret door")}})
		require.NoError(t, err)
		place := r.messages(customer)[2]
		before := [][]cloud.LiveEvent{kept(cloud.LiveChat, int64(theOrder)), kept(cloud.LiveChatStaff, int64(theOrder)), kept(cloud.LiveDriver, int64(driver))}
		require.Len(t, before[0], 4)
		require.Len(t, before[1], 1)
		require.Len(t, before[2], 4)
		r.wait(time.Second)
		for who, id := range map[cloud.AccountID]cloud.ChatMessageID{customer: said.ID, contractor: hidden.ID} {
			_, err = r.nodes[1].Delete(t.Context(), r.caller(who), MessageInput{id})
			require.NoError(t, err)
		}
		_, err = r.nodes[1].Delete(t.Context(), r.caller(customer), MessageInput{place.ID})
		require.NoError(t, err)

		after := [][]cloud.LiveEvent{kept(cloud.LiveChat, int64(theOrder)), kept(cloud.LiveChatStaff, int64(theOrder)), kept(cloud.LiveDriver, int64(driver))}
		for i, list := range after {
			require.Greater(t, len(list), 0)
			for k, e := range list {
				require.NotContains(t, string(e.Body), "secret")
				if k >= len(before[i]) {
					continue // of the deletion
				}
				was := before[i][k]
				var a, b map[string]any
				require.NoError(t, json.Unmarshal(was.Body, &b))
				require.NoError(t, json.Unmarshal(e.Body, &a))
				for _, name := range []string{"event_id", "type", "order_id", "conversation_id", "occurred_at", "push_id", "title", "created_at"} {
					require.Equal(t, b[name], a[name], "it is the same event")
				}
				was.Body, e.Body = nil, nil
				require.Equal(t, was, e)
			}
		}
		require.Contains(t, string(after[0][0].Body), "Good morning")
		require.Contains(t, string(after[2][0].Body), "Good morning")
		for i, p := range r.pushes {
			row, err := r.db.FindPush(t.Context(), p.ID)
			require.NoError(t, err)
			if p.Body != "Good morning" {
				p.Body = "SR000000070"
			}
			require.Equal(t, p, row.Push)
			require.Equal(t, map[bool]cloud.PushState{true: cloud.PushWaiting, false: cloud.PushReplaced}[i == 3], row.State, "it goes its way")
		}
		require.Len(t, r.pushes, 4)
	})
}
