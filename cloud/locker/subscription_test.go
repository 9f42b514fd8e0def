package locker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
)

// Staff subscribe to all parcels, the partner to its own in the cabinet: both get each event of its timeline
// once, without an order and without a code.
func TestSubscribersOfAParcelInACabinet(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		hooks := webhook.New(s.Store, anyURL{})
		var staff cloud.Caller
		s.Look(func(v cloud.View) error {
			all, _, err := v.Accounts(cloud.AccountFilter{BusinessID: s.Box.ProviderCaller.Provider.BusinessID, Types: []cloud.AccountType{cloud.ClientAdmin}, Page: cloud.Page{Sort: "id", Limit: 1}})
			staff = cloud.Caller{Account: all[0], Language: "en"}
			return err
		})
		subscribe := func(c cloud.Caller, in webhook.SubscriptionInput) cloud.EndpointID {
			in.URL = "https://8.8.8.8/parcels"
			out, err := hooks.Subscribe(ctx, c, in)
			require.NoError(s.t, err)
			return out.Subscription.URLID
		}
		all := subscribe(staff, webhook.SubscriptionInput{All: true})
		partner := subscribe(s.Box.ProviderCaller, webhook.SubscriptionInput{Numbers: []string{"PK-1"}, Codes: []string{"x-available_for_pickup"}})
		time.Sleep(time.Minute)
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"},
			Packages: []locker.PackageInput{{TrackingNumber: "PK-2", Size: "M"}}})
		require.NoError(s.t, err)
		got := func(id cloud.EndpointID) (out []string) {
			rows, err := s.Store.ListBusinessOutbox(ctx, cloud.BusinessLog{BusinessID: staff.Account.BusinessID, EndpointID: id, Limit: 100})
			require.NoError(s.t, err)
			for _, r := range slices.Backward(rows) {
				x, err := s.Store.FindOutbox(ctx, r.Delivery.ID)
				require.NoError(s.t, err)
				var b struct {
					Data struct {
						Order   any
						Package struct {
							Number string `json:"tracking_number"`
						}
						Key    string `json:"tracking_event_key"`
						Source struct{ Type string }
					}
				}
				require.NoError(s.t, json.Unmarshal(x.Event.Body, &b))
				require.Nil(s.t, b.Data.Order)
				require.NotContains(s.t, string(x.Event.Body), "_code")
				out = append(out, fmt.Sprint(b.Data.Package.Number, " ", b.Data.Key, " ", b.Data.Source.Type))
			}
			return out
		}
		require.Equal(s.t, []string{"PK-1 x-available_for_pickup locker", "PK-1 delivered locker", "PK-2 information_submitted partner"}, got(all))
		require.Equal(s.t, []string{"PK-1 x-available_for_pickup locker"}, got(partner))
	})
}
