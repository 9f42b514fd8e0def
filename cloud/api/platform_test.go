package api_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// Without a pass an operator of the platform is in no business: every operation of
// one is closed, on both faces, and a parcel's personal data is what everybody sees.
func TestAnOperatorWithoutAPassIsInNoBusiness(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	operator := x.token(cloud.PlatformAdmin)
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: x.graph.Schema()})
	require.Nil(t, err)
	closed := 0
	for _, o := range x.table.Operations() {
		if o.NoToken || o.Types == nil || strings.HasPrefix(o.Name, "platform.") || strings.HasPrefix(o.Name, "user.") || o.Name == "admin.features.grant" {
			continue
		}
		require.NotContains(t, o.Types, cloud.PlatformAdmin, o.Name)
		body := ""
		if o.HasBody() || o.Raw() != nil {
			body = "{}"
		}
		a := x.do(o.Method, unknown(o.Path, "42"), operator, body)
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", a.code(), "%s: %s", o.Name, a.body)
		if o.GraphQL != nil {
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", x.ask(x.field(schema, o, call{}), operator).code(), o.Name)
		}
		closed++
	}
	require.Greater(t, closed, 120)
	for _, path := range []string{"/api/v1/otep/trackings/" + webtest.Waiting, "/api/v1/tracking/" + webtest.Waiting} {
		require.NotContains(t, string(x.do("GET", path, operator, "").body), "Jane Smith", path)
	}
}

// A pass lets in as an administrator for its hours, is seen and ended by the
// business, and reaches nothing that would outlast it.
func TestAPassLetsInUntilItEnds(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	operator := x.token(cloud.PlatformAdmin)
	for body, field := range map[string]string{`{"reason":" ","hours":1}`: "reason", `{"reason":"x","hours":5}`: "hours", `{"reason":"x"}`: "hours"} {
		a := x.do("POST", "/api/v1/platform/businesses/42/passes", operator, body)
		require.Equal(t, 422, a.status, "%s", a.body)
		require.NotNil(t, at(a.json, "errors", field), "%s", a.body)
	}
	require.Equal(t, "BUSINESS_NOT_FOUND", x.do("POST", "/api/v1/platform/businesses/987654/passes", operator, `{"reason":"x","hours":1}`).code())

	id, token := x.pass()
	order, _ := x.order(cloud.OrderNew)
	require.Equal(t, 200, x.do("GET", "/api/v1/orders/"+order, token, "").status)
	x.made("PATCH", "/api/v1/orders/"+order, token, `{"note":"looked into it"}`)
	lines, _ := x.made("GET", "/api/v1/audit?actor=account:6", x.token(admin), "")["lines"].([]any)
	require.NotEmpty(t, lines, "the business sees what the operator did")
	hooks := x.do("PUT", "/api/v1/webhook-settings", token, `{"webhook_sign_secret":"whk-secret-0123456789-abcdef-wxyz"}`)
	require.Equal(t, "PASS_NOT_ALLOWED", hooks.code(), "an operator would know the secret of what is signed, and be sent events for good")
	batch := x.do("POST", "/api/v1/client/batchOrderCreateAsync", token, x.table.Find("orders.batch_async").Example)
	require.Equal(t, "PASS_NOT_ALLOWED", batch.code(), "it goes on in the background, where the operator is of no business")
	for _, body := range []string{`{"second_factor_required":false}`, `{"allow_self_approval":true}`} {
		require.Equal(t, "PASS_NOT_ALLOWED", x.do("PUT", "/api/v1/settings", token, body).code(), body)
	}
	x.made("PUT", "/api/v1/settings", token, `{"signature_required":true}`)
	for _, o := range x.table.Operations() {
		if o.Types == nil || o.NoToken {
			continue
		}
		reaches := slices.Contains(o.Types, admin) && !o.Secret && !o.NoPass && !slices.Contains(o.Types, cloud.PlatformAdmin)
		body := ""
		if o.HasBody() || o.Raw() != nil {
			body = "{}"
		}
		a := x.do(o.Method, unknown(o.Path, "987654"), token, body)
		if reaches {
			require.NotContains(t, []string{"PASS_NOT_ALLOWED", "ACCOUNT_TYPE_NOT_ALLOWED", "TOKEN_INVALID"}, a.code(), "%s: %s", o.Name, a.body)
		} else {
			require.Equal(t, 403, a.status, "%s: %s", o.Name, a.body)
		}
	}
	seen := x.made("GET", "/api/v1/operator-passes", x.token(admin), "")
	require.Equal(t, "Ticket 1187", at(seen, "passes").([]any)[0].(map[string]any)["reason"])
	require.EqualValues(t, 0, x.made("GET", "/api/v1/operator-passes", x.w.OtherAdmin, "")["total"])
	require.Equal(t, "PASS_NOT_FOUND", x.do("POST", "/api/v1/operator-passes/"+id+"/end", x.w.OtherAdmin, "{}").code())
	require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", x.do("POST", "/api/v1/operator-passes/"+id+"/end", x.token(cloud.ClientEmployee), "{}").code())
	x.made("POST", "/api/v1/operator-passes/"+id+"/end", x.token(admin), "{}")
	require.Equal(t, "TOKEN_INVALID", x.do("GET", "/api/v1/orders/"+order, token, "").code())
	require.Equal(t, "PASS_ENDED", x.do("POST", "/api/v1/platform/passes/"+id+"/end", operator, "{}").code())
}

// A suspended business is shut for its people, keys and partners, on both faces and at
// login; its parcels are tracked on, and a pass lets in. Two operators at once: one
// suspends.
func TestASuspendedBusinessIsShut(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	operator := x.token(cloud.PlatformAdmin)
	_, pass := x.pass()
	shut := func(want bool) {
		t.Helper()
		for typ, token := range x.w.Tokens {
			if typ == cloud.PlatformAdmin {
				continue
			}
			a := x.do("GET", "/api/v1/user/me", token, "")
			require.Equal(t, want, a.code() == "BUSINESS_SUSPENDED" && a.status == 403, "%s: %s", typ, a.body)
			require.Equal(t, want, x.ask("query { me { id } }", token).code() == "BUSINESS_SUSPENDED", typ)
		}
		a := x.do("POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, x.w.Emails[cloud.ClientEmployee], webtest.Password))
		require.Equal(t, want, a.code() == "BUSINESS_SUSPENDED", "%s", a.body)
		require.Equal(t, 200, x.do("GET", "/api/v1/otep/trackings/"+webtest.Waiting, "", "").status, "parcels are tracked on")
		require.Equal(t, 200, x.do("GET", "/api/v1/user/me", x.w.OtherAdmin, "").status)
		require.Equal(t, 200, x.do("GET", "/api/v1/settings", pass, "").status)
	}
	shut(false)
	require.Equal(t, 422, x.do("POST", "/api/v1/platform/businesses/42/suspend", operator, `{"reason":"  "}`).status)
	codes := make([]string, 6)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			codes[i] = x.do("POST", "/api/v1/platform/businesses/42/suspend", operator, `{"reason":"Unpaid"}`).code()
		})
	}
	wg.Wait()
	slices.Sort(codes)
	require.Equal(t, []string{"", "BUSINESS_SUSPENDED", "BUSINESS_SUSPENDED", "BUSINESS_SUSPENDED", "BUSINESS_SUSPENDED", "BUSINESS_SUSPENDED"}, codes)
	shut(true)
	e, err := x.w.DB.FindEndpoint(t.Context(), 5)
	require.NoError(t, err)
	require.True(t, e.Suspended, "webhooks wait")
	a := x.do("GET", "/api/v1/user/me", x.token(admin), "")
	require.Equal(t, "Unpaid", at(a.json, "details", "reason"))
	x.made("POST", "/api/v1/platform/businesses/42/resume", operator, "{}")
	shut(false)
	require.Equal(t, "BUSINESS_NOT_SUSPENDED", x.do("POST", "/api/v1/platform/businesses/42/resume", operator, "{}").code())
	own := x.made("GET", "/api/v1/platform/audit", operator, "")
	require.Contains(t, fmt.Sprint(own["lines"]), "business_suspended")
}

// Limits of a business hold: cabinets beyond them, and calls beyond a minute's.
func TestLimitsOfABusinessHold(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	operator := x.token(cloud.PlatformAdmin)
	x.made("PATCH", "/api/v1/platform/businesses/42", operator, `{"limits":{"cabinets":3}}`)
	x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf("PIER-L1"))
	require.Equal(t, "CABINET_LIMIT_REACHED", x.do("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf("PIER-L2")).code())
	x.made("PATCH", "/api/v1/platform/businesses/42", operator, `{"limits":{"cabinets":0,"requests_per_minute":5}}`)
	x.made("PATCH", "/api/v1/platform/businesses/42", operator, `{"name":"Acme"}`)
	limited := 0
	for range 12 {
		if x.do("GET", "/api/v1/user/me", x.token(admin), "").code() == "RATE_LIMITED" {
			limited++
		}
	}
	require.GreaterOrEqual(t, limited, 6)
	require.Equal(t, 200, x.do("GET", "/api/v1/user/me", x.w.OtherAdmin, "").status)
}

// A business is removed by the digest of what was shown, its code and a word, and only
// when it is suspended and its cabinets are empty; what changed since is shown anew. An
// export is an archive that tar reads, and gone with the business.
func TestARemovalNeedsWhatWasShown(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	operator := x.token(cloud.PlatformAdmin)
	id := x.business()
	path := "/api/v1/platform/businesses/" + id
	remove := func(digest, code string) answer {
		return x.do("POST", path+"/removal", operator, fmt.Sprintf(`{"digest":%q,"code":%q,"reason":"Over","confirm":true}`, digest, code))
	}
	first := x.made("GET", path+"/removal", operator, "")
	digest, code := first["digest"].(string), at(first, "business", "code").(string)
	require.Equal(t, "BUSINESS_NOT_SUSPENDED", remove(digest, code).code())
	x.made("POST", path+"/suspend", operator, `{"reason":"Over"}`)
	require.Equal(t, "APPROVAL_CHANGED", remove(digest, code).code(), "it was shown before it was suspended")
	shown := x.made("GET", path+"/removal", operator, "")
	digest = shown["digest"].(string)
	require.Equal(t, "APPROVAL_CHANGED", remove(digest, "another").code())
	require.Equal(t, 422, x.do("POST", path+"/removal", operator, fmt.Sprintf(`{"digest":%q,"code":%q,"reason":"Over"}`, digest, code)).status, "no word")
	require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", x.do("POST", path+"/removal", x.token(admin), "{}").code())

	x.made("POST", "/api/v1/platform/businesses/42/suspend", operator, `{"reason":"Over"}`)
	full := x.made("GET", "/api/v1/platform/businesses/42/removal", operator, "")
	a := x.do("POST", "/api/v1/platform/businesses/42/removal", operator, fmt.Sprintf(`{"digest":%q,"code":"acme","reason":"Over","confirm":true}`, full["digest"]))
	require.Equal(t, "PARCELS_INSIDE", a.code(), "%s", a.body)

	export := x.id(at(x.made("POST", "/api/v1/platform/businesses/42/exports", operator, "{}"), "job", "job_id"))
	require.Equal(t, "EXPORT_NOT_READY", x.do("GET", "/api/v1/platform/exports/"+export+"/archive", operator, "").code())
	require.NoError(t, x.platform.Work(t.Context()))
	whole := x.do("GET", "/api/v1/platform/exports/"+export+"/archive", operator, "")
	require.Equal(t, 200, whole.status)
	names, text := unpacked(t, whole.body)
	require.Greater(t, len(names), 10)
	require.Contains(t, text, "Jane Smith")
	for _, secret := range []string{webtest.PickupCode, webtest.DeliveryCode, webtest.Secret, "argon2id", "rival"} {
		require.NotContains(t, text, secret)
	}

	job := x.id(at(x.made("POST", path+"/removal", operator, fmt.Sprintf(`{"digest":%q,"code":%q,"reason":"Over","confirm":true}`, digest, code)), "job", "job_id"))
	require.Equal(t, job, x.id(at(x.made("POST", path+"/removal", operator, fmt.Sprintf(`{"digest":%q,"code":%q,"reason":"Over","confirm":true}`, digest, code)), "job", "job_id")), "one removal at a time")
	require.Equal(t, "BUSINESS_REMOVAL_RUNNING", x.do("POST", path+"/resume", operator, "{}").code())
	require.NoError(t, x.platform.Work(t.Context()))
	require.Equal(t, "finished", at(x.made("GET", "/api/v1/platform/removals/"+job, operator, ""), "job", "status"))
	require.Equal(t, "BUSINESS_NOT_FOUND", x.do("GET", path, operator, "").code())
	require.Equal(t, 200, x.do("GET", "/api/v1/user/me", x.w.OtherAdmin, "").status)
	require.Contains(t, fmt.Sprint(x.made("GET", "/api/v1/platform/audit", operator, "")["lines"]), "business_removed")
}

// unpacked are the names and the text of an archive's files.
func unpacked(t *testing.T, raw []byte) (names []string, text string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, text
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		names, text = append(names, h.Name), text+string(body)
	}
}

// A layout in which everything is wrong answers a few kilobytes: the first members, and in
// words how many more there are, on each face.
func TestAnswersOfABadLayoutAreBounded(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	var shelves []string
	for s := range 26 {
		var grids []string
		for n := range 64 {
			grids = append(grids, fmt.Sprintf(`{"compartment_number":%d,"column":0,"row":0,"size":"HUGE"}`, s*64+n+1))
		}
		shelves = append(shelves, fmt.Sprintf(`{"code":%q,"grids":[%s]}`, string(rune('A'+s)), strings.Join(grids, ",")))
	}
	a := x.do("POST", "/api/v1/smart-lockers/devices/88/layout", x.token(admin), fmt.Sprintf(`{"config_version":1,"shelves":[%s]}`, strings.Join(shelves, ",")))
	require.Equal(t, 422, a.status, "%.300s", a.body)
	require.Less(t, len(a.body), 16<<10)
	require.LessOrEqual(t, len(a.json["errors"].(map[string]any)), 50)
	require.Contains(t, a.json["message"], "more are not right")
}
