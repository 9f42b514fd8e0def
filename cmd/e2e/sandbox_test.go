package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
)

// sandbox is the built cloud over what `cloud demo-data` makes, until the test
// ends.
func sandbox(t *testing.T) (box server.Sandbox) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	return sandboxOf(t, build(t))
}

// sandboxOf is a sandbox of programs that are built.
func sandboxOf(t *testing.T, bin programs) (box server.Sandbox) {
	t.Helper()
	addr := freeAddress(t)
	at := []string{"--data", filepath.Join(t.TempDir(), "cloud"), "--listen", addr, "--mqtt-listen", freeAddress(t)}
	out, err := exec.Command(filepath.Join(string(bin), "cloud"), append(at, "demo-data")...).Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &box))
	p := bin.start(t, "cloud", at...)
	t.Cleanup(func() { p.stop(t) })
	ring.Await(t, func() bool {
		resp, err := page.Get(box.BaseURL + "/api/openapi.json")
		return err == nil && resp.Body.Close() == nil
	})
	return box
}

// person is a caller of a cloud, in a language.
type person struct {
	base, token, language string
}

// answered is the answer that a person got.
type answered struct {
	status int
	body   map[string]any
}

// at is a member of the answer by its path; a number stands for a place in a
// list.
func (a answered) at(path ...any) any {
	var v any = a.body
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			list, _ := v.([]any)
			if v = nil; p < len(list) {
				v = list[p]
			}
		}
	}
	return v
}

func (p person) do(t *testing.T, method, path string, in any) answered {
	t.Helper()
	body, err := json.Marshal(in)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), method, p.base+path, strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Language", p.language)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := page.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	a := answered{status: resp.StatusCode}
	require.NoError(t, json.Unmarshal(raw, &a.body), "%s", raw)
	return a
}

// ask sends a GraphQL document.
func (p person) ask(t *testing.T, document string, variables map[string]any) answered {
	t.Helper()
	return p.do(t, "POST", "/api/graphql", map[string]any{"query": document, "variables": variables})
}
