package server

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

const devicesPath = "/api/v1/smart-lockers/devices"

// enrolment is what is answered of a cabinet that may enrol.
type enrolment struct {
	Device struct {
		ID     int64  `json:"device_id"`
		Code   string `json:"device_code"`
		Layout int    `json:"compartments"`
	}
	Enrolment struct{ Token, Line string }
	Code      string `json:"error_code"`
	Details   struct{ Scope string }
	Errors    map[string][]string
}

func cabinetBody(code string) map[string]any {
	return map[string]any{"device_name": "Pier " + code, "device_code": code, "address": "7 Quay St", "layout": "small"}
}

// The second and the third cabinet need the interface alone: REST and GraphQL give each
// its one-time token, with which it enrols once. The token is kept as a hash and is in
// no log.
func TestCabinetsAreMadeByTheInterface(t *testing.T) {
	t.Parallel()
	var log written
	releases := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	w := newAgentWorld(t, Config{ReleaseKeys: []ed25519.PublicKey{releases}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	admin := w.box.Admin.Token
	var got device.Enrolled
	enrol := func(code, token string) int {
		return call(t, "POST", w.base+"/api/v1/devices/enrol", "", map[string]any{"device_code": code, "token": token}, &got)
	}
	var second enrolment
	require.Equal(t, 201, call(t, "POST", w.base+devicesPath, admin, cabinetBody("PIER-2"), &second))
	require.Regexp(t, regexp.MustCompile(`^[0-9A-Z]{5}(-[0-9A-Z]{1,5}){5}$`), second.Enrolment.Token)
	require.Equal(t, []any{"PIER-2", 8, w.base + " PIER-2 " + second.Enrolment.Token}, []any{second.Device.Code, second.Device.Layout, second.Enrolment.Line})
	require.Equal(t, 200, call(t, "GET", fmt.Sprintf("%s%s/%d", w.base, devicesPath, second.Device.ID), admin, nil, nil))

	var third struct {
		Data   struct{ SmartLockerDeviceCreate enrolment }
		Errors []any
	}
	const mutation = `mutation { smartLockerDeviceCreate(input: {device_name: "Pier 3", device_code: "PIER-3", layout: "large"}) { device { device_id device_code compartments } enrolment { token line } } }`
	require.Equal(t, 200, call(t, "POST", w.base+"/api/graphql", admin, map[string]any{"query": mutation}, &third))
	require.Empty(t, third.Errors)
	made := third.Data.SmartLockerDeviceCreate
	require.Equal(t, 24, made.Device.Layout)

	// A lost token is replaced until the cabinet has enrolled.
	var again enrolment
	renew := fmt.Sprintf("%s%s/%d/enrolment-token", w.base, devicesPath, second.Device.ID)
	require.Equal(t, 201, call(t, "POST", renew, admin, nil, &again))
	require.NotEqual(t, second.Enrolment.Token, again.Enrolment.Token)
	require.Equal(t, 200, enrol("PIER-2", again.Enrolment.Token))
	require.Equal(t, []wire.PinnedKey{{ID: signed.KeyID(releases), Key: releases}}, got.ReleaseKeys)
	for _, token := range []string{again.Enrolment.Token, second.Enrolment.Token} {
		require.Equal(t, 401, enrol("PIER-2", token), "a token is good once, and one that was lost not at all")
	}
	require.Equal(t, 409, call(t, "POST", renew, admin, nil, &again))
	require.Equal(t, "DEVICE_ENROLLED", again.Code)
	require.Equal(t, 200, enrol("PIER-3", made.Enrolment.Token))

	for _, token := range []string{second.Enrolment.Token, made.Enrolment.Token, again.Enrolment.Token} {
		for _, form := range []string{token, strings.ReplaceAll(token, "-", "")} {
			require.NotContains(t, log.text(), form)
			require.NoError(t, filepath.WalkDir(w.s.cfg.Dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				require.False(t, bytes.Contains(b, []byte(form)), "%s holds the token", path)
				return err
			}))
		}
	}
}

// Who may make cabinets: staff of the business with lockers:write, for that business
// alone, and no agent by a tool.
func TestWhoMakesCabinets(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	try := func(path, token string, body map[string]any) (status int, out enrolment) {
		var in any
		if body != nil {
			in = body
		}
		status = call(t, "POST", w.base+path, token, in, &out)
		return status, out
	}
	var made enrolment
	require.Equal(t, 201, call(t, "POST", w.base+devicesPath, w.box.Admin.Token, cabinetBody("OWN-1"), &made))
	renew := fmt.Sprintf("%s/%d/enrolment-token", devicesPath, made.Device.ID)

	for name, x := range map[string]struct {
		token, code string
		status      int
	}{
		"nobody":     {"", "UNAUTHENTICATED", 401},
		"contractor": {w.box.Contractor.Token, "ACCOUNT_TYPE_NOT_ALLOWED", 403},
		"driver":     {w.box.Driver.Token, "ACCOUNT_TYPE_NOT_ALLOWED", 403},
		"customer":   {w.box.Customer.Token, "ACCOUNT_TYPE_NOT_ALLOWED", 403},
		"provider":   {w.box.Provider.Token, "ACCOUNT_TYPE_NOT_ALLOWED", 403},
		"small key":  {w.key(w.box.Admin.Token, "", "lockers:read"), "FORBIDDEN", 403},
	} {
		for path, body := range map[string]map[string]any{devicesPath: cabinetBody("NOT-1"), renew: nil} {
			status, out := try(path, x.token, body)
			require.Equal(t, []any{x.status, x.code}, []any{status, out.Code}, "%s at %s", name, path)
			require.Empty(t, out.Enrolment.Token)
		}
	}
	status, out := try(devicesPath, w.employee(), cabinetBody("NOT-1"))
	require.Equal(t, []any{403, "lockers:write"}, []any{status, out.Details.Scope})
	status, _ = try(devicesPath, w.employee("lockers:write"), cabinetBody("OWN-2"))
	require.Equal(t, 201, status)

	// Another business finds nothing, and a code is one cabinet's in the deployment.
	rival := w.rival()
	status, out = try(renew, rival, nil)
	require.Equal(t, []any{404, "DEVICE_NOT_FOUND"}, []any{status, out.Code})
	status, out = try(devicesPath+"/999999/enrolment-token", rival, nil)
	require.Equal(t, []any{404, "DEVICE_NOT_FOUND"}, []any{status, out.Code})
	status, out = try(devicesPath, rival, cabinetBody("OWN-1"))
	require.Equal(t, 422, status)
	require.Contains(t, out.Errors, "device_code")
	for field, value := range map[string]any{"device_name": " ", "device_code": "ä b", "layout": "huge", "address": strings.Repeat("x", 201)} {
		body := cabinetBody("OWN-9")
		body[field] = value
		status, out = try(devicesPath, w.box.Admin.Token, body)
		require.Equal(t, 422, status, field)
		require.Contains(t, out.Errors, field)
		require.Len(t, out.Errors, 1)
	}

	// An agent gets no credential.
	const mutation = `mutation { smartLockerDeviceCreate(input: {device_name: \"x\", device_code: \"TOOL-1\", layout: \"small\"}) { enrolment { token } } }`
	got := w.on("/mcp/developer", "run_graphql_query", `{"query":"`+mutation+`"}`, "Authorization", w.box.Admin.Token)
	require.NotContains(t, string(got.raw), `"token":`)
	_, err := w.s.Store.FindDeviceByCode(t.Context(), "TOOL-1")
	require.ErrorIs(t, err, cloud.ErrNotFound)
	for _, path := range servers {
		list := w.post(path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", w.box.Admin.Token)
		require.NotRegexp(t, `"name":"[a-z_]*(enrol|token)|"enrolment`, string(list.raw))
	}
	key := w.key(w.box.Admin.Token, "full")
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		s, err := w.s.findToken(t.Context(), auth.Hash(key))
		s.Token.Policy.Approval = cloud.AskAll
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{s.Token}}}, err
	}))
	status, out = try(devicesPath, key, cabinetBody("HELD-1"))
	require.Equal(t, []any{403, "APPROVAL_NOT_POSSIBLE"}, []any{status, out.Code}, "a token is not made to lie in an approval")
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "HELD-1 ")
}

// employee is a session of an employee with some scopes.
func (w *agentWorld) employee(scopes ...string) string {
	w.t.Helper()
	s, err := w.s.findToken(w.t.Context(), auth.Hash(w.box.Staff.Token))
	require.NoError(w.t, err)
	s.Account.Permissions = scopes
	require.NoError(w.t, w.s.Store.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}}, nil
	}))
	return w.box.Staff.Token
}

// rival is a token of another business's administrator.
func (w *agentWorld) rival() string {
	w.t.Helper()
	text := auth.NewToken()
	require.NoError(w.t, w.s.Store.Decide(w.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		const id = 777_001
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: id, Code: "rival", Name: "Rival"}},
			Accounts: []cloud.Account{{ID: id, BusinessID: id, Type: cloud.ClientAdmin, Email: "eve@rival.example", Name: "Eve", Enabled: true, CreatedAt: time.Now().UTC()}},
			Tokens:   []cloud.Token{{Hash: auth.Hash(text), AccountID: id, ID: id, Name: "k", CreatedAt: time.Now().UTC()}}}}, nil
	}))
	return text
}
