// Package mcptest points other people's programs at a server of cloud/mcp: the
// official conformance suite, the official clients of both generations, and
// the Inspector's command line.
//
// All but the Go client run on Node, with what npm puts into the folder
// cloud/mcp/conformance. Without that, tests are skipped, and fail where
// POSTERN_BROWSER_TESTS is "require".
package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// required is set to "require" where missing Node packages are a failure.
const required = "POSTERN_BROWSER_TESTS"

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
	missing := func(what string) {
		t.Helper()
		if os.Getenv(required) == "require" {
			t.Fatalf("%s is missing", what)
		}
		t.Skipf("%s is missing (npm ci in cloud/mcp/conformance)", what)
	}
	dir = folder(t)
	cpu := runtime.GOARCH
	if cpu == "amd64" {
		cpu = "x64"
	}
	program = filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+cpu, "bin", "node")
	if _, err := os.Stat(program); err != nil {
		program, err = exec.LookPath("node")
		if err != nil || major(t, program) < oldest {
			missing("Node " + strconv.Itoa(oldest))
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, "package.json"))
	require.NoError(t, err)
	var packages struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal(list, &packages))
	for name, version := range packages.Dependencies {
		b, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
		if err != nil {
			missing("node_modules/" + name)
		}
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
// arguments of its command line, and fails with the checks that did not
// succeed. Files named in args lie in the folder of the packages.
func Conformance(t *testing.T, url string, args ...string) {
	t.Helper()
	out, results, err := run(t, url, args...)
	_, summary, found := bytes.Cut(out, []byte("=== SUMMARY ==="))
	if !found {
		summary = out
	}
	var failed strings.Builder
	for _, c := range checks(t, results) {
		if !c.good() {
			failed.Write(append(c.raw, '\n'))
		}
	}
	require.NoError(t, err, "%s\n%s", summary, failed.String())
}

// run runs the suite and gives what it printed and the folder of its results.
func run(t *testing.T, url string, args ...string) (out []byte, results string, err error) {
	t.Helper()
	dir, program := Node(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	results = t.TempDir()
	script := filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	cmd := exec.CommandContext(ctx, program, append([]string{script, "server", "--url", url, "--output-dir", results}, args...)...)
	cmd.Dir = dir
	out, err = cmd.CombinedOutput()
	return out, results, err
}

// check is what the suite says of one rule.
type check struct {
	ID, Status, ErrorMessage string

	raw json.RawMessage
}

func (c check) good() bool {
	return c.Status == "SUCCESS" || c.Status == "INFO" || c.Status == "SKIPPED"
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
			c := check{raw: raw}
			require.NoError(t, json.Unmarshal(raw, &c))
			out = append(out, c)
		}
	}
	return out
}

// ConformanceBut runs the official suite like Conformance, where some checks,
// by id, may fail: they need fixtures that real servers do not have.
func ConformanceBut(t *testing.T, url string, excused []string, args ...string) {
	t.Helper()
	_, results, _ := run(t, url, args...)
	var wrong []string
	for _, c := range checks(t, results) {
		if !c.good() && !slices.Contains(excused, c.ID) {
			wrong = append(wrong, c.ID+": "+c.ErrorMessage)
		}
	}
	require.Empty(t, wrong)
}
