package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// nodeTests is set to "require" where missing Node packages are a failure.
const nodeTests = "POSTERN_BROWSER_TESTS"

// node finds Node among the packages of the conformance folder: what runs there
// needs a newer one than a system may have.
func node(t *testing.T) string {
	t.Helper()
	cpu := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if cpu == "" {
		cpu = runtime.GOARCH
	}
	program := filepath.Join("conformance", "node_modules", "node-"+runtime.GOOS+"-"+cpu, "bin", "node")
	_, err := os.Stat(program)
	if err != nil && os.Getenv(nodeTests) == "require" {
		t.Fatalf("%s is missing", program)
	}
	if err != nil {
		t.Skip("Node packages are missing (npm ci in cloud/mcp/conformance)")
	}
	list, err := os.ReadFile(filepath.Join("conformance", "package.json"))
	require.NoError(t, err)
	var packages struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal(list, &packages))
	for name, version := range packages.Dependencies {
		b, err := os.ReadFile(filepath.Join("conformance", "node_modules", name, "package.json"))
		require.NoError(t, err, "%s is missing (npm ci in cloud/mcp/conformance)", name)
		var have struct{ Version string }
		require.NoError(t, json.Unmarshal(b, &have))
		require.Equal(t, version, have.Version, name)
	}
	program, err = filepath.Abs(program)
	require.NoError(t, err)
	return program
}

// listen serves an engine on the loopback and gives its address.
func listen(t testing.TB, cfg Config) string {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &fasthttp.Server{Handler: s.Handle, NoDefaultServerHeader: true, NoDefaultContentType: true, CloseOnShutdown: true, MaxRequestBodySize: maxBody}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		c, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.ShutdownWithContext(c)
		<-ended
	})
	return "http://" + ln.Addr().String() + "/mcp"
}

// failures are the checks that did not succeed, as the suite wrote them down.
func failures(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	require.NoError(t, err)
	for _, f := range files {
		var checks []json.RawMessage
		in, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(in, &checks))
		for _, c := range checks {
			var check struct{ Status string }
			require.NoError(t, json.Unmarshal(c, &check))
			if check.Status != "SUCCESS" && check.Status != "INFO" {
				b.WriteString(filepath.Base(filepath.Dir(f)) + "\n")
				b.Write(c)
			}
		}
	}
	return b.String()
}

// The official suite against the engine with the suite's fixtures.
func TestOfficialConformance(t *testing.T) {
	t.Parallel()
	program := node(t)
	url := listen(t, fixtures())
	for name, args := range map[string][]string{
		modern:                                 {"--requirements", modern},
		newest:                                 {"--requirements", newest, "--expected-failures", "expected-failures.yml"},
		"http-header-validation":               {"--scenario", "http-header-validation"},
		"http-custom-header-server-validation": {"--scenario", "http-custom-header-server-validation"},
		"json-schema-2020-12":                  {"--scenario", "json-schema-2020-12"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			dir := t.TempDir()
			script := filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
			cmd := exec.CommandContext(ctx, program, append([]string{script, "server", "--url", url, "--output-dir", dir}, args...)...)
			cmd.Dir = "conformance"
			out, err := cmd.CombinedOutput()
			_, summary, _ := bytes.Cut(out, []byte("=== SUMMARY ==="))
			require.NoError(t, err, "%s\n%s", summary, failures(t, dir))
		})
	}
}
