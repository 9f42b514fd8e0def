package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// byDeviceID finds the place of a device in the path of an operation.
var byDeviceID = regexp.MustCompile(`/(?:devices/\{id\}|lockers/\{device_id\}|devices/\{device_id\})(?:/|$)`)

// Other tenants and other roles are answered of a post what they are answered of a cabinet that
// is not theirs, by every operation that has a device in its path; carriers of the business
// itself are answered by theirs what they are of a device that does not exist. The post stays
// as it is.
func TestAPostOfAnotherTenantIsACabinetOfAnotherTenant(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	made := x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), `{"device_name":"Dock 3","device_code":"DOCK-3","device_type":"scan_post","address":"7 Quay Street"}`)
	post := x.id(at(made, "device", "device_id"))
	const cabinet, unknown = "88", "777777"
	before := x.do("GET", "/api/v1/smart-lockers/devices/"+post, x.token(admin), "")
	require.Equal(t, http.StatusOK, before.status, before.body)

	callers := map[string]string{"anonymous": "", "platform": x.token(cloud.PlatformAdmin)}
	for typ, token := range x.w.Others {
		callers["other "+string(typ)] = token
	}
	for _, typ := range []cloud.AccountType{cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.ClientEmployee} {
		callers["own "+string(typ)] = x.login(x.token(typ)) // an employee without any right
	}
	n, refused := 0, map[int]int{}
	for _, o := range x.table.Operations() {
		if !byDeviceID.MatchString(o.Path) {
			continue
		}
		n++
		c := x.call(o)
		about := func(device string) (string, string) {
			path := o.Path
			for _, s := range segments(o.Path, c.path) {
				v := s[1]
				if s[0] == "{device_id}" || s[0] == "{id}" {
					v = device
				}
				path = strings.Replace(path, s[0], v, 1)
			}
			return path, strings.ReplaceAll(c.body, cabinet, device)
		}
		for name, token := range callers {
			ask := func(device string) answer {
				path, body := about(device)
				a := x.do(o.Method, path, token, body, "Idempotency-Key", fmt.Sprint("k-", o.Name, name, device))
				return a
			}
			got, want := ask(post), ask(cabinet)
			if got.status < 300 { // what everybody may read
				require.Equal(t, want.status, got.status, "%s as %s", o.Name, name)
				require.NotContains(t, string(got.body), "DOCK-3", "%s as %s", o.Name, name)
				continue
			}
			refused[got.status]++
			require.Equal(t, []any{want.status, want.code()}, []any{got.status, got.code()}, "%s as %s: %s, %s", o.Name, name, got.body, want.body)
			require.NotEqual(t, "DEVICE_HAS_NO_DOORS", got.code(), "%s as %s", o.Name, name)
		}
		if strings.Contains(o.Path, "/third-party-delivery/lockers/") && !strings.Contains(o.Path, "/mock/") {
			p, body := about(post)
			u, other := about(unknown)
			got, want := x.do(o.Method, p, x.token(provider), body), x.do(o.Method, u, x.token(provider), other)
			require.Equal(t, []any{http.StatusNotFound, "DEVICE_NOT_FOUND"}, []any{got.status, got.code()}, o.Name)
			require.Equal(t, []any{want.status, want.code()}, []any{got.status, got.code()}, o.Name)
		}
	}
	require.Greater(t, n, 15, "operations with a device in their path")
	require.NotZero(t, refused[http.StatusNotFound])
	require.NotZero(t, refused[http.StatusForbidden])
	require.NotZero(t, refused[http.StatusUnauthorized])
	after := x.do("GET", "/api/v1/smart-lockers/devices/"+post, x.token(admin), "")
	require.Equal(t, string(before.body), string(after.body))

	list := x.do("GET", "/api/v1/smart-lockers/devices?device_type=scan_post", x.w.OtherAdmin, "")
	require.Equal(t, http.StatusOK, list.status)
	require.NotContains(t, string(list.body), "DOCK-3")
}
