package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/postern-io/postern/internal/ring"
)

// composeFile is deploy/compose.yaml, as far as it is used there: other keys are refused.
type composeFile struct {
	Name     string
	Confined any                       `yaml:"x-confined"`
	Node     any                       `yaml:"x-node"`
	Services map[string]composeService `yaml:"services"`
	Networks map[string]struct {
		IPAM struct {
			Config []struct{ Subnet string }
		} `yaml:"ipam"`
	}
	Volumes map[string]struct{}
	Configs map[string]struct{ File string }
	Secrets map[string]struct{ File string }
}

type composeService struct {
	Image, User, Hostname, Restart string
	Command                        []string
	ReadOnly                       bool     `yaml:"read_only"`
	CapDrop                        []string `yaml:"cap_drop"`
	SecurityOpt                    []string `yaml:"security_opt"`
	Configs                        []struct{ Source, Target string }
	Secrets, Volumes, Tmpfs, Ports []string
	StopGracePeriod                string `yaml:"stop_grace_period"`
	ShmSize                        string `yaml:"shm_size"`
	Ulimits                        map[string]struct{ Soft, Hard int }
	Environment                    map[string]string
	Networks                       any
	DependsOn                      map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck                    struct {
		Test              []string
		Interval, Timeout string
		Retries           int
		StartPeriod       string `yaml:"start_period"`
	}
}

// address is a service's address that stays.
func (s composeService) address() string {
	n, _ := s.Networks.(map[string]any)
	inside, _ := n["inside"].(map[string]any)
	a, _ := inside["ipv4_address"].(string)
	return a
}

// nodeSettings are those of a node that containers depend on.
type nodeSettings struct {
	Listen string
	MQTT   struct {
		Listen  string
		Plain   bool
		Brokers []string
	}
	Proxies      struct{ Trusted, Protocol []string }
	BaseURL      string `yaml:"base_url"`
	Data         string
	DatabaseFile string `yaml:"database_file"`
}

func readCompose(t *testing.T) (file composeFile, node nodeSettings) {
	t.Helper()
	for name, to := range map[string]any{"compose.yaml": &file, "compose/cloud.yaml": &node} {
		raw, err := os.Open(filepath.Join("../../deploy", name))
		require.NoError(t, err)
		defer raw.Close()
		d := yaml.NewDecoder(raw)
		d.KnownFields(true)
		require.NoError(t, d.Decode(to), name)
	}
	return file, node
}

// Files, secrets, volumes, services, addresses and variables that the compose file names
// are there, and agree with the nodes' settings and with the balancer's.
func TestComposeFileAgreesWithSettings(t *testing.T) {
	t.Parallel()
	file, node := readCompose(t)
	require.Equal(t, []string{"balancer", "database", "node1", "node2", "node3"}, slices.Sorted(maps.Keys(file.Services)))
	mounted := map[string]bool{}
	for name, s := range file.Services {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt, name)
		require.Equal(t, "60s", s.StopGracePeriod, name)
		require.Equal(t, "unless-stopped", s.Restart, name)
		for other, d := range s.DependsOn {
			require.Equal(t, "service_healthy", d.Condition, name)
			require.NotEmpty(t, file.Services[other].Healthcheck.Test, "%s waits for %s", name, other)
		}
		for _, c := range s.Configs {
			require.Contains(t, file.Configs, c.Source, name)
			require.FileExists(t, filepath.Join("../../deploy", file.Configs[c.Source].File), name)
			mounted[c.Target] = true
		}
		for _, x := range s.Secrets {
			require.Contains(t, file.Secrets, x, name)
			mounted["/run/secrets/"+x] = true
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			require.Contains(t, file.Volumes, volume, name)
		}
		for _, p := range s.Ports {
			require.Regexp(t, `^127\.0\.0\.1:`, p, "nothing is shown beyond this machine")
		}
	}
	require.True(t, mounted[node.DatabaseFile])
	require.True(t, mounted[file.Services["database"].Environment["POSTGRES_PASSWORD_FILE"]])

	balancer := file.Services["balancer"]
	require.Equal(t, []string{balancer.address()}, node.Proxies.Trusted)
	require.Equal(t, []string{"listen", "mqtt.listen"}, node.Proxies.Protocol)
	rules, err := os.ReadFile("../../deploy/cluster/haproxy.cfg")
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, m := range regexp.MustCompile(`"?\$\{(\w+)\}"?`).FindAllStringSubmatch(string(rules), -1) {
		asked[m[1]] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(asked)), slices.Sorted(maps.Keys(balancer.Environment)))
	published := map[string]string{}
	for _, p := range balancer.Ports {
		i := strings.LastIndex(p, ":")
		published[p[i:]] = p[:i]
	}
	require.Equal(t, "http://"+published[balancer.Environment["HTTP_BIND"]], node.BaseURL)
	require.Equal(t, []string{"tcp://" + published[balancer.Environment["MQTT_BIND"]]}, node.MQTT.Brokers)
	for i := 1; i <= 3; i++ {
		name := fmt.Sprint("node", i)
		s := file.Services[name]
		require.Equal(t, name, s.Hostname, "the name of a node is its host's")
		require.Equal(t, s.address()+node.Listen, balancer.Environment[fmt.Sprintf("NODE%d_HTTP", i)])
		require.Equal(t, s.address()+node.MQTT.Listen, balancer.Environment[fmt.Sprintf("NODE%d_MQTT", i)])
		require.Equal(t, node.Listen, ":"+balancer.Environment[fmt.Sprintf("NODE%d_CHECK", i)])
		require.Equal(t, file.Services["node1"].Command, s.Command)
		require.True(t, mounted[s.Command[1]])
		volume, at, _ := strings.Cut(s.Volumes[0], ":")
		require.Equal(t, "data", volume, "nodes share keys and files")
		require.True(t, strings.HasPrefix(node.Data, at+"/"))
		require.Equal(t, "CMD", s.Healthcheck.Test[0], "the image has no shell")
	}
	if haproxy, err := exec.LookPath("haproxy"); err == nil {
		cmd := exec.CommandContext(t.Context(), haproxy, "-c", "-f", "../../deploy/cluster/haproxy.cfg")
		for k, v := range balancer.Environment {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// The program takes the settings of the compose file's nodes, and their health check tells
// a node that serves from one that does not.
func TestComposeFileStartsNodes(t *testing.T) {
	ring.SkipUnlessFull(t, "the file's settings are read strictly by TestComposeFileAgreesWithSettings, and programs are started by others")
	t.Parallel()
	bin, dir := build(t), t.TempDir()
	file, node := readCompose(t)
	raw, err := os.ReadFile("../../deploy/compose/cloud.yaml")
	require.NoError(t, err)
	// Here are neither containers nor their network: paths and ports are others.
	web, config := freeAddress(t), filepath.Join(dir, "cloud.yaml")
	writeFile(t, filepath.Join(dir, "database"), "postgres://postern@127.0.0.1:1/postern")
	text := string(raw)
	for from, to := range map[string]string{node.DatabaseFile: filepath.Join(dir, "database"), node.Data: filepath.Join(dir, "data"), "listen: :8080": "listen: " + web, "  listen: :1883": "  listen: " + freeAddress(t)} {
		require.Equal(t, 1, strings.Count(text, from), from)
		text = strings.Replace(text, from, to, 1)
	}
	writeFile(t, config, text)
	s := file.Services["node1"]
	program := func(args []string, more ...string) *exec.Cmd {
		args = slices.Clone(args)
		args[slices.Index(args, "/etc/postern/cloud.yaml")] = config
		return exec.CommandContext(t.Context(), filepath.Join(string(bin), "cloud"), append(args, more...)...)
	}
	out, err := program(s.Command, "--check").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "database: set")
	require.Equal(t, "/usr/bin/cloud", s.Healthcheck.Test[1])
	check := func() ([]byte, error) { return program(s.Healthcheck.Test[2:]).CombinedOutput() }
	out, err = check()
	require.Error(t, err, "%s", out)

	writeFile(t, config, strings.Replace(text, "database_file:", "#", 1)) // SQLite
	p := bin.start(t, "cloud", append([]string{"--config", config}, s.Command[2:]...)...)
	ring.Await(t, func() bool { out, err := check(); return err == nil && string(out) == "ready\n" }, "the health check says yes")
	r, err := page.Get("http://" + web + "/readyz")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusOK, r.StatusCode)
	p.stop(t)
	out, err = check()
	require.Error(t, err, "%s", out)
}

// The compose file is one by the specification's own tool.
func TestComposeFileByItsSpecification(t *testing.T) {
	ring.SkipUnlessFull(t, "fetches a tool")
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "run", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2", "compose.yaml")
	cmd.Dir = "../../deploy"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "condition: service_healthy")
}
