// Package webhooktest lets tests ask other people's tools what they make of our
// webhooks.
package webhooktest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// Need leaves the test to a ring with other people's tools, and skips it without one of
// them, or fails it where they are required.
func Need(t *testing.T, name string, there bool) {
	t.Helper()
	ring.Needs(t, ring.EnvBrowsers, name+" (npm ci in cloud/webhook/verifiers)", there)
}

// Node runs a script of cloud/webhook/verifiers with an input and gives back
// what it prints.
func Node(t *testing.T, script string, input []byte) []byte {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(filepath.Dir(here)), "verifiers")
	program, err := exec.LookPath("node")
	Need(t, "node", err == nil)
	list, err := os.ReadFile(filepath.Join(dir, "package.json"))
	require.NoError(t, err)
	var packages struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal(list, &packages))
	for name := range packages.Dependencies {
		_, err = os.Stat(filepath.Join(dir, "node_modules", name))
		Need(t, "node_modules/"+name, err == nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, script)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s", errs.String())
	return out.Bytes()
}
