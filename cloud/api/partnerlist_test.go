package api_test

import (
	"fmt"
	"math"
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

// A provider finds the lockers that it may use: every filter, the distance as a sphere has
// it, the nearest first, and no locker of another provider or business, or out of use.
func TestAProviderFindsLockers(t *testing.T) {
	onBoth(t, func(t *testing.T, x *world) {
		rnd := rand.New(rand.NewPCG(2, 20))
		var all []cloud.Device
		var cells []cloud.Compartment
		var seen []cloud.DeviceSeen
		for n := range 40 {
			d := cloud.Device{ID: cloud.DeviceID(7000 + n), BusinessID: []cloud.BusinessID{42, 42, 42, 43}[rnd.IntN(4)], Code: fmt.Sprintf("NEAR-%d", n), Name: fmt.Sprintf("Near %d", n%5), Type: "smart_locker", Timezone: "UTC", Protocol: "mqtt",
				Address: "1 Long St", PostalCode: []string{"", "M5V 2T6", "m5v2t6", "10115"}[rnd.IntN(4)], Country: []string{"", "CA", "DE"}[rnd.IntN(3)], Latitude: 69.6 + rnd.Float64()/2, Longitude: 179.4 + rnd.Float64()*1.2, Livemode: rnd.IntN(2) == 0, OwnerProviderID: []cloud.ProviderID{0, 0, 17, 18}[rnd.IntN(4)], CreatedAt: time.Now()}
			if d.Longitude > 180 {
				d.Longitude -= 360 // beyond the date line
			}
			if rnd.IntN(6) > 0 {
				d.EnrolledAt = time.Now()
			}
			if rnd.IntN(6) == 0 {
				d.CutOffAt = time.Now()
			}
			if rnd.IntN(2) == 0 {
				d.SecretMAC = []byte{1}
			}
			switch rnd.IntN(6) {
			case 0:
				d.Disabled = true
			case 1:
				d.MaintenanceAt = time.Now()
			}
			if rnd.IntN(3) > 0 {
				d.StatusAt, d.Applied = time.Now(), uint64(min(1, rnd.IntN(6)))
				seen = append(seen, cloud.DeviceSeen{DeviceID: d.ID, StatusAt: d.StatusAt, Applied: d.Applied})
			}
			all = append(all, d)
			cells = append(cells, cloud.Compartment{GridID: cloud.GridID(700_000 + n), DeviceID: d.ID, Door: 1, GridCode: "A01", ShelfCode: "A", Column: 1, Row: 1, Size: []string{"S", "M", "L", "XL"}[rnd.IntN(4)],
				PickupEnabled: true, State: []string{cloud.GridFree, cloud.GridOccupied}[rnd.IntN(2)], DoorStatus: "closed"})
		}
		x.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: all, Seen: seen}, LockerChanges: cloud.LockerChanges{Compartments: cells}})
		for range ring.Count(60, 300) {
			here := all[rnd.IntN(len(all))]
			radius := 0.1 + rnd.Float64()*49
			ask := url.Values{"per_page": {"200"}, "keyword": {"near-"}, "latitude": {fmt.Sprint(here.Latitude)}, "longitude": {fmt.Sprint(here.Longitude)}, "radius_km": {fmt.Sprint(radius)}}
			want := func(n int) bool {
				d := all[n]
				return d.BusinessID == 42 && !d.EnrolledAt.IsZero() && (d.StatusAt.IsZero() || d.Applied > 0) && !d.IsCutOff() && !d.Disabled && d.MaintenanceAt.IsZero() && (d.OwnerProviderID == 0 || d.OwnerProviderID == 17)
			}
			if rnd.IntN(2) == 0 {
				before, live := want, rnd.IntN(2) == 0
				ask.Set("livemode", fmt.Sprint(live))
				want = func(n int) bool { return before(n) && all[n].Livemode == live }
			}
			if rnd.IntN(4) == 0 {
				before, code := want, []string{"M5V 2T6", " m5V2t6 ", "10115", "ZZZ999"}[rnd.IntN(4)]
				ask.Set("postal_code", code)
				want = func(n int) bool { return before(n) && plainCode(all[n].PostalCode) == plainCode(code) }
			}
			if rnd.IntN(4) == 0 {
				before, country := want, []string{"CA", "ca", "DE", "FR"}[rnd.IntN(4)]
				ask.Set("country", country)
				want = func(n int) bool { return before(n) && all[n].Country == strings.ToUpper(country) }
			}
			if rnd.IntN(2) == 0 {
				before, size := want, []string{"S", "M", "L", "XL"}[rnd.IntN(4)]
				ask.Set("size", size)
				want = func(n int) bool {
					return before(n) && strings.Index("S M L XL", cells[n].Size) >= strings.Index("S M L XL", size)
				}
			}
			a := x.do("GET", partner+"/lockers?"+ask.Encode(), x.token(provider), "")
			require.Equal(t, 200, a.status, "%s", a.body)
			found, last := map[string]bool{}, 0.0
			rows, _ := a.json["lockers"].([]any)
			for _, row := range rows {
				code, _ := at(row, "device_code").(string)
				found[code] = true
				km, _ := at(row, "distance_km").(float64)
				require.GreaterOrEqual(t, km, last-0.002, "the nearest first")
				last = km
				n := slices.IndexFunc(all, func(d cloud.Device) bool { return d.Code == code })
				require.Equal(t, []any{all[n].PostalCode, all[n].Country}, []any{at(row, "postal_code"), at(row, "country")})
				require.InDelta(t, sphere(here, all[n]), km, 0.01+km*0.01)
				free := 0.0
				if cells[n].State == cloud.GridFree {
					free = 1
				}
				require.InDelta(t, free, at(row, "availability", cells[n].Size), 0, code)
			}
			for n, d := range all {
				if away := sphere(here, d); away < radius*0.99-0.01 || away > radius*1.01+0.01 { // between them the plane decides
					require.Equal(t, want(n) && away <= radius, found[d.Code], "%s %.3f km away, %s", d.Code, away, ask.Encode())
				}
			}
		}
		for ask, field := range map[string]string{"country=XX1": "country", "country=XX": "country", "postal_code=" + url.QueryEscape("M5V_2T6"): "postal_code", "postal_code=" + strings.Repeat("1", 21): "postal_code"} {
			a := x.do("GET", partner+"/lockers?"+ask, x.token(provider), "")
			require.Equal(t, 422, a.status, "%s: %s", ask, a.body)
			require.NotNil(t, at(a.json, "errors", field), "%s: %s", ask, a.body)
		}
		for n, d := range all {
			a := x.do("GET", fmt.Sprintf("%s/lockers/%d", partner, d.ID), x.token(provider), "")
			free := x.do("GET", fmt.Sprintf("%s/lockers/%d/availability?size=%s", partner, d.ID, cells[n].Size), x.token(provider), "")
			switch {
			case d.BusinessID != 42:
				require.Equal(t, "DEVICE_NOT_FOUND", a.code())
				require.Equal(t, "DEVICE_NOT_FOUND", free.code())
			case d.OwnerProviderID == 18:
				require.Equal(t, "DEVICE_NOT_SHARED", a.code())
				require.Equal(t, "DEVICE_NOT_SHARED", free.code())
			default:
				require.Equal(t, 200, a.status, "%s", a.body)
				want := 0.0
				if d.TakesDeliveries() && cells[n].State == cloud.GridFree {
					want = 1
				}
				require.InDelta(t, want, at(free.json, "availability", cells[n].Size), 0)
				require.NotContains(t, string(a.body), "delivery_id")
			}
		}
	})
}

// plainCode is a postal code without what does not matter in it.
func plainCode(code string) string { return strings.ToUpper(strings.ReplaceAll(code, " ", "")) }

// sphere is the distance of two devices on a sphere of the earth's mean radius, in
// kilometres.
func sphere(a, b cloud.Device) float64 {
	const degree = math.Pi / 180
	h := func(x float64) float64 { return math.Pow(math.Sin(x*degree/2), 2) }
	return 2 * 6371.0088 * math.Asin(math.Sqrt(h(b.Latitude-a.Latitude)+math.Cos(a.Latitude*degree)*math.Cos(b.Latitude*degree)*h(b.Longitude-a.Longitude)))
}
