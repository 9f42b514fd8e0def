package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// pages is a log that several write to.
type pages struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// A secret that is given to the check is in no log and no answer, whatever is
// wrong with the call.
func TestSecretsForTheCheckStayWithTheCall(t *testing.T) {
	t.Parallel()
	logs := &pages{}
	w := newAgentWorld(t, Config{Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	const secret = "9182736455463728"
	whole := `"scheme":"signature_v2","raw_body":"{}","signature":"00","timestamp":"1795216320"`
	for name, arguments := range map[string]string{
		"good":          `{` + whole + `,"secret":"` + secret + `"}`,
		"no text":       `{` + whole + `,"secret":` + secret + `}`,
		"a list":        `{` + whole + `,"secret":["` + secret + `"]}`,
		"an object":     `{` + whole + `,"secret":{"x":"` + secret + `"}}`,
		"twice":         `{` + whole + `,"secret":"` + secret + `","secret":"` + secret + `"}`,
		"another error": `{"scheme":"nosuch","raw_body":5,"signature":"00","secret":"` + secret + `"}`,
		"base64":        `{"scheme":"standard_webhooks","raw_body":"{}","signature":"v1,00","timestamp":"1","webhook_id":"a","secret":"whsec_` + secret + `!"}`,
		"not asked for": `{` + whole + `,"secret":"x","my_secret":"` + secret + `","tolerance_seconds":"` + "300" + `"}`,
	} {
		for _, headers := range [][]string{nil, {"X-MCP-Dry-Run", "1"}, {"X-MCP-Require-Approval", "1"}, {"Authorization", w.box.Admin.Token}} {
			r := w.on("/mcp/developer", "verify_webhook_signature", arguments, headers...)
			require.Equal(t, 200, r.status, name)
			require.NotContains(t, string(r.raw), secret, name)
		}
	}
	require.Contains(t, logs.String(), "verify_webhook_signature")
	require.NotContains(t, logs.String(), secret)
}

// The guide's programs log in and say who that is.
func TestProgramsOfTheGuide(t *testing.T) {
	ring.SkipUnlessCheck(t, "it runs other programs")
	t.Parallel()
	w := newAgentWorld(t, Config{})
	run := map[string][]string{"go": {"go", "run", "program.go"}, "python": {"python3", "program.py"}, "php": {"php", "program.php"}}
	for language, args := range run {
		t.Run(language, func(t *testing.T) {
			r := w.on("/mcp/developer", "get_integration_guide", fmt.Sprintf(`{"topic":"auth","language":%q}`, language))
			require.False(t, r.failed, "%s", r.raw)
			text := r.body["markdown"].(string)
			require.Contains(t, text, w.base)
			block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(text)
			require.NotNil(t, block)
			path, err := exec.LookPath(args[0])
			if err != nil {
				t.Skip(args[0] + " is not installed")
			}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, args[len(args)-1]), []byte(block[1]), 0o600))
			with := func(env ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), path, args[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), append(env, "POSTERN_URL="+w.base, "GOWORK=off", "GOPROXY=off")...)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			out, err := with("POSTERN_TOKEN=" + w.box.Admin.Token)
			require.NoError(t, err, out)
			require.Equal(t, "client_admin", strings.Fields(out)[len(strings.Fields(out))-1], out)
			out, _ = with("POSTERN_EMAIL=nobody@nowhere.example", "POSTERN_PASSWORD=wrong", "POSTERN_TOKEN=")
			require.Contains(t, out, "INVALID_CREDENTIALS")
		})
	}
}
