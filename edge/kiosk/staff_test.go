package kiosk

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/wire"
)

func with(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// signIn types a right staff code and gives the session's token.
func signIn(t *testing.T, k *Kiosk) string {
	t.Helper()
	_, body, _ := call(k, "POST", "/api/code", `{"code":"48151623"}`)
	var r Result
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	require.NotEmpty(t, r.StaffToken, body)
	return r.StaffToken
}

// Doors' states, records and versions are for a right staff code alone.
func TestStaffSeeMoreOnlyInTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKiosk(&fake{state: newState(), answer: locker.Answer{Outcome: wire.CodeOK}}, io.Discard)
		k.cfg.Health = func() wire.Health { return wire.Health{Uplink: map[string]uint64{"connects": 2}} }
		status := func(method, path, token string) int {
			body := ""
			if method == "POST" {
				body = "{}"
			}
			got, _, _ := call(k, method, path, body, with(token))
			return got
		}
		_, body, _ := call(k, "GET", "/api/state", "")
		for _, never := range []string{"connects", `"waiting"`, `"state":`, `"blocked"`, "code_list", "config_version", "versions"} {
			require.NotContains(t, body, never)
		}
		require.Equal(t, 404, status("GET", "/api/health", pageKey))
		for _, token := range []string{"", "x"} {
			require.Equal(t, 401, status("GET", "/api/staff", token))
			require.Equal(t, 401, status("POST", "/api/staff/stay", token))
			require.Equal(t, 401, status("POST", "/api/staff/leave", token))
		}
		token := signIn(t, k)
		_, body, _ = call(k, "GET", "/api/staff", "", with(token))
		require.Contains(t, body, `"uplink":{"connects":2}`)
		require.Contains(t, body, `"state":"locked"`)

		for range 5 { // looking is no act
			time.Sleep(20 * time.Second)
			require.Equal(t, 200, status("GET", "/api/staff", token))
		}
		time.Sleep(20 * time.Second)
		require.Equal(t, 401, status("GET", "/api/staff", token), "two minutes without an act")
		require.Equal(t, 401, status("POST", "/api/staff/stay", token), "what is over stays so")

		token = signIn(t, k)
		for range 5 {
			time.Sleep(100 * time.Second)
			require.Equal(t, 200, status("POST", "/api/staff/stay", token))
		}
		next := signIn(t, k)
		require.Equal(t, 401, status("GET", "/api/staff", token), "one at a time")
		require.Equal(t, 401, status("POST", "/api/staff/leave", token), "nor does it end the next one")
		require.Equal(t, 200, status("POST", "/api/staff/leave", next))
		require.Equal(t, 401, status("GET", "/api/staff", next))

		require.Equal(t, 401, status("POST", "/api/staff/stay", pageKey), "programs only look")
		k.cfg.Key = ""
		require.Equal(t, 401, status("GET", "/api/staff", ""), "without a key none is right")
	})
}

// A scanner's answer goes to every page: no session begins by it.
func TestAScannerBeginsNoStaffSession(t *testing.T) {
	t.Parallel()
	k := newKiosk(&fake{state: newState()}, io.Discard)
	notices, stop, _ := k.listen()
	defer stop()
	k.Scanned(scanner.Result{Outcome: scanner.CodeTried, Answer: locker.Answer{Outcome: wire.CodeOK}})
	require.Equal(t, &Result{Outcome: staffCode}, (<-notices).Answer)
	require.Empty(t, k.session.token)
}

func TestThePagesKeyIsTheAgentsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadKey(dir)
	require.ErrorContains(t, err, "read the page's key")
	first, err := NewKey(dir)
	require.NoError(t, err)
	second, err := NewKey(dir)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	got, err := ReadKey(dir)
	require.NoError(t, err)
	require.Equal(t, second, got)
	info, err := os.Stat(filepath.Join(dir, keyFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	_, err = NewKey(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "write the page's key")
}

func TestAnOperatorIsRefusedWithEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	require.NoError(t, Operator{}.Check())
	require.NoError(t, Operator{Name: "Acme Logistik 物流", Phone: "+1 (416) 555-0100", Email: "help@acme.example", Color: "#14493f"}.Check())
	err := Operator{Name: "a\nb", Phone: "call me", Email: "Ada <ada@x.example>", Color: "#cccccc"}.Check()
	for _, part := range []string{"kiosk.name", "kiosk.phone", "kiosk.email", "kiosk.color", "4.5:1"} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorContains(t, Operator{Color: "red"}.Check(), "#rrggbb")
	require.InDelta(t, 21, contrast("#000000", "#ffffff"), 1e-9)
	require.InDelta(t, 4.54, contrast("#767676", "#ffffff"), 0.01)
	k := newKiosk(&fake{state: newState()}, io.Discard)
	k.cfg.Operator = Operator{Name: "Acme", Phone: "123"}
	_, body, _ := call(k, "GET", "/operator.json", "")
	require.JSONEq(t, `{"name":"Acme","phone":"123"}`, body)
}

// Staff have walked away, and the next person holds their code to the scanner: what they see is
// their own door, and the staff's view is over.
func TestACodeOfAnotherPersonEndsTheStaffSession(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState(), answer: locker.Answer{Outcome: wire.CodeOK, Session: "ss_1"}}
	k := newKiosk(f, io.Discard)
	notices, stop, _ := k.listen()
	defer stop()
	of := func(session string) scanner.Result {
		return scanner.Result{Outcome: scanner.CodeTried, Answer: locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_1", Session: session}}
	}
	token := signIn(t, k)
	k.Scanned(of("ss_1"))
	require.False(t, (<-notices).Answer.Visitor)
	require.True(t, k.session.has(token), "a signed code of staff")
	k.Scanned(scanner.Result{Outcome: scanner.CodeTried, Answer: locker.Answer{Outcome: wire.CodeUnknown}})
	<-notices
	require.True(t, k.session.has(token), "a wrong code opens nothing")
	k.Scanned(of(""))
	require.True(t, (<-notices).Answer.Visitor)
	require.False(t, k.session.has(token))

	for path, body := range map[string]string{"/api/scan": `{"text":"PU:CAB-1:123456"}`, "/api/code": `{"code":"123456"}`} {
		f.answer = locker.Answer{Outcome: wire.CodeOK, Session: "ss_2"}
		token = signIn(t, k)
		f.answer = locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_2"}
		_, got, _ := call(k, "POST", path, body, with(token))
		require.Contains(t, got, `"visitor":true`, path)
		require.False(t, k.session.has(token), path)
	}
	token = signInAgain(t, k, f)
	f.answer = locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_3"}
	_, got, _ := call(k, "POST", "/api/staff/next", "{}", with(token))
	require.NotContains(t, got, "visitor")
	require.True(t, k.session.has(token), "the next door of the staff's own")
}

func signInAgain(t *testing.T, k *Kiosk, f *fake) string {
	f.answer = locker.Answer{Outcome: wire.CodeOK, Session: "ss_3"}
	return signIn(t, k)
}
