package sender

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/docs/webhook/snippets/verify"
	"github.com/postern-io/postern/internal/ring"
)

// received is a request as a receiver has it, with what it is to make of it.
type received struct {
	head   http.Header
	body   []byte
	secret string
	now    time.Time
	good   bool
}

// everyRequest are requests of all formats and channels, in a rotation and
// without, good ones and such as must be refused.
func everyRequest(t *testing.T) (out []received) {
	t.Helper()
	for _, format := range cloud.HookFormats() {
		for _, scheme := range cloud.HookSignatures() {
			for _, channel := range cloud.Channels() {
				for _, body := range bodies()[:3] {
					for _, rotation := range []bool{false, true} {
						q := sent(t, body, func(m *message) {
							m.work.Event.Channel, m.endpoint.Format, m.endpoint.Signature, m.endpoint.SigningKey = channel, format, scheme, seed()
							if rotation {
								rotating(m)
							}
						})
						raw, err := io.ReadAll(q.Body)
						require.NoError(t, err)
						add := func(good bool, secret string, shift time.Duration, edit func(h http.Header, b []byte) []byte) {
							h, b := q.Header.Clone(), bytes.Clone(raw)
							if edit != nil {
								b = edit(h, b)
							}
							out = append(out, received{h, b, secret, signedAt.Add(shift), good})
						}
						set := func(name, value string) func(http.Header, []byte) []byte {
							return func(h http.Header, b []byte) []byte { h.Set(name, value); return b }
						}
						add(true, secretOfVectors, 0, nil)
						add(true, secretOfVectors, 300*time.Second, nil)
						add(true, secretOfVectors, -300*time.Second, nil)
						add(rotation, nextSecret, 0, nil)
						add(false, secretOfVectors, 301*time.Second, nil)
						add(false, secretOfVectors, -301*time.Second, nil)
						add(false, "another secret of nobody", 0, nil)
						add(false, secretOfVectors, 0, func(_ http.Header, b []byte) []byte { return append(b, ' ') })
						add(false, secretOfVectors, 0, set("X-Webhook-Timestamp", "1795216321"))
						add(false, secretOfVectors, 0, set("X-Webhook-Timestamp", ""))
						add(false, secretOfVectors, 0, set("X-Webhook-Timestamp", "soon"))
						add(false, secretOfVectors, 0, set("X-Webhook-Timestamp", "99999999999999999999"))
						add(false, secretOfVectors, 0, func(h http.Header, b []byte) []byte {
							for _, name := range []string{"X-Webhook-Signature", "X-Webhook-Signature-Next", "X-Webhook-Signature-V2"} {
								h.Del(name)
							}
							return b
						})
						add(false, secretOfVectors, 0, func(h http.Header, b []byte) []byte {
							for _, name := range []string{"X-Webhook-Signature", "X-Webhook-Signature-Next", "X-Webhook-Signature-V2"} {
								h.Set(name, "\xe9\xff")
							}
							return b
						})
						if channel != cloud.ChannelAccount {
							add(false, secretOfVectors, 0, set("X-Webhook-Delivery-Id", "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5f"))
						}
					}
				}
			}
		}
	}
	return out
}

func TestGuideCodeInGo(t *testing.T) {
	t.Parallel()
	for i, r := range everyRequest(t) {
		require.Equal(t, r.good, verify.Request(r.head, r.body, r.secret, r.now), "request %d", i)
	}
}

// The code of the guide in other languages tells the same requests apart, where
// the machine can run it.
func TestGuideCode(t *testing.T) {
	t.Parallel()
	requests := everyRequest(t)
	var in bytes.Buffer
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, r := range requests {
		fmt.Fprintf(&in, "%s\t%d\t%s", b64(r.secret), r.now.Unix(), b64(string(r.body)))
		for name := range r.head {
			fmt.Fprintf(&in, "\t%s=%s", strings.ToLower(name), b64(r.head.Get(name)))
		}
		in.WriteByte('\n')
	}
	harness, err := filepath.Abs("../../docs/webhook/testdata")
	require.NoError(t, err)
	run := func(t *testing.T, dir, name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, name, args...)
		var out, errs bytes.Buffer
		c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, bytes.NewReader(in.Bytes()), &out, &errs
		require.NoError(t, c.Run(), "%s", errs.String())
		return out.String()
	}
	for name, c := range map[string]struct {
		tools []string
		must  bool // where tools are required
		run   func(t *testing.T) string
	}{
		"JavaScript": {[]string{"node"}, true, func(t *testing.T) string { return run(t, harness, "node", "run.mjs") }},
		"Python":     {[]string{"python3"}, false, func(t *testing.T) string { return run(t, harness, "python3", "run.py") }},
		"PHP":        {[]string{"php"}, false, func(t *testing.T) string { return run(t, harness, "php", "run.php") }},
		"Java": {[]string{"javac", "java"}, false, func(t *testing.T) string {
			dir := t.TempDir()
			run(t, harness, "javac", "-d", dir, "../snippets/Verify.java", "Run.java")
			return run(t, dir, "java", "-cp", dir, "Run")
		}},
		"C#": {[]string{"dotnet"}, false, func(t *testing.T) string {
			dir := t.TempDir()
			for to, from := range map[string]string{"Verify.cs": "../snippets/Verify.cs", "Run.cs": "Run.cs"} {
				b, err := os.ReadFile(filepath.Join(harness, from))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, to), b, 0o600))
			}
			project := `<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>`
			require.NoError(t, os.WriteFile(filepath.Join(dir, "run.csproj"), []byte(project), 0o600))
			return run(t, dir, "dotnet", "run")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tool := range c.tools {
				_, err := exec.LookPath(tool)
				if err != nil && !c.must {
					t.Skip(tool + " is not on this machine")
				}
				ring.Needs(t, ring.EnvBrowsers, tool, err == nil)
			}
			said := strings.Fields(c.run(t))
			require.Len(t, said, len(requests))
			for i, r := range requests {
				require.Equal(t, r.good, said[i] == "1", "request %d", i)
			}
			require.True(t, slices.Contains(said, "1") && slices.Contains(said, "0"))
		})
	}
}
