package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func announcement(refs ...string) string {
	var list []string
	for _, r := range refs {
		list = append(list, fmt.Sprintf(`{"carrier_reference":%q,"recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12,"weight":2}`, r))
	}
	return `{"packages":[` + strings.Join(list, ",") + `]}`
}

// A carrier announces packages: each is taken once, and one that cannot be taken leaves the
// others as they are.
func TestCarriersAnnouncePackages(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	const at1 = partner + "/announced-packages"
	own := x.token(provider)
	announce := func(token, body string) answer { return x.do("POST", at1, token, body) }
	total := func(token, query string) float64 {
		return at(x.do("GET", at1+query, token, "").json, "total").(float64)
	}
	before := total(own, "")

	a := announce(own, strings.Replace(announcement("A-1", "A-2", "A-3"), `"A-2","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12`, `"A-2","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":987654`, 1))
	require.Equal(t, 200, a.status, "%s", a.body)
	require.EqualValues(t, 2, a.json["accepted"])
	rejected := a.json["rejected"].([]any)
	require.Len(t, rejected, 1)
	require.Equal(t, []any{1.0, "SITE_NOT_FOUND"}, []any{at(rejected[0], "index"), at(rejected[0], "code")})
	require.NotEmpty(t, at(rejected[0], "message"))
	packages := a.json["packages"].([]any)
	number := at(packages[0], "package_number").(string)
	require.Regexp(t, `^CPD-PKG-\d+$`, number)
	require.Equal(t, "Front St Lobby", at(packages[0], "destination", "name"))
	require.Equal(t, before+2, total(own, ""))

	again := announce(own, announcement("A-1"))
	require.Equal(t, number, at(again.json["packages"].([]any)[0], "package_number"), "the same package")
	other := announce(own, strings.Replace(announcement("A-1"), `"weight":2`, `"weight":3`, 1))
	require.Equal(t, "DUPLICATE_REFERENCE", at(other.json["rejected"].([]any)[0], "code"))
	require.Equal(t, before+2, total(own, ""))
	for body, member := range map[string]string{
		`{"packages":[]}`:  "packages",
		`{"packages":{}}`:  "packages",
		`{"packages":"x"}`: "packages",
		announcement(strings.Fields(strings.Repeat("x ", 201))...): "packages",
	} {
		a := announce(own, body)
		require.Equal(t, 422, a.status, "%s", a.body)
		require.NotNil(t, at(a.json, "errors", member), "%s", a.body)
	}
	malformed := map[string]string{ // a package, and the member that is wrong
		`{"carrier_reference":"B","recipient":{"name":"Jane"},"destination_location_id":12}`:                                        "recipient",
		`{"carrier_reference":"","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}`:                  "carrier_reference",
		`{"carrier_reference":"C\u0000","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}`:           "carrier_reference",
		`{"carrier_reference":7,"recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}`:                   "carrier_reference",
		`{"carrier_reference":"B","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12,"weight":"2 kg"}`: "weight",
		`{"carrier_reference":"B","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12,"size":"XXL"}`:    "size",
		`{"carrier_reference":"B","recipient":{"name":"Jane","phone":"+14165550100"}}`:                                              "destination_location_id",
		`"B"`:  "body",
		`{}`:   "recipient",
		`null`: "carrier_reference",
		`{"carrier_reference":"D-1","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}`: "carrier_reference", // it is in the list before
	}
	good := `{"carrier_reference":"D-1","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}`
	for raw, member := range malformed {
		a := announce(own, `{"packages":[`+good+`,`+raw+`]}`)
		require.Equal(t, 200, a.status, "%s: %s", raw, a.body)
		require.EqualValues(t, 1, a.json["accepted"], "%s: %s", raw, a.body)
		list := a.json["rejected"].([]any)
		require.Len(t, list, 1, "%s: %s", raw, a.body)
		require.Equal(t, []any{1.0, "VALIDATION_FAILED"}, []any{at(list[0], "index"), at(list[0], "code")})
		require.NotEmpty(t, at(list[0], "errors", member), "%s: %s", raw, a.body)
		// GraphQL rejects it alone as well, unless it has another type than GraphQL's.
		a = x.do("POST", "/api/graphql", own, `{"query":"mutation ($p: [DistributionPackageInput!]!) { thirdPartyAnnouncedPackagesCreate(packages: $p) { accepted rejected { index errors } } }","variables":{"p":[`+good+`,`+raw+`]}}`)
		if refused, ok := a.json["errors"].([]any); ok {
			path := "p.1." + member
			if raw == `"B"` || raw == `null` {
				path = "p.1" // the package as a whole
			}
			require.Contains(t, at(refused[0], "extensions", "errors"), path, "%s", a.body)
			require.Regexp(t, `:7,|"2 kg"|^"B"|^null`, raw, "%s", a.body)
			continue
		}
		out := at(a.json, "data", "thirdPartyAnnouncedPackagesCreate")
		require.EqualValues(t, 1, at(out, "accepted"), "%s: %s", raw, a.body)
		rejected := at(out, "rejected").([]any)[0]
		require.EqualValues(t, 1, at(rejected, "index"), "%s: %s", raw, a.body)
		require.NotEmpty(t, at(rejected, "errors", member), "%s: %s", raw, a.body)
	}
	require.Equal(t, before+3, total(own, ""), "those that were right, once")
	require.Equal(t, 200, x.do("DELETE", at1+"/"+at(announce(own, `{"packages":[`+good+`]}`).json["packages"].([]any)[0], "package_number").(string), own, "").status)
	require.EqualValues(t, 1, total(own, "?carrier_reference=A-3"))
	require.EqualValues(t, 0, total(own, "?carrier_reference=A-2"))
	require.EqualValues(t, 1, total(own, "?member_number=M-204"))

	// Another carrier, of another business: the same reference is another package, and a site
	// of others is none.
	stranger := x.w.Stranger
	require.EqualValues(t, 0, total(stranger, ""))
	require.Equal(t, "SITE_NOT_FOUND", at(announce(stranger, announcement("A-1")).json["rejected"].([]any)[0], "code"))
	none := x.do("GET", at1+"/CPD-PKG-987654", stranger, "").body
	for _, method := range []string{"GET", "DELETE"} {
		for _, token := range []string{stranger} {
			a := x.do(method, at1+"/"+number, token, "")
			require.Equal(t, 404, a.status)
			require.Equal(t, "ANNOUNCED_PACKAGE_NOT_FOUND", a.json["code"], "%s %s", none, a.body)
		}
	}
	for _, wrong := range []string{"1", "CPD-PKG-", "CPD-PKG-007781", "CPD-PKG--1", "CPD-PKG-99999999999999999999"} {
		require.Equal(t, 404, x.do("GET", at1+"/"+wrong, own, "").status, wrong)
	}

	// Staff see them by site, and the carrier withdraws.
	staff := x.token(cloud.ClientAdmin)
	seen := x.do("GET", "/api/v1/package-distribution/packages?location_id=12", staff, "")
	require.EqualValues(t, before+2, seen.json["total"], "%s", seen.body)
	require.EqualValues(t, 0, x.do("GET", "/api/v1/package-distribution/packages", x.w.OtherAdmin, "").json["total"])
	require.Equal(t, 200, x.do("GET", "/api/v1/package-distribution/packages/"+number, staff, "").status)
	require.Equal(t, 200, x.do("DELETE", at1+"/"+strings.ToLower(number), own, "").status)
	require.Equal(t, 404, x.do("DELETE", at1+"/"+number, own, "").status)
	require.EqualValues(t, 1, announce(own, strings.Replace(announcement("A-1"), `"weight":2`, `"weight":3`, 1)).json["accepted"], "its reference is free again")
}

// Callers that announce the same package at once get the same one.
func TestAPackageIsAnnouncedOnceByManyCallers(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	numbers := map[any]int{}
	for range 8 {
		all.Go(func() {
			a := x.do("POST", partner+"/announced-packages", x.token(provider), announcement("SAME", "SAME-2"))
			mu.Lock()
			defer mu.Unlock()
			for _, p := range a.json["packages"].([]any) {
				numbers[at(p, "package_number")]++
			}
		})
	}
	all.Wait()
	require.Len(t, numbers, 2, "%v", numbers)
	for _, n := range numbers {
		require.Equal(t, 8, n)
	}
}

// Cabinets stand at sites of their own business.
func TestCabinetsStandAtSites(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	staff := x.token(cloud.ClientAdmin)
	edit := func(token, body string) answer { return x.do("PATCH", "/api/v1/smart-lockers/devices/88", token, body) }
	require.EqualValues(t, 12, at(edit(staff, `{"location_id":12}`).json, "device", "location_id"))
	require.EqualValues(t, 12, at(x.do("GET", partner+"/lockers/88", x.token(provider), "").json, "locker", "location_id"))
	a := edit(staff, `{"location_id":987654}`)
	require.Equal(t, "SITE_NOT_FOUND", a.json["code"], "%s", a.body)
	require.Nil(t, at(edit(staff, `{"location_id":0}`).json, "device", "location_id"))
	b := x.do("POST", "/api/v1/sites", staff, `{"name":"Front St Lobby","address":"2 King St"}`)
	require.Equal(t, "SITE_EXISTS", b.json["code"], "%s", b.body)
	hours := x.do("PATCH", "/api/v1/sites/12", staff, `{"opening_hours":[{"day":1,"open":"20:00","close":"08:00"}]}`)
	require.Equal(t, 422, hours.status)
	require.NotNil(t, at(hours.json, "errors", "opening_hours.0.close"), "%s", hours.body)
	require.Equal(t, 404, x.do("PATCH", "/api/v1/sites/12", x.w.OtherAdmin, `{"name":"Mine"}`).status)
	require.EqualValues(t, 1, x.do("GET", "/api/v1/sites", x.token(provider), "").json["total"], "carriers see where to")
	require.EqualValues(t, 0, x.do("GET", "/api/v1/sites", x.w.Stranger, "").json["total"])
}
