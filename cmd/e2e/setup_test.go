package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an installer put beside the starter is gone from there once it is taken, whenever the
// power fails: a line to enrol with is good once, and secrets stay nowhere that any computer
// can read.
func TestWhatAnImageHasTakenIsGoneAfterAPowerCut(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"etc", "data", "boot", "bin"} {
		require.NoError(t, os.Mkdir(at(name), 0o700))
	}
	raw, err := os.ReadFile("../../deploy/kiosk/setup")
	require.NoError(t, err)
	script := strings.NewReplacer("/etc/postern", at("etc"), "/var/lib/postern/edge", at("data"), "/usr/bin/postern-edge", "agent", " -o postern -g postern", "").Replace(string(raw))
	for name, text := range map[string]string{
		"setup":         script,
		"bin/runuser":   "#!/bin/sh\nshift 3; exec \"$@\"\n",
		"bin/systemctl": "#!/bin/sh\n",
		"bin/agent":     "#!/bin/sh\n[ ! -e " + at("data/secrets.json") + " ] || exit 1\necho secrets >" + at("data/secrets.json") + "\n", // enrols once
	} {
		require.NoError(t, os.WriteFile(at(name), []byte(text), 0o700))
	}
	setup := func(file, content string) (left []string) {
		t.Helper()
		require.NoError(t, os.WriteFile(at("boot/"+file), []byte(content), 0o600))
		cmd := exec.CommandContext(t.Context(), "sh", at("setup"), at("boot"))
		cmd.Env = append(os.Environ(), "PATH="+at("bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		names, err := os.ReadDir(at("boot"))
		require.NoError(t, err)
		for _, n := range names {
			left = append(left, n.Name())
		}
		return left
	}
	for range 2 { // the second time after a cut before it was gone
		require.Empty(t, setup("enrol.txt", "https://tms.example CAB-1 token\n"))
		require.FileExists(t, at("data/secrets.json"))
	}
	require.Empty(t, setup("secrets.json", "secrets\n"))
	require.Equal(t, []string{"secrets.json"}, setup("secrets.json", "of another\n"))
	require.Equal(t, []string{"secrets.json"}, setup("kiosk.env", "POSTERN_ROTATE=90\n"), "the others are taken all the same")
	kept, err := os.ReadFile(at("data/secrets.json"))
	require.NoError(t, err)
	require.Equal(t, "secrets\n", string(kept))
}
