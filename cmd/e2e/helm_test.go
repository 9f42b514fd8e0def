package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/postern-io/postern/internal/ring"
)

const chart = "../../deploy/helm/postern"

// podUser is the user of the program in its image.
const podUser = 65532

// Values that the chart has and its schema knows are the same.
func TestChartsSchemaKnowsItsValues(t *testing.T) {
	t.Parallel()
	var values map[string]any
	raw, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &values))
	var schema map[string]any
	raw, err = os.ReadFile(filepath.Join(chart, "values.schema.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &schema))
	values["global"] = nil // of helm itself
	sameNames(t, "", values, schema)
}

// sameNames compares the members of an object with those that its schema names.
func sameNames(t *testing.T, at string, object, schema map[string]any) {
	t.Helper()
	known, ok := schema["properties"].(map[string]any)
	if !ok || len(known) == 0 {
		return
	}
	require.Equal(t, false, schema["additionalProperties"], at)
	require.Equal(t, slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(object)), at)
	for name, v := range object {
		below, _ := v.(map[string]any)
		if s, ok := known[name].(map[string]any); ok && below != nil {
			sameNames(t, at+"/"+name, below, s)
		}
	}
}

// installedTool is a tool of others, built in a folder. Its version is pinned by its name.
func installedTool(t *testing.T, dir, tool string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "install", tool)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	name, _, _ := strings.Cut(filepath.Base(tool), "@")
	return filepath.Join(dir, name)
}

// rendered is what helm makes of the chart, object by object.
type rendered struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string // of a ConfigMap
	Spec     struct {
		Ports []struct {
			Name, TargetPort string
			Port             int
		}
		MaxUnavailable any
		Template       struct {
			Spec struct {
				AutomountServiceAccountToken  *bool
				TerminationGracePeriodSeconds int
				SecurityContext               map[string]any
				Containers                    []struct {
					Image           string
					Args            []string
					Env             []any
					SecurityContext map[string]any
					Ports           []struct {
						Name          string
						ContainerPort int
					}
					VolumeMounts []struct{ Name, MountPath string }
				}
				Volumes []struct {
					Name      string
					Projected struct {
						DefaultMode int
						Sources     []struct {
							Secret struct {
								Items []struct{ Key, Path string }
							}
						}
					}
				}
			}
		}
	}
}

// decodeAll reads objects by the lower-case names of their members.
func decodeAll(t *testing.T, text string) (out []rendered) {
	t.Helper()
	for doc := range strings.SplitSeq(text, "\n---") {
		var tree any
		require.NoError(t, yaml.Unmarshal([]byte(doc), &tree))
		if tree == nil {
			continue
		}
		raw, err := json.Marshal(tree)
		require.NoError(t, err)
		var r rendered
		require.NoError(t, json.Unmarshal(raw, &r)) // names of members in any case
		out = append(out, r)
	}
	return out
}

// The chart is in order by helm's own check, makes objects that Kubernetes' types have
// every member of, gives its pods no privilege, and settings that the program takes as the
// user of a pod, with secrets as a pod gets them.
func TestChart(t *testing.T) {
	ring.SkipUnlessFull(t, "fetches and builds tools")
	t.Parallel()
	bin, dir := build(t), t.TempDir()
	helm := installedTool(t, dir, "helm.sh/helm/v3/cmd/helm@v3.22.0")
	check := filepath.Join(dir, "check")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", check, ".")
	cmd.Dir = "../../deploy/check"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	all, err := filepath.Glob(filepath.Join(chart, "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.Len(t, all, 3)
	all = append(all, filepath.Join(dir, "documented-values.yaml"))
	writeFile(t, all[3], documentedValues(t))
	const kubernetes = "--kube-version=1.29.0"
	for _, values := range all {
		name := filepath.Base(values)
		out, err := exec.CommandContext(t.Context(), helm, "lint", "--strict", kubernetes, "-f", values, chart).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		made, err := exec.CommandContext(t.Context(), helm, "template", "demo", kubernetes, "-f", values, chart).Output()
		require.NoError(t, err, name)
		strict := exec.CommandContext(t.Context(), check)
		strict.Stdin = strings.NewReader(string(made))
		out, err = strict.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		objects := decodeAll(t, string(made))
		require.Len(t, objects, strings.Count(string(out), "\n"))
		checkPod(t, name, objects)
		settings := objects[slices.IndexFunc(objects, func(o rendered) bool { return o.Kind == "ConfigMap" })].Data["cloud.yaml"]
		checkMounted(t, bin, name, settings, objects)
	}
	const good = "image.repository=r/cloud,image.tag=v1,database.secret=p,keys.secret=p,files.claim=c,tls.secret=t,baseURL=https://tms.example"
	for set, want := range map[string]string{
		"": "", "image.repository=": "repository", "image.tag=": "image", "roles=broker": "roles", "database.secret=": "secret", "database.password=x": "password",
		"tls.secret=": "set tls.secret", "tls.secret=,tls.https=true,mqtt.plain=true,settings.mqtt.brokers={x}": "tls.https needs", "files.claim=": "set files.claim",
		"baseURL=": "settings.mqtt.brokers", "roles=core": "settings.mqtt.brokers", "replica=1": "replica", "admin.secret=A_b": "secret",
	} {
		out, err := exec.CommandContext(t.Context(), helm, "template", "demo", kubernetes, "--set", strings.TrimSuffix(good+","+set, ","), chart).CombinedOutput()
		if want == "" {
			require.NoError(t, err, "%s", out)
			continue
		}
		require.Error(t, err, set)
		require.Contains(t, string(out), want, set)
	}
}

// checkPod finds no privilege in the pods, and the ports that services lead to.
func checkPod(t *testing.T, name string, objects []rendered) {
	t.Helper()
	i := slices.IndexFunc(objects, func(o rendered) bool { return o.Kind == "StatefulSet" })
	pod := objects[i].Spec.Template.Spec
	require.Equal(t, map[string]any{"runAsNonRoot": true, "runAsUser": float64(podUser), "runAsGroup": float64(podUser), "fsGroup": float64(podUser), "fsGroupChangePolicy": "OnRootMismatch",
		"seccompProfile": map[string]any{"type": "RuntimeDefault"}}, pod.SecurityContext, name)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.Equal(t, map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}}, c.SecurityContext, name)
	require.Empty(t, c.Env, "secrets are files")
	require.False(t, *pod.AutomountServiceAccountToken)
	require.Equal(t, 60, pod.TerminationGracePeriodSeconds)
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, o := range objects {
		if o.Kind == "PodDisruptionBudget" {
			require.EqualValues(t, 1, o.Spec.MaxUnavailable)
		}
		for _, p := range o.Spec.Ports {
			require.True(t, ports[p.TargetPort], "%s: %s leads to %s", name, o.Metadata.Name, p.TargetPort)
		}
	}
}

// checkMounted has the program check the settings of a pod, with secrets as a pod has them:
// files of root that its group may read.
func checkMounted(t *testing.T, bin programs, name, settings string, objects []rendered) {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificateOf(t, dir, 1)
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(bin), "cloud"), "keys", filepath.Join(dir, "keys.json"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	writeFile(t, filepath.Join(dir, "database"), "postgres://postern@127.0.0.1:1/postern")
	for to, from := range map[string]string{"tls.crt": cert, "tls.key": key} {
		require.NoError(t, os.Rename(from, filepath.Join(dir, to)))
	}
	for _, file := range []string{"admin-token", "mail-password", "bucket"} {
		writeFile(t, filepath.Join(dir, file), "some-text-of-some-length")
	}
	mounted := map[string]bool{}
	for _, o := range objects {
		for _, v := range o.Spec.Template.Spec.Volumes {
			if v.Name != "secrets" {
				continue
			}
			require.Equal(t, 0o440, v.Projected.DefaultMode)
			for _, s := range v.Projected.Sources {
				for _, i := range s.Secret.Items {
					mounted["/run/secrets/postern/"+i.Path] = true
				}
			}
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, p := range c.Ports {
				require.Contains(t, settings+"\n", fmt.Sprintf("listen: :%d\n", p.ContainerPort), "%s: %s", name, p.Name)
			}
		}
	}
	for word := range strings.FieldsSeq(settings) {
		if strings.HasPrefix(word, "/run/secrets/") {
			require.True(t, mounted[word], "%s: %s is not mounted", name, word)
		}
	}
	config := filepath.Join(dir, "cloud.yaml")
	data := filepath.Join(dir, "data")
	writeFile(t, config, strings.NewReplacer("/run/secrets/postern", dir, "/var/lib/postern", data).Replace(settings))
	check := exec.CommandContext(t.Context(), filepath.Join(string(bin), "cloud"), "--check", "--config", config)
	if os.Getuid() == 0 {
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			require.NoError(t, os.Chown(filepath.Join(dir, f.Name()), 0, podUser))
			require.NoError(t, os.Chmod(filepath.Join(dir, f.Name()), 0o440))
		}
		for _, d := range []string{dir, filepath.Dir(dir), string(bin)} { // the pod's user passes
			require.NoError(t, os.Chmod(d, 0o755))
		}
		check.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: podUser, Gid: podUser}}
	}
	require.NoError(t, os.Mkdir(data, 0o700)) // the pod's volume
	require.NoError(t, os.Chmod(data, 0o777))
	out, err = check.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
	require.Contains(t, string(out), "database: set")
}
