package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// A provider's list has what every filter says of its own deliveries, newest first, and
// nothing of another's.
func TestAProviderListsItsDeliveries(t *testing.T) {
	onBoth(t, func(t *testing.T, x *world) {
		rnd := rand.New(rand.NewPCG(1, 20))
		statuses := []cloud.DeliveryStatus{cloud.DeliveryCreated, cloud.DeliveryDelivered, cloud.DeliveryPickedUp, cloud.DeliveryExpired}
		begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		var all []cloud.Delivery
		for n := range 60 {
			d := cloud.Delivery{ID: cloud.DeliveryID(90_000 + n), Number: fmt.Sprintf("LD-%09d", 90_000+n), Reference: fmt.Sprintf("REF-%d", n), BusinessID: 42, ProviderID: []cloud.ProviderID{17, 18}[rnd.IntN(2)],
				DeviceID: []cloud.DeviceID{88, 89}[rnd.IntN(2)], Status: statuses[rnd.IntN(len(statuses))], Recipient: cloud.Recipient{Name: "Jane"}, SealedCodes: x.w.Delivery.SealedCodes, CreatedAt: begun.Add(time.Duration(n) * time.Hour)}
			for i := range 1 + rnd.IntN(2) {
				d.Packages = append(d.Packages, cloud.Package{Position: i, TrackingNumber: fmt.Sprintf("Pk%d-%d", n/2, i), Status: cloud.PackageCreated})
			}
			all = append(all, d)
		}
		x.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: all}})
		for range ring.Count(60, 300) {
			ask := url.Values{"per_page": {"200"}}
			want := func(cloud.Delivery) bool { return true }
			filter := func(name, value string, fits func(cloud.Delivery) bool) {
				if rnd.IntN(3) > 0 {
					return
				}
				ask.Set(name, value)
				before := want
				want = func(d cloud.Delivery) bool { return before(d) && fits(d) }
			}
			some := all[rnd.IntN(len(all))]
			filter("status", string(some.Status), func(d cloud.Delivery) bool { return d.Status == some.Status })
			filter("device_id", fmt.Sprint(some.DeviceID), func(d cloud.Delivery) bool { return d.DeviceID == some.DeviceID })
			filter("reference_number", some.Reference, func(d cloud.Delivery) bool { return d.Reference == some.Reference })
			number := some.Packages[0].TrackingNumber
			filter("tracking_number", strings.ToUpper(number), func(d cloud.Delivery) bool {
				return slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.TrackingNumber == number })
			})
			from, to := some.CreatedAt, some.CreatedAt.Add(time.Duration(rnd.IntN(30))*time.Hour)
			filter("created_from", from.Format(time.RFC3339), func(d cloud.Delivery) bool { return !d.CreatedAt.Before(from) })
			filter("created_to", to.Format(time.RFC3339), func(d cloud.Delivery) bool { return d.CreatedAt.Before(to) })
			var expected, got []string
			for _, d := range slices.Backward(all) {
				if d.ProviderID == 17 && want(d) {
					expected = append(expected, d.Reference)
				}
			}
			a := x.do("GET", partner+"/deliveries?"+ask.Encode(), x.token(provider), "")
			require.Equal(t, 200, a.status, "%s", a.body)
			rows, _ := a.json["deliveries"].([]any)
			for _, row := range rows {
				if ref, _ := at(row, "reference_number").(string); strings.HasPrefix(ref, "REF-") {
					got = append(got, ref)
				}
			}
			require.Equal(t, expected, got, ask.Encode())
		}
	})
}
