package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// A stranger who has the programs, an empty folder or an empty PostgreSQL, and
// nothing but the address that the cloud prints gets as far as a parcel behind a
// door and a webhook about it, all of it over HTTPS behind nginx.
func TestAStrangerBegins(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	_, err := exec.LookPath("nginx")
	ring.Needs(t, ring.EnvTools, "nginx (Debian's nginx-light)", err == nil)
	bin := build(t)
	for name, database := range map[string]func(t *testing.T) string{
		"with an empty folder":     func(*testing.T) string { return "" },
		"with an empty PostgreSQL": func(t *testing.T) string { return storetest.PostgresURL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newBeginner(t, bin, database(t))
			s.setUp()
			s.enrol()
			s.deliver()
			s.crowd()
			s.isOver()
		})
	}
}

const (
	beginnerPassword = "a long enough password"
	crowdLimit       = 4 // anonymous calls a minute of one address
)

// beginner is a person at a terminal and a browser.
type beginner struct {
	t              *testing.T
	bin            programs
	dir            string
	base, roots    string // public address, and a file with the certificate it shows
	printed        string // one-time address
	cloud          *process
	browser        *http.Client
	hook           *hook
	device, secret string      // code and file of the cabinet
	line           string      // what edge enrol is given
	id             json.Number // of the cabinet
	tls            *tls.Config
}

func newBeginner(t *testing.T, bin programs, database string) *beginner {
	s := &beginner{t: t, bin: bin, dir: t.TempDir(), hook: newHook(t)}
	front, back := freeAddress(t), freeAddress(t)
	s.base = "https://" + front
	s.nginx(front, back)
	args := []string{"--data", filepath.Join(s.dir, "cloud"), "--listen", back, "--mqtt-listen", freeAddress(t), "--base-url", s.base, "--trusted-proxy", "127.0.0.1/32",
		"--limit", fmt.Sprint("anonymous=", crowdLimit),
		"--webhook-http", "--webhook-allow-network", "127.0.0.0/8", "--webhook-allow-port", fmt.Sprint(s.hook.port())}
	p := &process{name: "cloud", cmd: exec.Command(filepath.Join(string(bin), "cloud"), args...), done: make(chan error, 1)}
	p.cmd.Stderr = p
	p.cmd.Env = append(os.Environ(), "POSTERN_DATABASE="+database)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.run(t)
	s.cloud = p
	lines := bufio.NewScanner(out)
	for s.printed == "" && lines.Scan() {
		s.printed = regexp.MustCompile(`https://\S+/setup\?\S+`).FindString(lines.Text())
	}
	require.NotEmpty(t, s.printed, "a one-time address on standard output: %s", p.tail())
	go func() { _, _ = io.Copy(io.Discard, out) }()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s.browser = s.client(nil)
	s.browser.Jar = jar
	return s
}

// client is a client that trusts nginx's certificate, from an address of the
// loopback when it is set.
func (s *beginner) client(from net.IP) *http.Client {
	dial := &net.Dialer{Timeout: 10 * time.Second}
	if from != nil {
		dial.LocalAddr = &net.TCPAddr{IP: from}
	}
	tr := &http.Transport{TLSClientConfig: s.tls, DialContext: dial.DialContext}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// nginx starts nginx with a certificate of its own before the cloud.
func (s *beginner) nginx(front, back string) {
	t := s.t
	cert, key := certificateOf(t, s.dir, 1)
	s.roots = cert
	raw, err := os.ReadFile(cert)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(raw))
	s.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	conf := filepath.Join(s.dir, "nginx.conf")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n" // the test's folder is readable by its owner alone
	}
	writeFile(t, conf, fmt.Sprintf(`%sdaemon off; master_process off; pid %[2]s/nginx.pid; error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
  server {
    listen %[3]s ssl;
    ssl_certificate %[5]s; ssl_certificate_key %[6]s;
    location / {
      proxy_pass http://%[4]s;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`, user, s.dir, front, back, cert, key))
	p := &process{name: "nginx", cmd: exec.Command("nginx", "-c", conf, "-p", s.dir), done: make(chan error, 1)}
	p.cmd.Stderr = p
	p.run(t)
	ring.Await(t, func() bool { return listens(front) }, "nginx listens")
}

// open asks for a page, or sends a form to it, and returns where that ended.
func (s *beginner) open(address string, form url.Values) (at *url.URL, status int, text string) {
	s.t.Helper()
	var r *http.Response
	var err error
	if form == nil {
		r, err = s.browser.Get(address)
	} else {
		r, err = s.browser.PostForm(address, form)
	}
	require.NoError(s.t, err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	return r.Request.URL, r.StatusCode, string(raw)
}

var hiddenForm = regexp.MustCompile(`name="form" value="([^"]+)"`)

func (s *beginner) setUp() {
	t := s.t
	at, status, text := s.open(s.printed, nil)
	require.Equal(t, 200, status, text)
	require.Empty(t, at.RawQuery, "the one-time value does not stay in the address")
	token := hiddenForm.FindStringSubmatch(text)
	require.Len(t, token, 2, text)
	at, status, text = s.open(s.base+"/setup", url.Values{"form": {token[1]}, "business": {"Harbour Lockers"}, "name": {"Ada Moreau"}, "email": {"ada@harbour.example"},
		"password": {beginnerPassword}, "timezone": {"America/Toronto"}, "country": {"CA"}})
	require.Equal(t, 200, status, text)
	require.Equal(t, "/setup/cabinet", at.Path)
	token = hiddenForm.FindStringSubmatch(text)
	require.Len(t, token, 2, text)
	s.device = "PIER-7"
	_, status, text = s.open(s.base+"/setup/cabinet", url.Values{"form": {token[1]}, "device_name": {"Pier 7"}, "device_code": {s.device}, "layout": {"small"}, "address": {"7 Pier Rd"}})
	require.Equal(t, 200, status, text)
	require.Contains(t, text, "<svg", "the QR code")
	found := regexp.MustCompile(`<code id="enrolment">([^<]+)</code>`).FindStringSubmatch(text)
	require.Len(t, found, 2, text)
	s.line = html.UnescapeString(found[1])
	found = regexp.MustCompile(`<code id="device">([0-9]+)</code>`).FindStringSubmatch(text)
	require.Len(t, found, 2, text)
	s.id = json.Number(found[1])
	require.Equal(t, 3, strings.Count(text, `class="step"`), "the next three steps")
	for _, jar := range s.browser.Jar.Cookies(must(url.Parse(s.base))) {
		require.NotContains(t, jar.Value, beginnerPassword)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// enrol gives the agent the line that stands on the page; a second time it is
// good for nothing.
func (s *beginner) enrol() {
	t := s.t
	s.secret = filepath.Join(s.dir, "edge", "secrets.json")
	run := func(secrets string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(string(s.bin), "edge"), "--secrets", secrets, "--tls-roots", s.roots, "enrol")
		at := strings.LastIndex(s.line, " ")
		cmd.Stdin = strings.NewReader(s.line[:at] + strings.ToLower(s.line[at:]) + "\r\n") // as people type
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(s.secret)
	require.NoError(t, err, out)
	info, err := os.Stat(s.secret)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	var kept map[string]any
	raw, err := os.ReadFile(s.secret)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &kept))
	for _, name := range []string{"device_secret", "code_salt", "code_key", "device_key", "keys"} {
		require.NotEmpty(t, kept[name], name)
	}
	out, err = run(filepath.Join(s.dir, "twin", "secrets.json"))
	require.Error(t, err)
	require.Contains(t, out, "TOKEN_INVALID")
}

func (s *beginner) call(token, method, path string, in any) answered {
	s.t.Helper()
	return s.callFrom(s.client(nil), nil, token, method, path, in)
}

func (s *beginner) callFrom(c *http.Client, head http.Header, token, method, path string, in any) answered {
	s.t.Helper()
	body := ""
	if in != nil {
		body = string(must(json.Marshal(in)))
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.base+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if head != nil {
		req.Header = head.Clone()
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := c.Do(req)
	require.NoError(s.t, err)
	defer r.Body.Close()
	a := answered{status: r.StatusCode}
	raw, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(raw, &a.body), "%s", raw)
	return a
}

func (s *beginner) deliver() {
	t := s.t
	lines := freeAddress(t)
	boards, agent := filepath.Join(s.dir, "boards.yaml"), filepath.Join(s.dir, "edge.yaml")
	var doorLines strings.Builder
	for n := 1; n <= 8; n++ {
		fmt.Fprintf(&doorLines, "  - {number: %[1]d, board: A, channel: %[1]d}\n", n)
	}
	writeFile(t, boards, "boards:\n  - {name: A, line: main, family: cu48b}\ndoors:\n"+doorLines.String())
	writeFile(t, agent, fmt.Sprintf("data: %s\nsecrets: %s\nkiosk: {listen: '127.0.0.1:0'}\nlines:\n  - {name: main, port: 'tcp://%s', boards: [{name: A, family: cu48b}]}\n",
		filepath.Join(s.dir, "edge"), s.secret, lines))
	_, doors := s.bin.startHands(t, "firmware-sim", "--config", boards, "--tcp", lines, "--stdin", "--quiet")
	edge := s.bin.start(t, "edge", "--config", agent)
	local := "http://" + edge.awaitLog(t, "the local page is served", "addr")

	login := s.call("", "POST", "/api/v1/user/login", map[string]any{"email": "ada@harbour.example", "password": beginnerPassword})
	require.Equal(t, 200, login.status, "%v", login.body)
	admin := login.at("access_token").(string)
	made := s.call(admin, "POST", "/api/v1/providers", map[string]any{"code": "swift", "name": "Swift", "services": []string{"locker"}, "livemode_allowed": true})
	require.Equal(t, 201, made.status, "%v", made.body)
	key := s.call(admin, "POST", fmt.Sprintf("/api/v1/providers/%v/tokens", made.at("provider", "id")), map[string]any{"name": "first"})
	require.Equal(t, 201, key.status, "%v", key.body)
	provider, _ := key.at("token").(string)
	require.NotEmpty(t, provider, "%v", key.body)
	const partner = "/api/v1/third-party-delivery"
	hook := s.call(provider, "PUT", partner+"/webhook-endpoint", map[string]any{"url": s.hook.url(), "events": []string{"*"}})
	require.Equal(t, 200, hook.status, "%v", hook.body)
	secret, _ := hook.at("secret").(string)
	require.NotEmpty(t, secret, "%v", hook.body)
	s.hook.trust(secret)

	ring.Await(t, func() bool {
		v, err := getState(local, filepath.Join(s.dir, "edge"))
		return err == nil && v.Online && len(v.Doors) == 8 && !slices.ContainsFunc(v.Doors, func(d kiosk.DoorView) bool { return d.State == wire.DoorUnknown })
	}, "the cabinet is online and its boards are read")
	d := s.call(provider, "POST", partner+"/deliveries", map[string]any{"reference_number": "FIRST-1", "device_id": s.id,
		"recipient": map[string]any{"name": "Jane Smith", "phone": "+14165550123"}, "packages": []any{map[string]any{"tracking_number": "FIRST-PK-1", "size": "S"}}})
	require.Equal(t, 201, d.status, "%v", d.body)
	opened := s.call(provider, "POST", fmt.Sprintf("%s/deliveries/%v/open-doors", partner, d.at("delivery", "delivery_id")), map[string]any{})
	require.Contains(t, []int{200, 202}, opened.status, "%v", opened.body)
	soon(t, "a door is seen open", func() bool { return s.hook.got("locker_delivery.doors_opened") })
	require.Equal(t, "ok", doors.do("close 1"))
	require.Equal(t, "ok", doors.do("close 2"))
	soon(t, "the webhook about the deposit", func() bool { return s.hook.got("locker_delivery.delivered") })
	require.Empty(t, s.hook.refused())
	track := s.call("", "GET", "/api/v1/tracking/FIRST-PK-1", nil)
	require.Equal(t, 200, track.status, "%v", track.body)
}

// crowd is a hundred clients of as many addresses at once, each within its own
// limit and none beyond it, whatever they say about where they come from.
func (s *beginner) crowd() {
	t := s.t
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int][]int{}
	for i := range 100 {
		wg.Go(func() {
			c := s.client(net.IPv4(127, 0, 1, byte(i+1)))
			for n := range crowdLimit + 1 {
				head := http.Header{"X-Forwarded-For": {fmt.Sprintf("198.51.100.%d", n+1)}, "X-Forwarded-Proto": {"http"}}
				a := s.callFrom(c, head, "", "GET", "/api/ai/capabilities", nil)
				mu.Lock()
				got[i] = append(got[i], a.status)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want := []int{200, 200, 200, 200, 429}
	for i := range 100 {
		require.Equal(t, want, got[i], "client %d", i)
	}
}

// isOver finds the one-time address dead, and nothing secret in the log.
func (s *beginner) isOver() {
	t := s.t
	beginner := s.client(nil)
	r, err := beginner.Get(s.printed)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, 410, r.StatusCode)
	token := must(url.Parse(s.printed)).Query().Get("key")
	require.Len(t, token, 22, "128 bits")
	log := s.cloud.text()
	fields := strings.Fields(s.line)
	for _, secret := range []string{token, beginnerPassword, fields[len(fields)-1]} {
		require.NotContains(t, log, secret)
	}
}
