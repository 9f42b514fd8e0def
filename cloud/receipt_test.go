package cloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A receipt counts what leaves, each channel by itself: what stays in the sandbox is none.
func TestReceiptOfNotifications(t *testing.T) {
	t.Parallel()
	var r cloud.Receipt
	r.Take(&cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{
		{ID: "a", Channel: cloud.ByEmail}, {ID: "b", Channel: cloud.BySMS}, {ID: "c", Channel: cloud.BySMS}, {ID: "d", Channel: cloud.BySMS, Sandbox: true}}}}, "")
	require.Equal(t, []cloud.Notice{{Kind: cloud.NoticeMail, Count: 1}, {Kind: cloud.NoticeSMS, Count: 2}}, r.Notices())
}
