// Package mcptest points other people's programs at a server of cloud/mcp: the
// official conformance suite, the official clients of both generations, and
// the Inspector's command line.
//
// All but the Go client run on Node, with what npm puts into the folder
// cloud/mcp/conformance. Without that, tests are skipped, and fail where
// POSTERN_BROWSER_TESTS is "require".
package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// patience bounds one run of a program.
const patience = 2 * time.Minute

// folder is that of the Node packages, found from the test's own.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		f := filepath.Join(dir, "cloud", "mcp", "conformance")
		if _, err := os.Stat(f); err == nil {
			return f
		}
		up := filepath.Dir(dir)
		require.NotEqual(t, dir, up, "cloud/mcp/conformance is nowhere above the test")
		dir = up
	}
}

// oldest is the first release of Node that runs the packages.
const oldest = 22

// Node finds the folder of the packages and a Node that is new enough: the one
// among them, else the system's. It skips the test when something is missing.
func Node(t testing.TB) (dir, program string) {
	t.Helper()
	need := func(what string, there bool) {
		t.Helper()
		ring.Needs(t, ring.EnvBrowsers, what+" (npm ci in cloud/mcp/conformance)", there)
	}
	dir = folder(t)
	cpu := runtime.GOARCH
	if cpu == "amd64" {
		cpu = "x64"
	}
	program = filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+cpu, "bin", "node")
	if _, err := os.Stat(program); err != nil {
		program, err = exec.LookPath("node")
		need("Node "+strconv.Itoa(oldest), err == nil && major(t, program) >= oldest)
	}
	list, err := os.ReadFile(filepath.Join(dir, "package.json"))
	require.NoError(t, err)
	var packages struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal(list, &packages))
	for name, version := range packages.Dependencies {
		b, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
		need("node_modules/"+name, err == nil)
		var have struct{ Version string }
		require.NoError(t, json.Unmarshal(b, &have))
		require.Equal(t, version, have.Version, "%s is another than package.json names (npm ci in cloud/mcp/conformance)", name)
	}
	return dir, program
}

// major is the first part of a Node's version, 0 when it does not tell.
func major(t testing.TB, program string) int {
	t.Helper()
	out, err := exec.Command(program, "-p", "process.versions.node.split('.')[0]").Output()
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n
}

// Conformance runs the official suite against the server at url, with further
// arguments of its command line, records the verdict on the subject, and fails with the
// checks that did not succeed. Files named in args lie in the folder of the packages.
func Conformance(t *testing.T, subject, url string, args ...string) {
	t.Helper()
	out, results, err := run(t, append([]string{"server", "--url", url}, args...)...)
	_, summary, found := bytes.Cut(out, []byte("=== SUMMARY ==="))
	if !found {
		summary = out
	}
	var failed strings.Builder
	for _, c := range recorded(t, subject, results) {
		if !c.good() {
			failed.Write(append(c.raw, '\n'))
		}
	}
	require.NoError(t, err, "%s\n%s", summary, failed.String())
}

// Failing runs the official suite against the server at url and gives the checks
// that did not succeed, as "scenario check", sorted, and records the verdict on the
// subject. How many checks there were is
// the second result.
func Failing(t *testing.T, subject, url string, args ...string) (failed []string, all int) {
	t.Helper()
	_, results, _ := run(t, append([]string{"server", "--url", url}, args...)...)
	list := recorded(t, subject, results)
	for _, c := range list {
		if !c.good() {
			failed = append(failed, c.scenario+" "+c.ID)
		}
	}
	slices.Sort(failed)
	return slices.Compact(failed), len(list)
}

// Authorization runs the official suite against the authorization server of base:
// its metadata, and the grant of a code to the client, whose user visit plays: it is
// given the page's address and sends the answer to the callback at port of the
// loopback.
func Authorization(t *testing.T, base, client, resource string, port int, visit func(page string)) {
	t.Helper()
	results := t.TempDir()
	cmd := suite(t, "authorization", "--url", base, "--client-id", client, "--resource", resource, "--port", strconv.Itoa(port), "--output-dir", results)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	visited := false
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !visited && strings.HasPrefix(lines.Text(), base+"/") {
			visited = true
			waitForPort(t, port) // the page is printed before the callback is served
			visit(lines.Text())
		}
	}
	require.NoError(t, cmd.Wait(), text.String())
	require.True(t, visited, text.String())
	for _, c := range recorded(t, "authorization server", results) {
		require.True(t, c.good(), "%s", c.raw)
	}
}

// waitForPort returns once a port of the loopback takes connections.
func waitForPort(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err == nil {
			_ = c.Close() // nothing was said
		}
		return err == nil
	}, patience, 10*time.Millisecond)
}

// packageName is the official suite's.
const packageName = "@modelcontextprotocol/conformance"

// suite is the official suite with arguments; it ends with the test.
func suite(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir, program := Node(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{filepath.Join("node_modules", packageName, "dist", "index.js")}, args...)...)
	cmd.Dir = dir
	return cmd
}

// run runs the suite and gives what it printed and the folder of its results.
func run(t *testing.T, args ...string) (out []byte, results string, err error) {
	t.Helper()
	results = t.TempDir()
	out, err = suite(t, append(args, "--output-dir", results)...).CombinedOutput()
	return out, results, err
}

// check is what the suite says of one rule.
type check struct {
	ID, Status string

	scenario string
	raw      json.RawMessage
}

func (c check) good() bool {
	return c.Status == "SUCCESS" || c.Status == "INFO" || c.Status == "SKIPPED"
}

// recorded are the checks that the suite wrote down, after the verdict on the subject.
func recorded(t *testing.T, subject, dir string) []check {
	t.Helper()
	list, passed := checks(t, dir), 0
	for _, c := range list {
		if c.good() {
			passed++
		}
	}
	verdict.Record(t, packageName, subject, passed, len(list))
	return list
}

// checks are those that the suite wrote down.
func checks(t *testing.T, dir string) (out []check) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the suite checked nothing")
	for _, f := range files {
		var list []json.RawMessage
		in, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(in, &list))
		for _, raw := range list {
			c := check{raw: raw, scenario: scenarioOf(f)}
			require.NoError(t, json.Unmarshal(raw, &c))
			out = append(out, c)
		}
	}
	return out
}

// results are written into folders named server-<scenario>-<time>.
var resultsFolder = regexp.MustCompile(`^(?:server-|authorization-)?(.*)-20[0-9]{2}-[0-9]{2}-[0-9]{2}T`)

func scenarioOf(file string) string {
	name := filepath.Base(filepath.Dir(file))
	if m := resultsFolder.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return name
}
