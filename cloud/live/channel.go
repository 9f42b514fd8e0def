package live

import (
	"fmt"

	"github.com/postern-io/postern/cloud"
)

// channel is what can be listened to. Subject is 0 for a dashboard.
type channel struct {
	kind     cloud.LiveKind
	business cloud.BusinessID
	subject  int64
}

// dashboard is the kind of a business's changes of orders' statuses, of which no
// rows are kept.
const dashboard cloud.LiveKind = "business"

func channelOf(e cloud.LiveEvent) channel { return channel{e.Kind, e.BusinessID, e.Subject} }

// topic is the channel's name (devices 10.2).
func (c channel) topic(prefix string) string {
	switch c.kind {
	case cloud.LiveChat:
		return fmt.Sprintf("%s/order-chat/%d/%d", prefix, c.business, c.subject)
	case cloud.LiveChatStaff:
		return fmt.Sprintf("%s/order-chat/%d/%d/staff", prefix, c.business, c.subject)
	case cloud.LiveDriver:
		return fmt.Sprintf("%s/driver/%d/push", prefix, c.subject)
	}
	return fmt.Sprintf("%s/business/%d/orders", prefix, c.business)
}
