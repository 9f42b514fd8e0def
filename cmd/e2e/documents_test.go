package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/postern-io/postern/internal/ring"
)

// commands is a block of commands of a document. Its kind stands behind "sh" at
// its head:
//
//	(none)     calls to the server at $BASE, with the passwords in $SANDBOX
//	make       targets, of which make must know how they are made
//	programs   built programs, in a folder with bin/, configs/ and a sandbox
//	terminals  the same, each line in a terminal of its own; those of a document one after
//	           the other in one folder, without a sandbox
//	archive    in the folder that make release has filled
//	packages   as root in the folder that make packages has filled
//	containers for a machine with containers, which there is none of here: files and
//	           services that they name are there
//	kubernetes the same for a cluster
type commands struct {
	name, kind, script string
}

var fence = regexp.MustCompile("(?ms)^```sh([^\n]*)\n(.*?)^```$")

func documentedCommands(t *testing.T) (out []commands) {
	t.Helper()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			for i, m := range fence.FindAllStringSubmatch(string(text), -1) {
				out = append(out, commands{name: fmt.Sprint(filepath.Base(f), " ", i+1), kind: strings.TrimSpace(m[1]), script: m[2]})
			}
		}
	}
	return out
}

// Commands of the documents work as they stand, and print the text that is
// written behind them.
func TestCommandsOfTheDocuments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	for _, tool := range []string{"sh", "sed", "curl", "make", "tar", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands need %s, which is missing here", tool)
		}
	}
	blocks := documentedCommands(t)
	bin := build(t)
	kinds := map[string]func(*testing.T, commands){
		"": func(t *testing.T, c commands) { c.onServer(t, bin) }, "make": func(t *testing.T, c commands) { c.known(t) },
		"programs":   func(t *testing.T, c commands) { c.run(t, installed(t, c.releasing(t, bin), c.ports(t))) },
		"archive":    func(t *testing.T, c commands) { c.released(t) },
		"packages":   func(t *testing.T, c commands) { c.packaged(t) },
		"containers": func(t *testing.T, c commands) { c.inContainers(t) },
		"kubernetes": func(t *testing.T, c commands) { c.onKubernetes(t) },
	}
	seen, followed := map[string]int{}, map[string][]commands{}
	for _, c := range blocks {
		if c.kind == "terminals" {
			document, _, _ := strings.Cut(c.name, " ")
			followed[document] = append(followed[document], c)
			continue
		}
		run := kinds[c.kind]
		require.NotNil(t, run, "%s: no test runs commands of the kind %q", c.name, c.kind)
		seen[c.kind]++
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run(t, c)
		})
	}
	for kind := range kinds {
		require.NotZero(t, seen[kind], kind)
	}
	require.NotEmpty(t, followed)
	for document, list := range followed {
		t.Run(document+" in terminals", func(t *testing.T) {
			t.Parallel()
			inTerminals(t, bin, list)
		})
	}
}

var expected = regexp.MustCompile(`(?m)  # (".+)$`)

// promises are the texts that stand behind commands, in quotes: members of an
// answer with their own.
func (c commands) promises() (out []string) {
	for _, m := range expected.FindAllStringSubmatch(c.script, -1) {
		if s := strings.TrimPrefix(m[1], `"`); strings.Index(s, `"`) == len(s)-1 {
			out = append(out, strings.TrimSuffix(s, `"`))
		} else {
			out = append(out, m[1])
		}
	}
	return out
}

// run runs the block in a folder. Every promise is in the rest of the output.
func (c commands) run(t *testing.T, dir string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", c.script)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "LC_ALL=C"), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errs.String())
	c.keepPromises(t, string(out))
	return string(out)
}

// keepPromises finds each promise in the rest of an output.
func (c commands) keepPromises(t *testing.T, out string) {
	t.Helper()
	require.NotEmpty(t, c.promises(), "the block says what it prints")
	left := out
	for _, p := range c.promises() {
		_, rest, ok := strings.Cut(left, p)
		require.True(t, ok, "%s is not in the rest of the output: %s", p, left)
		left = rest
	}
}

// onServer runs the block against a server of its own.
func (c commands) onServer(t *testing.T, bin programs) {
	box := sandboxOf(t, bin)
	file, err := json.MarshalIndent(box, "", "  ") // as both commands write it
	require.NoError(t, err)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "sandbox.json"), string(file))
	out := c.run(t, dir, "BASE="+box.BaseURL, "SANDBOX="+filepath.Join(dir, "sandbox.json"))
	if strings.Contains(c.script, "Accept-Language: de") {
		require.Contains(t, out, "Diesen Auftrag")
	}
}

// known asks make how the targets are made; other tests make them.
func (c commands) known(t *testing.T) {
	for line := range strings.Lines(c.script) {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(command)
		require.Equal(t, "make", words[0], line)
		out, err := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", "../.."}, words[1:]...)...).CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
		require.Regexp(t, `\bgo[ "]`, string(out), line)
	}
}

var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// inContainers compares commands for containers with what is deployed: files, services
// and the secrets' paths and owners.
func (c commands) inContainers(t *testing.T) {
	file, _ := readCompose(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-n")
	cmd.Stdin = strings.NewReader(c.script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, m := range regexp.MustCompile(`-f (\S+)`).FindAllStringSubmatch(c.script, -1) {
		require.FileExists(t, filepath.Join("../..", m[1]))
	}
	for _, m := range regexp.MustCompile(`(?:exec|kill -s HUP) (\w+)`).FindAllStringSubmatch(c.script, -1) {
		require.Contains(t, file.Services, m[1])
	}
	for name, s := range file.Secrets {
		owner := map[string]string{"database": "65532", "database_password": strings.Split(file.Services["database"].User, ":")[0]}[name]
		require.Contains(t, c.script, "-m 400 -o "+owner+" /dev/stdin "+filepath.Join("deploy", s.File)+"\n")
	}
	require.Contains(t, c.script, "/usr/bin/cloud --config "+file.Services["node1"].Configs[0].Target+" ")
	require.Contains(t, c.script, "docker-daemon:"+regexp.MustCompile(`:-(\S+)}`).FindStringSubmatch(file.Services["node1"].Image)[1]+"\n")
}

// onKubernetes compares commands for a cluster with the chart's values.
func (c commands) onKubernetes(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	var values struct{ Database, Keys struct{ Key string } }
	require.NoError(t, yaml.Unmarshal(raw, &values))
	for _, key := range []string{values.Database.Key, values.Keys.Key} {
		require.Contains(t, c.script, " --from-file="+key)
		require.Regexp(t, `(?m)(^cloud keys |> )`+regexp.QuoteMeta(key)+`$`, c.script)
	}
	_, folder, ok := strings.Cut(c.script, "helm install tms ")
	require.True(t, ok)
	require.DirExists(t, filepath.Join("../..", strings.Fields(folder)[0]))
	var given, known map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(documentedValues(t)), &given))
	require.NoError(t, yaml.Unmarshal(raw, &known))
	for name := range given {
		require.Contains(t, known, name)
	}
}

// documentedValues are the chart's values that docs/operate.md shows.
func documentedValues(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	_, example, ok := strings.Cut(string(doc), "```yaml\n# values.yaml\n")
	require.True(t, ok)
	example, _, _ = strings.Cut(example, "```")
	return example
}

// ports are free addresses for those that the block and the settings name.
func (c commands) ports(t *testing.T) func(string) string {
	free := map[string]string{}
	return func(text string) string {
		return loopback.ReplaceAllStringFunc(text, func(a string) string {
			if free[a] == "" {
				free[a] = freeAddress(t)
			}
			return free[a]
		})
	}
}

// releasing are the programs with the agent built as the version that the block signs, if any.
func (c commands) releasing(t *testing.T, bin programs) programs {
	_, signs, found := strings.Cut(c.script, "release sign ")
	if !found {
		return bin
	}
	_, version, _ := strings.Cut(signs, "--release ")
	dir := t.TempDir()
	entries, err := os.ReadDir(string(bin))
	require.NoError(t, err)
	for _, e := range entries {
		from := filepath.Join(string(bin), e.Name())
		if e.Name() == "edge" {
			from = buildAgent(t, strings.Fields(version)[0])
		}
		require.NoError(t, os.Symlink(from, filepath.Join(dir, e.Name())))
	}
	return programs(dir)
}

// installed is a folder with the programs, their settings and a sandbox.
func installed(t *testing.T, bin programs, addresses func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink(string(bin), filepath.Join(dir, "bin")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "configs"), 0o700))
	files, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		writeFile(t, filepath.Join(dir, "configs", filepath.Base(f)), addresses(string(raw)))
	}
	cmd := exec.CommandContext(t.Context(), "bin/cloud", "demo-data", "--config", "configs/cloud.yaml")
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	writeFile(t, filepath.Join(dir, "sandbox.json"), string(out))
	return dir
}

// inTerminals follows a document from top to bottom: it starts one line after the other, of
// one block after the other. A line has ended, or has printed its promise, before the next one
// starts; all that still run end in order.
func inTerminals(t *testing.T, bin programs, list []commands) {
	addresses, script := commands{}.ports(t), ""
	for _, c := range list {
		script += c.script
	}
	dir := installed(t, bin, addresses)
	for _, name := range []string{"data", "sandbox.json"} { // the document makes them
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	for line := range strings.Lines(addresses(script)) {
		p := &process{name: line, cmd: exec.Command("sh", "-euc", execOf(line)), done: make(chan error, 1)}
		p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p, p
		p.run(t)
		promises := commands{script: line}.promises()
		if len(promises) == 0 {
			require.NoError(t, p.await(), p.tail())
			continue
		}
		t.Cleanup(func() { p.stop(t) })
		ring.Await(t, func() bool { return strings.Contains(p.text(), promises[0]) }, line)
	}
}

// execOf has a shell become the program of a line, which is then stopped by its own id.
func execOf(line string) string {
	if strings.HasPrefix(line, "until ") {
		return line
	}
	return "exec " + line
}

// released makes an archive of this system and runs the block beside it.
func (c commands) released(t *testing.T) {
	ring.SkipUnlessFull(t, "builds a release")
	if at := runtime.GOOS + "/" + runtime.GOARCH; at != "linux/amd64" {
		t.Skip("the block is for linux/amd64, this is " + at)
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "release", "SYSTEMS=linux-amd64", "VERSION=v0.0.0", "DIST="+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	c.run(t, dir)
	for _, name := range []string{"README.md", "docs/install.md", "docs/pictures/parcel.svg", "configs/edge.yaml", "LICENSE"} {
		require.FileExists(t, filepath.Join(dir, "postern-v0.0.0-linux-amd64", name))
	}
}

// packaged makes the packages of this system and runs the block beside them, in a copy of
// this machine.
func (c commands) packaged(t *testing.T) {
	ring.SkipUnlessFull(t, "builds packages")
	if at := runtime.GOOS + "/" + runtime.GOARCH; at != "linux/amd64" {
		t.Skip("the block is for linux/amd64, this is " + at)
	}
	dir := t.TempDir()
	m := newMachine(t, dir)
	makePackages(t, dir, "v0.0.0", "amd64")
	c.keepPromises(t, m.run(t, "sh", "-euc", "cd /packages\n"+c.script))
}

// The example of nginx is in order, and what it leads to are the addresses of the settings
// beside it.
func TestNginxOfTheDocuments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	_, err := exec.LookPath("nginx")
	ring.Needs(t, ring.EnvTools, "nginx (Debian's nginx-light)", err == nil)
	raw, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	block := func(head string) string {
		_, rest, ok := strings.Cut(string(raw), head)
		require.True(t, ok, head)
		text, _, _ := strings.Cut(rest, "```")
		return text
	}
	dir, front, web, socket := t.TempDir(), freeAddress(t), freeAddress(t), freeAddress(t)
	cert, key := certificateOf(t, dir, 1)
	local := strings.NewReplacer("listen 443", "listen "+front, "/etc/ssl/cloud.example.crt", cert, "/etc/ssl/cloud.example.key", key,
		"127.0.0.1:8080", web, "127.0.0.1:8083", socket, "https://cloud.example", "https://"+front)
	conf := filepath.Join(dir, "nginx.conf")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n" // the folder is readable by its owner alone
	}
	writeFile(t, conf, fmt.Sprintf(`%sdaemon off; master_process off; pid %[2]s/nginx.pid; error_log stderr warn;
events { worker_connections 1024; }
http {
access_log off;
client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
%[3]s}
`, user, dir, local.Replace(block("```nginx\n"))))
	out, err := exec.CommandContext(t.Context(), "nginx", "-t", "-c", conf, "-p", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)

	bin := build(t)
	settings := filepath.Join(dir, "cloud.yaml")
	writeFile(t, settings, local.Replace(block("```yaml\n# cloud.yaml behind nginx\n"))+fmt.Sprintf("data: %s\nadmin: {listen: ''}\n", filepath.Join(dir, "data")))
	c := bin.start(t, "cloud", "--config", settings, "--mqtt-listen", freeAddress(t))
	t.Cleanup(func() { c.stop(t) })
	p := &process{name: "nginx", cmd: exec.Command("nginx", "-c", conf, "-p", dir), done: make(chan error, 1)}
	p.cmd.Stderr = p
	p.run(t)
	t.Cleanup(func() { p.stop(t) })
	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(pem))
	trust := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	ring.Await(t, func() bool {
		r, err := client.Get("https://" + front + "/readyz")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}, "the cloud answers through nginx")
	require.NotContains(t, c.text(), "proxies.trusted", "nginx is trusted")
	conn, err := tls.Dial("tcp", front, trust)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = fmt.Fprintf(conn, "GET /mqtt HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n", front)
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, " 101 ", "the broker is behind /mqtt")
}

// A link of a document leads to a file of the repository.
func TestLinksOfTheDocuments(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	seen := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/interface/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				target, _, _ := strings.Cut(m[1], "#")
				if target == "" || strings.Contains(target, ":") {
					continue
				}
				seen++
				require.FileExists(t, filepath.Join(filepath.Dir(f), target), "%s: %s", f, m[1])
			}
		}
	}
	require.Greater(t, seen, 8)
}
