package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// What concerns the person with a mail address is read from an index in the order of the
// list, however many deliveries there are: a million in the full ring. Deliveries of another
// business, test deliveries, and what that person only sends or is sent by a courier's
// drop-off are in none of the parts for recipients.
func TestDeliveriesOfAMailAddress(t *testing.T) {
	t.Parallel()
	n := int64(ring.Count(20_000, 1_000_000))
	from := strings.NewReplacer("id, number,", "i, 'LD-' || i,", " recipient,", ` '{"email":"Person' || (i % 5000) || '@Mail.example"}',`, " status,", " CASE i % 3 WHEN 0 THEN 'delivered' WHEN 1 THEN 'picked_up' ELSE 'created' END,",
		"picked_up_at,", "i,", "purpose, sender,", `CASE i % 3 WHEN 2 THEN 'send' ELSE '' END, CASE i % 3 WHEN 2 THEN '{"email":"SENDER' || (i % 5000) || '@Mail.example"}' ELSE '' END,`).Replace(deliveryColumns)
	fill := ` INSERT INTO delivery (` + deliveryColumns + `) SELECT ` + from + ` FROM s CROSS JOIN delivery d WHERE d.id = 1`
	onPlans(t, func(t *testing.T, db *DB, exec func(sql string, args ...any) error, series string, plan func(sql string, args ...any) string) {
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			var list []cloud.Delivery
			add := func(id int64, change func(d *cloud.Delivery)) {
				d := cloud.Delivery{ID: cloud.DeliveryID(id), Number: fmt.Sprint("LD-X-", id), BusinessID: 1, ProviderID: 1, DeviceID: 1, Status: cloud.DeliveryDelivered, Livemode: true, CreatedAt: time.Now(), Recipient: cloud.Recipient{Email: " Jane@Mail.Example "}}
				change(&d)
				list = append(list, d)
			}
			add(1, func(d *cloud.Delivery) { d.Recipient.Email = "first@mail.example" })
			add(n+10, func(*cloud.Delivery) {})
			add(n+11, func(d *cloud.Delivery) { d.Status, d.ExpiredKind = cloud.DeliveryExpired, "pickup_overdue" })
			add(n+12, func(d *cloud.Delivery) { d.Status, d.ExpiredKind = cloud.DeliveryExpired, "not_delivered" })
			add(n+13, func(d *cloud.Delivery) { d.BusinessID = 2 })
			add(n+14, func(d *cloud.Delivery) { d.Livemode = false })
			add(n+15, func(d *cloud.Delivery) { d.Purpose, d.Sender = "send", &cloud.Sender{Email: "sam@mail.example"} })
			add(n+16, func(d *cloud.Delivery) { d.Status = cloud.DeliveryCreated })
			add(n+17, func(d *cloud.Delivery) { d.Status, d.PickedUpAt = cloud.DeliveryPickedUp, time.UnixMilli(5000) })
			add(n+18, func(d *cloud.Delivery) { d.Status, d.PickedUpAt = cloud.DeliveryPickedUp, time.UnixMilli(3000) })
			add(n+19, func(d *cloud.Delivery) {
				d.Status, d.Purpose, d.Sender, d.Recipient = cloud.DeliveryCreated, "return", &cloud.Sender{Email: "JANE@mail.example"}, cloud.Recipient{}
			})
			return &cloud.Changes{Unaudited: true, LockerChanges: cloud.LockerChanges{Deliveries: list}}, nil
		}))
		require.NoError(t, exec(series+fill, n))
		require.NoError(t, exec("ANALYZE delivery"))
		read := func(f cloud.DeliveryFilter) (ids []int64, next *cloud.Mark, asks []statement) {
			a := &asked{}
			require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, q querier) error {
				a.querier = q
				list, listed, err := newView(snapshot{ctx: ctx, q: a}).Deliveries(f)
				for _, d := range list {
					ids = append(ids, int64(d.ID)-n)
				}
				next = listed.Next
				return err
			}))
			return ids, next, a.list
		}
		byID := cloud.Page{Sort: "id", Down: true, Limit: 20}
		mine := func(p cloud.RecipientPart) cloud.DeliveryFilter {
			return cloud.DeliveryFilter{BusinessID: 1, Of: "jane@mail.example", Part: p, Page: byID}
		}
		ids, _, _ := read(mine(cloud.RecipientWaiting))
		require.Equal(t, []int64{11, 10}, ids)
		ids, _, _ = read(mine(cloud.RecipientBrings))
		require.Equal(t, []int64{19}, ids)
		collected := mine(cloud.RecipientCollected)
		collected.CollectedFrom, collected.Page.Sort = time.UnixMilli(4000), "picked_up_at"
		ids, _, _ = read(collected)
		require.Equal(t, []int64{17}, ids)
		one := mine(cloud.RecipientWaiting)
		one.Page.Limit = 1
		_, one.Page.After, _ = read(one)
		ids, _, _ = read(one)
		require.Equal(t, []int64{10}, ids, "the page behind the first")

		for part, index := range map[cloud.RecipientPart]string{cloud.RecipientWaiting: "delivery_mail_waiting", cloud.RecipientCollected: "delivery_mail_collected", cloud.RecipientBrings: "delivery_mail_sender"} {
			for _, after := range []*cloud.Mark{nil, {ID: n}} {
				f := mine(part)
				f.Of, f.Page.After = "person77@mail.example", after
				if part == cloud.RecipientCollected {
					f.CollectedFrom, f.Page.Sort = time.UnixMilli(1), "picked_up_at"
					if after != nil {
						f.Page.After = &cloud.Mark{Key: n, ID: n}
					}
				}
				began := time.Now()
				_, _, asks := read(f)
				t.Log(index, time.Since(began))
				counted := 0
				for _, s := range asks {
					if !strings.Contains(s.sql, "FROM delivery") {
						continue
					}
					counted++
					text := plan(s.sql, s.args...)
					require.Contains(t, text, index, s.sql)
					require.NotRegexp(t, "Seq Scan|SCAN delivery|Sort|TEMP B-TREE", text, s.sql)
				}
				require.Positive(t, counted)
			}
		}
	})
}
