package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
	"github.com/postern-io/postern/protocol/wiring"
)

const repo = "../.."

func secrets() access.Secrets {
	return access.Secrets{DeviceCode: "CAB-1", DeviceSecret: "device-secret-xyz", CodeSalt: bytes.Repeat([]byte{1}, 16), CodeKey: bytes.Repeat([]byte{2}, 32),
		Keys: []wire.PinnedKey{{ID: []byte{9}, Key: bytes.Repeat([]byte{3}, 32)}}, Brokers: []string{"tcp://127.0.0.1:1"}, Prefix: "tms",
		ReleaseKeys: []wire.PinnedKey{{ID: []byte{8}, Key: bytes.Repeat([]byte{4}, 32)}}}
}

func writeJSON(t *testing.T, name string, v any) {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, raw, 0o600))
}

func writeSecrets(t *testing.T, name string, mode os.FileMode) {
	raw, err := json.Marshal(secrets())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, raw, mode))
}

func file(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "edge.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func runEdge(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, strings.NewReader(stdin), &out, io.Discard)
	return out.String(), err
}

func TestTheFilesInConfigsAreInOrder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"edge.yaml", "edge-kiosk.yaml"} {
		out, err := runEdge(t, "", "-config", filepath.Join(repo, "configs", name), "-check")
		require.NoError(t, err, name)
		require.Contains(t, out, "in order: 1 lines, 1 boards")
	}
}

func TestMistakesAreNamedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	readable := filepath.Join(t.TempDir(), "secrets.json")
	writeSecrets(t, readable, 0o644)
	require.NoError(t, os.Chmod(readable, 0o644))
	broken := filepath.Join(t.TempDir(), "secrets.json")
	require.NoError(t, os.WriteFile(broken, []byte("device-secret-xyz"), 0o600))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--help", []string{"-nonsense"}},
		{"/nowhere", []string{"-config", "/nowhere"}},
		{`line 1: there is no setting "doors"`, []string{"-config", file(t, "doors: 3"), "-check"}},
		{"kiosk.listen", []string{"-check", "-kiosk-listen", "0.0.0.0:8091"}},
		{"kiosk.listen", []string{"-check", "-kiosk-listen", "8091"}},
		{"kiosk.phone \"call me\": use 3 to 32 digits", []string{"-check", "-config", file(t, "kiosk: {phone: call me}")}},
		{"4.5:1", []string{"-check", "-config", file(t, "kiosk: {name: Acme, color: '#cccccc'}\nsupply: 9")}},
		{"supply 9", []string{"-check", "-config", file(t, "kiosk: {color: red, email: x}\nsupply: 9")}},
		{"log_level", []string{"-check", "-log-level", "loud"}},
		{"store.max_mb", []string{"-check", "-config", file(t, "store: {max_mb: 1}")}},
		{"health_every", []string{"-check", "-config", file(t, "health_every: 1s")}},
		{"supply 9", []string{"-check", "-config", file(t, "supply: 9")}},
		{"tcp://host:port", []string{"-check", "-config", file(t, "lines: [{name: a, port: 'tcp://x', boards: [{name: A, family: cu16}]}]")}},
		{"name of its own", []string{"-check", "-config", file(t, "lines: [{name: a, port: /dev/x, boards: [{name: A, family: cu16},{name: A, family: cu16, address: 1}]}]")}},
		{`line 1: lines.boards.family: unknown board family "cu99"; use cu48, cu48b, cu16`, []string{"-check", "-config", file(t, "lines: [{name: a, port: /dev/x, boards: [{name: A, family: cu99}]}]")}},
		{`step "delivered": use one of picked_up, received`, []string{"-check", "-config", file(t, "scanners: [{name: a, port: /dev/x, use: labels, post: Dock, step: delivered}]")}},
		{"use codes or labels", []string{"-check", "-config", file(t, "scanners: [{name: a, port: /dev/x}]")}},
		{"set kiosk.listen, such as " + wiring.ScreenAddress, []string{"-check", "-config", file(t, "kiosk: {listen: ''}\nscanners: [{name: a, port: camera, use: codes}]")}},
		{"one port has one use", []string{"-check", "-config", file(t, "lines: [{name: a, port: /dev/x, boards: [{name: A, family: cu16}]}]\nscanners: [{name: a, port: /dev/x, use: codes}]")}},
		{"repeat_seconds -1", []string{"-check", "-config", file(t, "scanners: [{name: a, port: /dev/x, use: labels, post: Dock, step: received, repeat_seconds: -1}]")}},
		{`scanner "a": batch: columns ["code" "HH:mm"]: MM stands there 0 times`, []string{"-check", "-config", file(t, "scanners: [{name: a, port: /dev/x, use: labels, post: Dock, step: received, batch: {columns: [code, 'HH:mm']}}]")}},
		{"tls_roots", []string{"-check", "-tls-roots", file(t, "no certificate")}},
		{"chmod 600", []string{"-check", "-secrets", readable}},
		{"not the JSON", []string{"-check", "-secrets", broken}},
		{"run edge enrol", []string{"-data", t.TempDir()}},
	} {
		_, err := runEdge(t, "", c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
		require.NotContains(t, err.Error(), "device-secret-xyz")
	}
}

// The browser of the screen shows the page, and may use the camera, at the address that
// settings and their hints name.
func TestTheBrowserOfTheScreenMayUseTheCameraWhereThePageIs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(repo, "deploy", "kiosk", "policy.json"))
	require.NoError(t, err)
	var policy struct{ VideoCaptureAllowedUrls []string }
	require.NoError(t, json.Unmarshal(b, &policy))
	page := "http://" + wiring.ScreenAddress
	require.Contains(t, policy.VideoCaptureAllowedUrls, page)
	for _, name := range []string{"deploy/kiosk/screen", "deploy/kiosk/kiosk.env"} {
		b, err := os.ReadFile(filepath.Join(repo, name))
		require.NoError(t, err)
		require.Contains(t, string(b), page+"/", name)
	}
	s, err := load(options{Config: filepath.Join(repo, "configs", "edge.yaml")})
	require.NoError(t, err)
	require.Equal(t, wiring.ScreenAddress, s.Kiosk.Listen)
}

// A post that scans labels runs without lines, and says what it is.
func TestAPostOfScanners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSecrets(t, filepath.Join(dir, "secrets.json"), 0o600)
	config := filepath.Join(repo, "configs", "edge-post.yaml")
	out, err := runEdge(t, "", "-config", config, "-data", dir, "-secrets", filepath.Join(dir, "secrets.json"), "-check")
	require.NoError(t, err)
	require.Contains(t, out, "in order: 0 lines, 0 boards")
	require.Contains(t, out, "scanner dock at /dev/serial/by-id/usb-Scanner-if00: labels at Dock 3, step received, the same within 5s is one scan\n")
	ctx, stop := context.WithCancel(t.Context())
	var log lines
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-config", config, "-data", dir, "-secrets", filepath.Join(dir, "secrets.json"), "-kiosk-listen", ""}, strings.NewReader(""), io.Discard, &log)
	}()
	ring.Await(t, func() bool { return log.find("the scanner is away", "port") != "" })
	require.NotEmpty(t, log.find("this is a post that scans labels; it has no doors", "msg"))
	require.Empty(t, log.find("no line to lock controllers is set, so no door opens", "msg"))
	stop()
	require.NoError(t, <-done)
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	out, err := runEdge(t, "", "-help")
	require.NoError(t, err)
	require.Contains(t, out, "support-bundle")
	out, err = runEdge(t, "", "-version")
	require.NoError(t, err)
	require.Contains(t, out, "edge ")
}

// office plays the cloud's side of enrolment over TLS.
func office(t *testing.T, answer func(body map[string]string) (int, any)) (url, roots string, calls *int) {
	calls = new(int)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls++
		var body map[string]string
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/devices/enrol" || json.NewDecoder(r.Body).Decode(&body) != nil {
			http.NotFound(w, r)
			return
		}
		status, v := answer(body)
		if to, ok := v.(string); ok {
			http.Redirect(w, r, to, status)
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(srv.Close)
	roots = filepath.Join(t.TempDir(), "roots.pem")
	require.NoError(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return srv.URL, roots, calls
}

func enrolled(result bool) map[string]any {
	raw, _ := json.Marshal(secrets())
	out := map[string]any{}
	_ = json.Unmarshal(raw, &out)
	out["result"] = result
	return out
}

func TestEnrolmentWritesSecretsOnce(t *testing.T) {
	t.Parallel()
	var keys []string
	url, roots, calls := office(t, func(body map[string]string) (int, any) {
		keys = append(keys, body["public_key"])
		if body["device_code"] != "CAB-1" || body["token"] != "one-time" {
			return 401, map[string]any{"result": false, "error_code": "TOKEN_INVALID", "message": "no"}
		}
		return 200, enrolled(true)
	})
	name := filepath.Join(t.TempDir(), "deep", "secrets.json")
	args := []string{"-secrets", name, "-tls-roots", roots, "enrol", url, "-device", "CAB-1"}
	out, err := runEdge(t, "one-time\n", args...)
	require.NoError(t, err)
	require.NotContains(t, out, "device-secret-xyz")
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	got, err := readSecrets(name)
	require.NoError(t, err)
	key, err := signed.NewDeviceKey("CAB-1", got.DeviceKey)
	require.NoError(t, err)
	require.Equal(t, base64.StdEncoding.EncodeToString(key.Public()), keys[0], "the public half alone has travelled")
	want := secrets()
	want.CloudURL, want.DeviceKey = url, got.DeviceKey
	require.Equal(t, want, got)

	_, err = runEdge(t, "one-time\n", args...)
	require.ErrorContains(t, err, "--replace")
	require.Equal(t, 1, *calls, "the token is not used when its answer could not be kept")
	_, err = runEdge(t, "one-time\n", append(args, "-replace")...)
	require.NoError(t, err)
	require.NotEqual(t, keys[0], keys[1], "another enrolment, another key")
}

func TestEnrolmentThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	other := enrolled(true)
	other["device_code"] = "CAB-2"
	short := enrolled(true)
	short["code_key"] = "AAAA"
	for want, a := range map[string]struct {
		status int
		v      any
	}{
		"TOKEN_INVALID":         {401, map[string]any{"result": false, "error_code": "TOKEN_INVALID", "message": "no"}},
		"not an enrolment":      {200, []int{1}},
		"answer 302":            {302, "https://127.0.0.1:1/"},
		"answer 500":            {500, enrolled(true)},
		"answer 200":            {200, enrolled(false)},
		`device "CAB-2"`:        {200, other},
		"code_key":              {200, short},
		strings.Repeat("x", 50): {422, map[string]any{"error_code": "E", "message": strings.Repeat("x", 5000)}},
	} {
		url, roots, _ := office(t, func(map[string]string) (int, any) { return a.status, a.v })
		name := filepath.Join(t.TempDir(), "secrets.json")
		_, err := runEdge(t, "one-time\n", "-secrets", name, "-tls-roots", roots, "enrol", url, "-device", "CAB-1")
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 600)
		require.NotContains(t, err.Error(), "one-time")
		require.NotContains(t, err.Error(), "device-secret-xyz")
		require.NoFileExists(t, name)
	}
	url, _, calls := office(t, func(map[string]string) (int, any) { return 200, enrolled(true) })
	for want, args := range map[string][]string{
		"certificate": {"enrol", url, "-device", "CAB-1"},
		"not https":   {"enrol", "http://tms.example", "-device", "CAB-1"},
		"not an addr": {"enrol", "tms", "-device", "CAB-1"},
		"device code": {"enrol", url, "-device", "../x"},
	} {
		_, err := runEdge(t, "one-time\n", append([]string{"-data", t.TempDir()}, args...)...)
		require.ErrorContains(t, err, want)
	}
	_, err := runEdge(t, "", "-data", t.TempDir(), "enrol", url, "-device", "CAB-1")
	require.ErrorContains(t, err, "no token")
	require.Zero(t, *calls)
}

// Brokers of another computer's loopback are reported while a person is there.
func TestEnrolmentWarnsOfBrokersThatCannotBeReached(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cloud   string
		brokers []string
		warns   bool
	}{
		{"https://cloud.example", []string{"tcp://127.0.0.1:11900"}, true},
		{"https://cloud.example", []string{"tcp://localhost:1883", "ws://[::1]:2/mqtt"}, true},
		{"https://cloud.example", []string{"tcp://127.0.0.1:1883", "ssl://cloud.example:8883"}, false},
		{"http://127.0.0.1:8080", []string{"tcp://127.0.0.1:1883"}, false},
		{"http://localhost", []string{"tcp://127.0.0.1:1883"}, false},
		{"https://cloud.example", nil, false},
	} {
		got := unreachable(access.Secrets{CloudURL: c.cloud, Brokers: c.brokers})
		require.Equal(t, c.warns, strings.HasPrefix(got, "warning: this cabinet will not connect"), "%v", c)
		if c.warns {
			require.Contains(t, got, strings.Join(c.brokers, ", "))
			require.True(t, strings.HasSuffix(got, "\n"))
		}
	}
}

// The line of the QR code is all that is needed: a scanner types it, or a person.
func TestEnrolmentByTheScannedLine(t *testing.T) {
	t.Parallel()
	var asked []map[string]string
	url, roots, calls := office(t, func(body map[string]string) (int, any) {
		asked = append(asked, body)
		return 200, enrolled(true)
	})
	for _, c := range []struct {
		stdin string
		args  []string
	}{
		{url + " CAB-1 TOKEN-1\r\n", nil},
		{"  " + url + "  CAB-1  TOKEN-1", nil},
		{url + " CAB-1 TOKEN-1\n", []string{url, "-device", "CAB-1"}},
		{"", []string{url, "CAB-1", "TOKEN-1"}}, // pasted behind the command
		{"", []string{url + " CAB-1 TOKEN-1"}},
		{"TOKEN-1\n", []string{url, "CAB-1"}},
		{"", []string{url, "CAB-1", "TOKEN-1", "-device", "CAB-1"}},
	} {
		name := filepath.Join(t.TempDir(), "secrets.json")
		out, err := runEdge(t, c.stdin, append([]string{"-secrets", name, "-tls-roots", roots, "enrol"}, c.args...)...)
		require.NoError(t, err)
		require.Contains(t, out, "enrolled as CAB-1")
		require.Contains(t, out, "next: edge --secrets ", "the next step is said")
		require.Contains(t, out, "--line ADDRESS", "these settings open no door")
		require.FileExists(t, name)
		last := asked[len(asked)-1]
		require.Equal(t, []string{"CAB-1", "TOKEN-1"}, []string{last["device_code"], last["token"]})
	}
	before := *calls
	for want, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"separated by spaces":   {"TOKEN-1\n", nil},
		"no token":              {"\n", nil},
		"not https":             {"http://tms.example CAB-1 TOKEN-1\n", nil},
		"device code":           {url + " ../x TOKEN-1\n", nil},
		"the code is for CAB-2": {url + " CAB-2 TOKEN-1\n", []string{url, "-device", "CAB-1"}},
		"the code is for CAB-1 at https://other.example, not for CAB-1 at": {"https://other.example CAB-1 TOKEN-1\n", []string{url, "-device", "CAB-1"}},
		"CAB-2 and CAB-1":      {"", []string{url, "CAB-2", "TOKEN-1", "-device", "CAB-1"}},
		"two tokens":           {"", []string{url, "CAB-1", "TOKEN-1", "-token", "TOKEN-12"}},
		"unexpected argument":  {"", []string{url, "CAB-1", "TOKEN-1", "more"}},
		"line of the page":     {"", []string{url + " CAB-1"}},
		`device code ""`:       {url + " CAB-1 TOKEN-1\n", []string{url}},
		`"" is not an address`: {url + " CAB-1 TOKEN-1\n", []string{"-device", "CAB-1"}},
	} {
		_, err := runEdge(t, c.stdin, append([]string{"-data", t.TempDir(), "-tls-roots", roots, "enrol"}, c.args...)...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "TOKEN-1")
	}
	require.Equal(t, before, *calls)
	help, err := runEdge(t, "", "enrol", "-help")
	require.NoError(t, err)
	for _, words := range []string{"enrol [<url> [<code> [<one-time-token>]]]", "standard input", "others of this machine can see"} {
		require.Contains(t, strings.Join(strings.Fields(help), " "), words)
	}
}

// lines is a log that tests can read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) find(msg, field string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range strings.SplitSeq(l.buf.String(), "\n") {
		var m map[string]any
		if json.Unmarshal([]byte(s), &m) == nil && m["msg"] == msg {
			return fmt.Sprint(m[field])
		}
	}
	return ""
}

func TestRunsServesThePageAndStopsInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSecrets(t, filepath.Join(dir, "secrets.json"), 0o600)
	ctx, stop := context.WithCancel(t.Context())
	var log lines
	done := make(chan error, 1)
	args := []string{"-data", dir, "-kiosk-listen", "127.0.0.1:0"}
	go func() { done <- run(ctx, args, strings.NewReader(""), io.Discard, &log) }()
	var addr string
	ring.Await(t, func() bool { addr = log.find("the local page is served", "addr"); return addr != "" })
	r, err := http.Get("http://" + addr + "/api/state")
	require.NoError(t, err)
	raw, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Contains(t, string(raw), `"device_code":"CAB-1","online":false`)
	require.NotEmpty(t, log.find("no line to lock controllers is set, so no door opens", "setting"), "a cabinet that opens nothing says so")

	// Of a running agent the bundle has the page's word, not the store's.
	bundle := filepath.Join(t.TempDir(), "b.tar.gz")
	_, err = runEdge(t, "", "-data", dir, "-kiosk-listen", addr, "support-bundle", bundle)
	require.NoError(t, err)
	got := unpack(t, bundle)
	require.Contains(t, got["support/page.json"], `"device_code": "CAB-1"`)
	require.Contains(t, got["support/page.json"], `"uplink"`)
	require.Contains(t, got["support/store.json"], "running agent")

	_, err = runEdge(t, "", "-data", dir, "-kiosk-listen", "")
	require.ErrorContains(t, err, "in use by another process")
	stop()
	require.NoError(t, <-done)

	_, err = runEdge(t, "", "-data", dir, "-kiosk-listen", "", "support-bundle", bundle)
	require.NoError(t, err)
	got = unpack(t, bundle)
	var facts struct {
		Lane0 struct{ Entries int } `json:"bucket lane0"`
	}
	require.NoError(t, json.Unmarshal([]byte(got["support/store.json"]), &facts))
	require.Greater(t, facts.Lane0.Entries, 1, "its records")
	require.NotContains(t, got["support/store.json"], `\u0000`, "segments have no readable name")
	require.Contains(t, got["support/secrets.json"], `"set": true`)
	for name, text := range got {
		for _, secret := range []string{"device-secret-xyz", "AQEBAQEB", "AgICAgIC"} {
			require.NotContains(t, text, secret, name)
		}
	}
}

func TestAPageThatCannotListenStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSecrets(t, filepath.Join(dir, "secrets.json"), 0o600)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, err = runEdge(t, "", "-data", dir, "-kiosk-listen", ln.Addr().String())
	require.ErrorContains(t, err, "kiosk.listen")
}

func unpack(t *testing.T, name string) map[string]string {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	gz, err := gzip.NewReader(f)
	require.NoError(t, err)
	out := map[string]string{}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		out[h.Name] = string(raw)
	}
}

func TestPulseTraceThatCannotBeOpenedStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSecrets(t, filepath.Join(dir, "secrets.json"), 0o600)
	_, err := runEdge(t, "", "-data", dir, "-kiosk-listen", "", "-config", file(t, "pulse_trace: /nowhere/pulses"))
	require.ErrorContains(t, err, "pulse_trace")
}
