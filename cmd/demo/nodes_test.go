package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// needsCluster skips a test where a deployment of several nodes cannot run.
func needsCluster(t *testing.T) {
	t.Helper()
	ring.SkipUnlessFull(t, "several nodes of the cloud, its killed process in the demo of one node, and the message about a balancer that is not installed")
	for _, tool := range []string{"haproxy", "/usr/lib/postgresql"} {
		_, err := exec.LookPath(tool)
		_, folder := os.Stat(tool)
		ring.Needs(t, ring.EnvTools, tool, err == nil || folder == nil)
	}
}

// The same day with three nodes behind a balancer, of which one is killed in every act and
// all are in one: nothing is lost, and every door opens.
func TestADayWithKilledNodesAgrees(t *testing.T) {
	needsCluster(t)
	t.Parallel()
	var story bytes.Buffer
	got := playDay(t, flags{Seed: 6, Cluster: true}, &story)
	require.Equal(t, 1, got.ShopGivenUp, "as the shop asked")
	require.GreaterOrEqual(t, strings.Count(story.String(), " starts again\n"), 10, "%s", &story)
}

// A node that a person kills runs again while the others serve, and at the end nothing is
// left.
func TestAKilledNodeRunsAgain(t *testing.T) {
	needsCluster(t)
	t.Parallel()
	p := startProgram(t, "--cluster")
	console := p.reads(`Console +(http://\S+/console)`)[1]
	serves := func() bool {
		resp, err := http.Get(console)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && resp.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`type="password"`))
	}
	ring.Await(t, serves, "the console opens through the balancer")
	var ids []int
	for _, name := range []string{"node1", "node2", "node3", "balancer"} {
		n, err := strconv.Atoi(p.reads(name + ` +process ([0-9]+)\n`)[1])
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(n, 0), name)
		ids = append(ids, n)
	}
	require.NoError(t, syscall.Kill(ids[1], syscall.SIGKILL))
	ring.Await(t, serves, "the others serve")
	p.reads(`power +node2 starts again`)
	p.stop()
	require.Regexp(t, `verdict +OK`, p.String())
	for _, n := range ids {
		require.Error(t, syscall.Kill(n, 0), "process %d", n)
	}
	_, err := http.Get(console)
	require.Error(t, err)
}

// Without a balancer the demo names the package to install, and leaves nothing.
func TestTheMissingPackageIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, play(t.Context(), flags{Once: true, Cluster: true, Listen: "127.0.0.1:0"}, io.Discard, io.Discard), "install the package haproxy")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
