package code_test

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/docs/code"
	"github.com/postern-io/postern/internal/ring"
)

var update = flag.Bool("update", false, "rewrite the golden programs")

// calls are what programs are written for: none of it may be read as a part of a program.
func calls(base string) map[string]code.Call {
	return map[string]code.Call{
		"plain": {Method: "GET", URL: base + "/api/v1/user/me", Token: true},
		"open":  {Method: "GET", URL: base + "/api/v1/track?q=%27%22%20%24x", Headers: [][2]string{{"X-Tracking-Key", `a'b"c$d\e` + "`f${g}"}}},
		"body": {Method: "POST", URL: base + "/api/v1/orders/O%27Neil%2F1", Token: true, Headers: [][2]string{{"Idempotency-Key", "k-1"}}, Body: `{
  "note": "It's \"quoted\", $HOME, ${x}, ` + "`tick`" + `, \\ back, \u2028, 漢字 🙂, \"\"\", BODY",
  "empty": "",
  "list": ["\"", "'", "BODY"],
  "n": 12345678901234567890
}`},
	}
}

// programs are how a program of each language is run; the last part is its file.
var programs = map[string][]string{
	"curl": {"sh"}, "python": {"python3"}, "javascript": {"node"}, "go": {"go", "run"}, "java": {"java"}, "php": {"php"},
}

// seen is what a server got.
type seen struct{ method, uri, token, body, kind, key, idempotency string }

// Every program that the machine can run sends exactly the call that it was written for,
// whatever signs are in it.
func TestProgramsSendTheirCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]seen{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		who, rest, _ := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/")
		mu.Lock()
		got[who] = seen{r.Method, "/" + rest, r.Header.Get("Authorization"), string(raw), r.Header.Get("Content-Type"), r.Header.Get("X-Tracking-Key"), r.Header.Get("Idempotency-Key")}
		mu.Unlock()
		_, _ = io.WriteString(w, "good answer")
	}))
	t.Cleanup(s.Close)
	for _, l := range code.Languages() {
		run := programs[l.ID]
		if _, err := exec.LookPath(run[0]); err != nil {
			t.Logf("%s is not run: %s is missing", l.Name, run[0])
			continue
		}
		for name, c := range calls("") {
			if name != "body" && !ring.Full() { // the one with most in it
				continue
			}
			t.Run(l.ID+" "+name, func(t *testing.T) {
				t.Parallel()
				who := l.ID + "-" + name
				path := c.URL
				c.URL = s.URL + "/" + who + path
				file := filepath.Join(t.TempDir(), l.File)
				require.NoError(t, os.WriteFile(file, []byte(l.Write(c)), 0o600))
				cmd := exec.CommandContext(t.Context(), run[0], append(run[1:], file)...)
				cmd.Env = append(os.Environ(), "POSTERN_TOKEN=the token")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s\n%s", out, l.Write(c))
				require.Contains(t, string(out), "good answer")
				mu.Lock()
				x := got[who]
				mu.Unlock()
				require.Equal(t, c.Method, x.method)
				require.Equal(t, path, x.uri)
				if c.Token {
					require.Equal(t, "Bearer the token", x.token)
				} else {
					require.Empty(t, x.token)
				}
				if c.Body == "" {
					require.Empty(t, x.body)
				} else {
					require.Equal(t, "application/json", x.kind)
					require.JSONEq(t, c.Body, x.body)
					require.Contains(t, x.body, "12345678901234567890")
				}
				for _, h := range c.Headers {
					require.Contains(t, []string{x.key, x.idempotency}, h[1])
				}
			})
		}
	}
}

// The programs are those of the golden files, which people read; of languages that the
// machine cannot run they are the proof.
func TestProgramsAreGolden(t *testing.T) {
	t.Parallel()
	for _, l := range code.Languages() {
		for name, c := range calls("https://cloud.example.com") {
			file := filepath.Join("testdata", name+"."+l.File+".golden")
			text := l.Write(c)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text, "%s: record it anew with -update", file)
			require.True(t, strings.HasSuffix(text, "\n"))
		}
	}
}
