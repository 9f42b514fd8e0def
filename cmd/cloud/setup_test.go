package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// node is one start of the program.
type node struct {
	t        *testing.T
	out, log watched
	stop     func()
	http     string
}

// startNode serves until stop is called, with listeners on free ports.
func startNode(t *testing.T, args ...string) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{t: t}
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, append([]string{"-listen", "127.0.0.1:0", "-mqtt-listen", "127.0.0.1:0"}, args...), strings.NewReader(""), &n.out, &n.log)
	}()
	n.stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-done) })
	t.Cleanup(n.stop)
	ring.Await(t, func() bool { return len(done) > 0 || n.log.find("serving", "msg") != "" }, "the node serves")
	require.Empty(t, done, "the node has ended: %s", n.log.text())
	n.http = n.log.find("serving", "http")
	return n
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// address is the one-time address that was printed, "" when none was.
func (n *node) address() string {
	return regexp.MustCompile(`https?://\S+/setup\?key=\S+`).FindString(n.out.text())
}

// logIn reports whether an email and a password are good.
func (n *node) logIn(email, password string) bool {
	n.t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "password": password})
	require.NoError(n.t, err)
	r, err := http.Post("http://"+n.http+"/api/v1/user/login", "application/json", bytes.NewReader(body))
	require.NoError(n.t, err)
	require.NoError(n.t, r.Body.Close())
	return r.StatusCode == 200
}

// databases are an empty folder and an empty PostgreSQL, as arguments.
func databases(t *testing.T, test func(t *testing.T, args []string)) {
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		test(t, []string{"-data", filepath.Join(t.TempDir(), "data")})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, []string{"-data", filepath.Join(t.TempDir(), "data"), "-database", storetest.PostgresURL(t)})
	})
}

// In whatever order things are started, there is a way in: the page's address at
// every start until there is an administrator, the sandbox after that, a new
// password when that is lost.
func TestNoOrderOfStartsLocksOut(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, at []string) {
		do := func(args ...string) string {
			t.Helper()
			out, err := program(t, append(at[:len(at):len(at)], args...)...)
			require.NoError(t, err)
			return out
		}
		first := startNode(t, at...)
		address := first.address()
		require.Contains(t, address, "http://"+first.http+"/setup?key=")
		key := address[strings.Index(address, "=")+1:]
		require.NotContains(t, first.log.text(), key, "in no log")
		first.stop()
		out := do("setup", "-email", "ops@platform.example", "-operator")
		require.Contains(t, out, "operator of the platform")
		again := startNode(t, at...)
		require.Contains(t, again.address(), key, "the same address within the hour")
		again.stop()

		var box server.Sandbox
		require.NoError(t, json.Unmarshal([]byte(do("demo-data")), &box))
		_, err := program(t, append(at[:len(at):len(at)], "demo-data")...)
		require.ErrorContains(t, err, "cloud setup --email admin@acme.example")
		_, err = program(t, append(at[:len(at):len(at)], "setup", "-business", "Acme Logistics", "-business-code", "acme", "-email", box.Admin.Email)...)
		require.ErrorContains(t, err, "there is a business with this code, and nothing was changed")
		renewed := do("setup", "-email", box.Admin.Email)
		require.Contains(t, renewed, "administrator of Acme Logistics (acme), new password")
		password := regexp.MustCompile(`(?m)^password: (\S+)$`).FindStringSubmatch(renewed)
		require.Len(t, password, 2)

		last := startNode(t, at...)
		require.Empty(t, last.address(), "an administrator exists")
		require.Contains(t, last.out.text(), "Log in at http://"+last.http+"/console\n", "the way in is on the terminal")
		r, err := http.Get("http://" + last.http + "/setup?key=" + key)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, 410, r.StatusCode)
		require.True(t, last.logIn(box.Admin.Email, password[1]))
		require.False(t, last.logIn(box.Admin.Email, box.Admin.Password))
		require.NotContains(t, last.log.text()+first.log.text(), password[1])
	})
}

// An installation without a person: settings make the first administrator, once.
func TestAnUnattendedStart(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, at []string) {
		config := func(password string) string {
			return file(t, "setup: {business: Harbour Lockers, email: ada@harbour.example, timezone: America/Toronto, password_file: "+file(t, password+"\n")+"}")
		}
		n := startNode(t, append(at, "-config", config("a long enough password"))...)
		require.Empty(t, n.address())
		require.True(t, n.logIn("ada@harbour.example", "a long enough password"))
		n.stop()
		n = startNode(t, append(at, "-config", config("another long password"))...)
		require.False(t, n.logIn("ada@harbour.example", "another long password"), "settings change nobody's password")
		require.NotContains(t, n.log.text(), "long password")
	})
	_, err := program(t, "-check", "-config", file(t, "setup: {business: Harbour}"))
	require.ErrorContains(t, err, "set business, email and password_file")
}

// Another keys file could read none of the database's secrets: the start says
// which file is missing.
func TestAStartWithOtherKeys(t *testing.T) {
	t.Parallel()
	database := storetest.PostgresURL(t)
	_, err := program(t, "-data", t.TempDir(), "-database", database, "setup", "-email", "ada@harbour.example", "-business", "Harbour")
	require.NoError(t, err)
	err = run(t.Context(), []string{"-data", t.TempDir(), "-database", database, "-listen", "127.0.0.1:0", "-mqtt-listen", "127.0.0.1:0"}, strings.NewReader(""), io.Discard, io.Discard)
	require.ErrorContains(t, err, "copy keys.json")
}

// A node that listens on neither the loopback nor HTTPS prints no address: it says
// what to run.
func TestAStartWithoutASafeListener(t *testing.T) {
	t.Parallel()
	n := startNode(t, "-data", filepath.Join(t.TempDir(), "data"), "-listen", "")
	require.Empty(t, n.address())
	require.Contains(t, n.out.text(), "cloud setup --business NAME --email ADDRESS")
}

func TestSetUpByHand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for want, args := range map[string][]string{
		"name the business":    {"-email", "x@y.example"},
		"leave out --business": {"-email", "x@y.example", "-operator", "-business", "X"},
		"Use an email":         {"-email", "x", "-business", "X"},
		"10 to 256":            {"-email", "x@y.example", "-business", "X", "-password-file", "-"},
		"time zone":            {"-email", "x@y.example", "-business", "X", "-timezone", "Mars"},
	} {
		_, err := program(t, append([]string{"-data", dir, "setup"}, args...)...)
		require.ErrorContains(t, err, want)
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-data", dir, "setup", "-email", "x@y.example", "-business", "X", "-password-file", "-"}, strings.NewReader("a long enough password\n"), &out, io.Discard))
	require.Equal(t, "x@y.example: administrator of X (x)\ndata folder: "+dir+"\n", out.String(), "a password that was given is not repeated")
	t.Chdir(t.TempDir())
	made, err := program(t, "-data", "typo", "setup", "-email", "x@y.example", "-business", "X")
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Contains(t, made, "\ndata folder: "+filepath.Join(here, "typo")+", made by this command\n")
}

// A person who lost the second factor gets in again by who is at the machine.
func TestALostSecondFactorAtTheMachine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, run(t.Context(), []string{"-data", dir, "setup", "-email", "x@y.example", "-business", "X", "-password-file", "-"}, strings.NewReader("a long enough password\n"), io.Discard, io.Discard))
	for want, args := range map[string][]string{"no account has": {"--email", "none@y.example"}, "email": {}} {
		_, err := program(t, append([]string{"-data", dir, "admin", "reset"}, args...)...)
		require.ErrorContains(t, err, want)
	}
	out, err := program(t, "-data", dir, "admin", "reset", "--email", "X@y.example")
	require.NoError(t, err)
	require.Contains(t, out, "x@y.example has no second factor, no passkeys and no sessions any more")
}
