package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/internal/ring"
)

func file(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "cloud.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func program(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, strings.NewReader(""), &out, io.Discard)
	return out.String(), err
}

func TestTheFileInConfigsIsInOrder(t *testing.T) {
	t.Parallel()
	out, err := program(t, "-config", "../../configs/cloud.yaml", "-check")
	require.NoError(t, err)
	require.Contains(t, out, "broker addresses for devices: tcp://127.0.0.1:1883")
	out, err = program(t, "-check")
	require.NoError(t, err)
	require.Contains(t, out, `HTTP at "127.0.0.1:8080", TLS ""; MQTT at "127.0.0.1:1883"`, "defaults")
}

func TestMistakesAreNamedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	key := file(t, "key")
	require.NoError(t, os.Chmod(key, 0o644))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--help", []string{"-nonsense"}},
		{`there is no setting "mqqt"`, []string{"-config", file(t, "mqqt: {}")}},
		{"mqtt.listen", []string{"-mqtt-listen", ":1883"}},
		{"mqtt.ws_listen", []string{"-mqtt-ws-listen", "0.0.0.0:8083"}},
		{"set tls.cert and tls.key", []string{"-mqtt-tls-listen", ":8883"}},
		{"mqtt.wss_listen: set tls.cert and tls.key", []string{"-mqtt-wss-listen", ":8084"}},
		{"both cert and key", []string{"-tls-cert", key}},
		{"chmod 600", []string{"-tls-cert", key, "-tls-key", key}},
		{"listen \"8080\"", []string{"-listen", "8080"}},
		{"mqtt.prefix", []string{"-prefix", "a//b"}},
		{"base_url", []string{"-base-url", "tms.example"}},
		{"mqtt.brokers \"x\"", []string{"-broker", "x"}},
		{"release_keys \"AAAA\": use the 32 bytes", []string{"-config", file(t, "release_keys: [AAAA]")}},
		{"name the addresses", []string{"-mqtt-listen", ""}},
		{"webhook.allow_networks", []string{"-webhook-allow-network", "10.0.0.0/99"}},
		{"otlp_endpoint", []string{"-otlp-endpoint", "collector:4318"}},
		{"otlp_endpoint", []string{"-otlp-endpoint", "http://me:hunter2@collector:4318"}},
		{"webhook.allow_ports", []string{"-webhook-allow-port", "0"}},
		{"webhook.deny_hosts", []string{"-config", file(t, `webhook: {deny_hosts: ["https://a.example"]}`)}},
		{"webhook.proxy: use", []string{"-webhook-proxy", "proxy.internal:3128"}},
		{"webhook.proxy: leave user", []string{"-webhook-proxy", "http://me:hunter2@proxy.internal:3128"}},
		{"webhook.proxy: use", []string{"-config", file(t, "webhook: {proxy: 'socks5://me:hunter2@proxy.internal:1080'}")}},
		{"webhook.proxy: use", []string{"-webhook-proxy", "http://me:hunter2@proxy.internal:x"}},
		{"set webhook.proxy", []string{"-config", file(t, "webhook: {proxy_secret_file: "+key+"}")}},
		{"chmod 600", []string{"-config", file(t, "webhook: {proxy: 'http://proxy.internal:3128', proxy_secret_file: "+key+"}")}},
		{"user:password", []string{"-config", file(t, "webhook: {proxy: 'http://proxy.internal:3128', proxy_secret_file: "+file(t, "hunter2")+"}")}},
		{"is empty", []string{"-config", file(t, "webhook: {proxy: 'http://proxy.internal:3128', proxy_secret_file: "+file(t, "\n")+"}")}},
		{"webhook.secret_overlap", []string{"-config", file(t, "webhook: {secret_overlap: 8d}")}},
		{"webhook.secret_overlap", []string{"-config", file(t, "webhook: {secret_overlap: 169h}")}},
		{"mail.server \"mail.example\"", []string{"-config", file(t, "mail: {server: mail.example, from: a@b.example}")}},
		{"set base_url too", []string{"-config", file(t, "mail: {server: 'mail.example:587', from: a@b.example}")}},
		{"the sender is no address", []string{"-base-url", "https://tms.example", "-config", file(t, "mail: {server: 'mail.example:587', from: Postern}")}},
		{"mail.encryption", []string{"-base-url", "https://tms.example", "-config", file(t, "mail: {server: 'mail.example:25', encryption: none, from: a@b.example}")}},
		{"use starttls, tls or none", []string{"-base-url", "https://tms.example", "-config", file(t, "mail: {server: 'mail.example:25', encryption: ssl, from: a@b.example}")}},
		{"both user and password_file", []string{"-base-url", "https://tms.example", "-config", file(t, "mail: {server: 'mail.example:587', from: a@b.example, user: me}")}},
		{"chmod 600", []string{"-base-url", "https://tms.example", "-config", file(t, "mail: {server: 'mail.example:587', from: a@b.example, user: me, password_file: "+key+"}")}},
		{"mail.roots", []string{"-base-url", "https://tms.example", "-config", file(t, "mail: {server: 'mail.example:587', from: a@b.example, roots: "+key+"}")}},
		{"set mail.server", []string{"-config", file(t, "mail: {from: a@b.example}")}},
		{"sign_in.0.business", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{issuer: 'https://id.example'}]")}},
		{"sign_in.0.issuer", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{business: acme, issuer: 'http://id.example'}]")}},
		{"sign_in.0.client_id", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{business: acme, issuer: 'https://id.example'}]")}},
		{"either secret_file or secret_env", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{business: acme, issuer: 'https://id.example', client_id: x}]")}},
		{"there is no secret", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{business: acme, issuer: 'https://id.example', client_id: x, secret_env: POSTERN_NO_SUCH}]")}},
		{"both role_claim and roles", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{business: acme, issuer: 'https://id.example', client_id: x, secret_file: "+file(t, "hunter2")+", role_claim: groups}]")}},
		{"use client_admin or client_employee", []string{"-base-url", "https://tms.example", "-config", file(t, "sign_in: [{business: acme, issuer: 'https://id.example', client_id: x, secret_file: "+file(t, "hunter2")+", role_claim: groups, roles: {root: platform_admin}}]")}},
		{"sign_in: set base_url", []string{"-config", file(t, "sign_in: [{business: acme, issuer: 'https://id.example', client_id: x, secret_file: "+file(t, "hunter2")+"}]")}},
		{"push: set both", []string{"-config", file(t, "push: {url: 'https://push.example/'}")}},
		{"sms: set both", []string{"-config", file(t, "sms: {secret_file: "+key+"}")}},
		{"sms.url", []string{"-config", file(t, "sms: {url: 'sms.example', secret_file: "+key+"}")}},
		{"push.secret_file", []string{"-config", file(t, "push: {url: 'https://push.example/', secret_file: "+key+"}")}},
		{"push.url", []string{"-config", file(t, "push: {url: 'push.example', secret_file: "+key+"}")}},
		{"fewer than 24 bytes", []string{"-config", file(t, "push: {url: 'https://push.example/', secret_file: "+file(t, "short")+"}")}},
		{"mqtt.app_url", []string{"-config", file(t, "mqtt: {app_url: 'tms.example:8883'}")}},
		{"mqtt.app_websocket_url", []string{"-config", file(t, "mqtt: {app_websocket_url: 'https://tms.example/mqtt'}")}},
		{"backup: set either", []string{"-config", file(t, "backup: {folder: x, bucket: {url: 'https://s3.example', name: x, key_id: k, secret_file: "+file(t, "hunter2")+"}}")}},
		{"backup.bucket.key_id", []string{"-config", file(t, "backup: {bucket: {url: 'https://s3.example', name: x}}")}},
		{"backup.every", []string{"-config", file(t, "backup: {every: 5s}")}},
		{"backup.keep", []string{"-config", file(t, "backup: {keep: 0}")}},
		{"backup.recipient", []string{"-config", file(t, "backup: {recipient: AGE-SECRET-KEY-hunter2}")}},
		{"bucket.url", []string{"-config", file(t, "bucket: {url: 'https://me:hunter2@s3.example'}")}},
		{"bucket.name", []string{"-config", file(t, "bucket: {url: 'https://s3.example'}")}},
		{"bucket.key_id", []string{"-config", file(t, "bucket: {url: 'https://s3.example', name: x}")}},
		{"either secret_file or secret_env", []string{"-config", file(t, "bucket: {url: 'https://s3.example', name: x, key_id: k}")}},
		{"chmod 600", []string{"-config", file(t, "bucket: {url: 'https://s3.example', name: x, key_id: k, secret_file: "+key+"}")}},
		{"POSTERN_NO_SUCH is empty", []string{"-config", file(t, "bucket: {url: 'https://s3.example', name: x, key_id: k, secret_env: POSTERN_NO_SUCH}")}},
		{"admin.listen \"0.0.0.0:9464\"", []string{"-admin-listen", "0.0.0.0:9464"}},
		{"admin.listen \"9464\"", []string{"-admin-listen", "9464"}},
		{"chmod 600", []string{"-config", file(t, "admin: {token_file: "+key+"}")}},
		{"fewer than 16", []string{"-config", file(t, "admin: {token_file: "+file(t, "hunter2\n")+"}")}},
		{"fewer than 16", []string{"-config", file(t, "admin: {listen: ':9464', token_env: POSTERN_NO_SUCH}")}},
		{"not both", []string{"-config", file(t, "admin: {token_env: X, token_file: "+file(t, "hunter2-hunter2-hunter2")+"}")}},
		{"admin.tls", []string{"-config", file(t, "admin: {tls: true}")}},
		{"log_level", []string{"-log-level", "loud"}},
		{`migrate "later": use start or command`, []string{"-config", file(t, "migrate: later")}},
		{"keep one", []string{"-database", "postgres://u:hunter2@db/x", "-database-file", key}},
		{"chmod 600", []string{"-database-file", key}},
	} {
		_, err := program(t, append(c.args, "-check")...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestDatabaseIsTakenFromAFileAndNeverShown(t *testing.T) {
	t.Parallel()
	name := file(t, "postgres://u:hunter2@127.0.0.1:1/x\n")
	opt := options{DatabaseFile: &name}
	s, err := load(opt)
	require.NoError(t, err)
	require.Equal(t, "postgres://u:hunter2@127.0.0.1:1/x", s.Database)
	out, err := program(t, "-database-file", name, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "database: set")
	require.NotContains(t, out, "hunter2")
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "hunter2")
}

func TestTheEnvironmentNamesTheDatabase(t *testing.T) {
	t.Setenv("POSTERN_DATABASE", "postgres://u:hunter2@db/x")
	out, err := program(t, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "database: set")
}

func TestTheFolderOfFilesIsASetting(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cloud.yaml")
	require.NoError(t, os.WriteFile(file, []byte("objects: /srv/a\n"), 0o600))
	out, err := program(t, "-check")
	require.NoError(t, err)
	require.Contains(t, out, `files in data/cloud/files`)
	out, err = program(t, "-config", file, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "files in /srv/a")
	t.Setenv("POSTERN_OBJECTS", "/srv/b")
	out, err = program(t, "-config", file, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "files in /srv/b")
	out, err = program(t, "-config", file, "-objects", "/srv/c", "-check")
	require.NoError(t, err)
	require.Contains(t, out, "files in /srv/c")
}

func TestDevicesGetTheAddressOfTheBroker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*settings)
		want   []string
	}{
		{func(*settings) {}, []string{"tcp://127.0.0.1:1883"}},
		{func(s *settings) { s.MQTT.Brokers = []string{"ssl://x:1"} }, []string{"ssl://x:1"}},
		{func(s *settings) {
			s.BaseURL, s.MQTT.TLSListen, s.TLS.Cert, s.TLS.Key = "https://tms.example", ":8883", "c", "k"
		}, []string{"ssl://tms.example:8883", "tcp://127.0.0.1:1883"}},
	} {
		s := defaults()
		c.change(&s)
		_ = s.check() // the certificate is not there
		require.Equal(t, c.want, s.MQTT.Brokers)
	}
}

func TestAppsGetTheAddressOfTheBroker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change  func(*settings)
		url, ws string
	}{
		{func(*settings) {}, "tcp://127.0.0.1:1883", ""},
		{func(s *settings) { s.MQTT.WSListen = "127.0.0.1:8083" }, "tcp://127.0.0.1:1883", "ws://127.0.0.1:8083/mqtt"},
		{func(s *settings) { s.MQTT.Brokers = []string{"wss://x/mqtt", "ssl://x:1"} }, "ssl://x:1", "wss://x/mqtt"},
		{func(s *settings) { s.MQTT.AppURL, s.MQTT.AppWSURL = "ssl://y:2", "wss://y/mqtt" }, "ssl://y:2", "wss://y/mqtt"},
		{func(s *settings) { s.BaseURL, s.MQTT.WSSListen = "https://tms.example", ":8084" }, "tcp://127.0.0.1:1883", "wss://tms.example:8084/mqtt"},
	} {
		s := defaults()
		c.change(&s)
		_ = s.check() // the certificate is not there
		require.Equal(t, []string{c.url, c.ws}, []string{s.MQTT.AppURL, s.MQTT.AppWSURL})
	}
}

func TestTheSecretOfPushesIsReadAndNeverShown(t *testing.T) {
	t.Parallel()
	secret := "hunter2-hunter2-hunter2-hunter2"
	s, err := load(options{Config: file(t, "push: {url: 'https://push.example/', secret_file: "+file(t, secret+"\n")+"}")})
	require.NoError(t, err)
	require.Equal(t, secret, s.server(slog.New(slog.DiscardHandler)).PushSecret)
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(raw)+s.String(), "hunter2")
}

func TestTheLoginOfTheMailServerIsReadAndNeverShown(t *testing.T) {
	t.Parallel()
	s, err := load(options{Config: file(t, "base_url: https://tms.example\nmail: {server: 'mail.example:587', from: 'Postern <no-reply@tms.example>', user: me, password_file: "+file(t, "hunter2\n")+"}")})
	require.NoError(t, err)
	m := s.server(slog.New(slog.DiscardHandler)).Mail
	require.Equal(t, []any{"mail.example", 587, "starttls", "me", "hunter2"}, []any{m.Host, m.Port, m.Encryption, m.User, m.Password})
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(raw)+s.String(), "hunter2")
	require.Nil(t, defaults().server(slog.New(slog.DiscardHandler)).Mail, "without a mail server")
}

func TestTheSecretOfASignInProviderIsReadAndNeverShown(t *testing.T) {
	t.Parallel()
	s, err := load(options{Config: file(t, "base_url: https://tms.example\nsign_in: [{business: acme, issuer: 'https://id.example', client_id: x, secret_file: "+file(t, "hunter2\n")+", role_claim: groups, roles: {a: client_admin}}]")})
	require.NoError(t, err)
	p := s.server(slog.New(slog.DiscardHandler)).SignIn
	require.Len(t, p, 1)
	require.Equal(t, []any{"acme", "acme", "hunter2", "client_admin"}, []any{p[0].Business, p[0].Name, p[0].Secret, string(p[0].Roles["a"])})
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(raw)+s.String(), "hunter2")
}

func TestTheLoginOfTheProxyIsReadAndNeverShown(t *testing.T) {
	config := file(t, "webhook: {proxy: 'http://proxy.internal:3128', proxy_secret_file: "+file(t, "me:hunter2\n")+"}")
	s, err := load(options{Config: config})
	require.NoError(t, err)
	c := s.server(slog.New(slog.DiscardHandler))
	require.Equal(t, []string{"http://proxy.internal:3128", "me:hunter2"}, []string{c.WebhookProxy, c.WebhookProxyLogin})
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(raw)+s.String(), "hunter2")
	out, err := program(t, "-config", config, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "webhooks through http://proxy.internal:3128, login set")
	require.NotContains(t, out, "hunter2")
	out, err = program(t, "-config", config, "--help")
	require.NoError(t, err)
	require.Contains(t, out, "--webhook-proxy=URL")
	require.NotContains(t, out, "hunter2")
}

func TestDemoData(t *testing.T) {
	ring.SkipUnlessCheck(t, "it needs processes of its own")
	t.Parallel()
	dir, box := madeOnce(t)
	t.Run("is whole", func(t *testing.T) { isWhole(t, dir, box) })
	t.Run("is served, backed up, and stopped in order", func(t *testing.T) { isServed(t, dir, box) })
}

// madeOnce makes the sandbox: the command prints one object, and refuses to do
// it again.
func madeOnce(t *testing.T) (string, server.Sandbox) {
	dir := filepath.Join(t.TempDir(), "data")
	out, err := program(t, "-data", dir, "demo-data")
	require.NoError(t, err)
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	var box server.Sandbox
	require.NoError(t, dec.Decode(&box))
	_, err = dec.Token()
	require.ErrorIs(t, err, io.EOF, "exactly one object")
	require.Equal(t, "http://localhost:8080", box.BaseURL)
	var again bytes.Buffer
	enc := json.NewEncoder(&again)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(box))
	require.Equal(t, again.String(), out, "as cloud/server marshals it")
	for _, d := range box.Devices {
		info, err := os.Stat(filepath.Join(dir, d.SecretsFile))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	_, err = program(t, "-data", dir, "demo-data")
	require.ErrorContains(t, err, "is there already")

	// A file is written whole, for its owner alone, and never written over.
	file := filepath.Join(t.TempDir(), "sandbox.json")
	_, err = program(t, "-data", dir, "demo-data", "-to", file)
	require.ErrorContains(t, err, "the sandbox is there already")
	require.NoFileExists(t, file, "nothing was made that it could hold")
	out, err = program(t, "-data", filepath.Join(t.TempDir(), "data"), "demo-data", "-to", file)
	require.NoError(t, err)
	require.Empty(t, out)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(whole, &server.Sandbox{}))
	_, err = program(t, "-data", filepath.Join(t.TempDir(), "data"), "demo-data", "-to", file)
	require.ErrorContains(t, err, "is left as it is")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, whole, kept)
	return dir, box
}

// isWhole looks at the data itself.
func isWhole(t *testing.T, dir string, box server.Sandbox) {
	s := defaults()
	s.Data = dir
	srv, err := open(t.Context(), s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer closeAll(srv)
	want := []int{12, 8, 4, 4}
	require.Len(t, box.Devices, len(want))
	numbers := map[string]bool{}
	for i, d := range box.Devices {
		cells, err := srv.Store.ListCompartments(t.Context(), d.DeviceID)
		require.NoError(t, err)
		require.Len(t, cells, want[i], d.DeviceCode)
	}
	require.NotEmpty(t, box.TrackingNumbers)
	for _, n := range box.TrackingNumbers {
		require.False(t, numbers[n])
		numbers[n] = true
		require.NoError(t, srv.Store.Look(t.Context(), func(v cloud.View) error {
			sh, err := v.ShipmentByNumber(n)
			if err == nil && sh.DeliveryID == 0 {
				err = errors.New("a shipment of no delivery")
			}
			return err
		}), n)
	}
}

// watched is a log that tests can read while it is written.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watched) find(msg, field string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range strings.SplitSeq(w.buf.String(), "\n") {
		var m map[string]any
		if json.Unmarshal([]byte(s), &m) == nil && m["msg"] == msg {
			return fmt.Sprint(m[field])
		}
	}
	return ""
}

func isServed(t *testing.T, dir string, box server.Sandbox) {
	ctx, stop := context.WithCancel(t.Context())
	var log watched
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-data", dir, "-listen", "127.0.0.1:0", "-mqtt-listen", "127.0.0.1:0", "-mqtt-ws-listen", "127.0.0.1:0", "-admin-listen", "127.0.0.1:0"}, strings.NewReader(""), io.Discard, &log)
	}()
	var addr string
	ring.Await(t, func() bool { addr = log.find("serving", "http"); return addr != "" })
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": "<html", "/debug/pprof/": "<html", "/api/nothing": "NOT_FOUND", "/": "<html"} {
		r, err := http.Get("http://" + addr + path)
		require.NoError(t, err)
		raw, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Contains(t, string(raw), want, path)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": "# TYPE", "/debug/pprof/goroutine?debug=1": "goroutine profile"} {
		r, err := http.Get("http://" + log.find("serving", "admin") + path)
		require.NoError(t, err)
		raw, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Contains(t, string(raw), want, path)
	}
	c, err := net.Dial("tcp", log.find("serving", "mqtt"))
	require.NoError(t, err)
	require.NoError(t, c.Close())

	// While it serves: a backup from which another cloud starts, and a bundle without secrets.
	copyDir, copies := filepath.Join(t.TempDir(), "data"), t.TempDir()
	out, err := program(t, "-data", dir, "backup", copies)
	require.NoError(t, err)
	require.Contains(t, out, "keep "+filepath.Join(dir, "keys.json"))
	_, err = program(t, "-data", copyDir, "restore", copies)
	require.ErrorContains(t, err, "--keys")
	require.NoFileExists(t, filepath.Join(copyDir, "postern.db"))
	out, err = program(t, "-data", copyDir, "restore", "--keys", filepath.Join(dir, "keys.json"), copies)
	require.NoError(t, err)
	require.Contains(t, out, "it starts")
	_, err = program(t, "-data", copyDir, "restore", "--keys", filepath.Join(dir, "keys.json"), copies)
	require.ErrorIs(t, err, store.ErrNotEmpty)
	isWhole(t, copyDir, box)

	out, err = program(t, "-data", dir, "rebuild")
	require.NoError(t, err)
	require.JSONEq(t, `{"written":false,"records":0,"events":0,"missing":[],"different":[]}`, out)

	out, err = program(t, "-data", dir, "rebuild", "--refold")
	require.NoError(t, err)
	var folded server.Refolded
	require.NoError(t, json.Unmarshal([]byte(out), &folded))
	require.True(t, folded.Done)
	require.Zero(t, folded.Different)
	_, err = program(t, "-data", dir, "rebuild", "--most", "5")
	require.ErrorContains(t, err, "--refold")

	bundle := filepath.Join(t.TempDir(), "b.tar.gz")
	_, err = program(t, "-data", dir, "support-bundle", bundle)
	require.NoError(t, err)
	got := unpack(t, bundle)
	require.Contains(t, got["support/devices.json"], `"CAB-1001"`)
	secrets := []string{box.Admin.Token, box.Admin.Password, box.Provider.WebhookSecret, box.Devices[0].Secret}
	for name, text := range got {
		for _, x := range secrets {
			require.NotContains(t, text, x, name)
		}
	}
	stop()
	require.NoError(t, <-done)
	for _, x := range secrets {
		require.NotContains(t, log.buf.String(), x)
	}
}

func TestAdminCommandsMakeNoData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	for _, command := range [][]string{{"backup", t.TempDir()}, {"support-bundle", filepath.Join(t.TempDir(), "x")}, {"rebuild"}, {"rebuild", "-write"}} {
		_, err := program(t, append([]string{"-data", dir}, command...)...)
		require.ErrorContains(t, err, "there is no data")
		require.NoDirExists(t, dir)
	}
}

func TestATakenAddressStopsTheStart(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, err = program(t, "-data", t.TempDir(), "-listen", "127.0.0.1:0", "-mqtt-listen", ln.Addr().String())
	require.ErrorContains(t, err, "listen (mqtt.listen)")
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
