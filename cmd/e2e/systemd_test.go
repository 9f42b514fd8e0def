package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// exposure is what systemd may find of a unit at most, in tenths: 0 is nothing, 100 all.
const exposure = "20"

// The units are in order by systemd's own check, and let the programs do little.
func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	ring.Needs(t, ring.EnvTools, "systemd-analyze", err == nil)
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	require.NoError(t, err)
	require.Len(t, units, 2)
	for _, unit := range units {
		name := filepath.Base(unit)
		text, err := os.ReadFile(unit)
		require.NoError(t, err)
		dir := t.TempDir()
		program := filepath.Join(dir, "program")
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
		_, start, ok := strings.Cut(string(text), "ExecStart=")
		require.True(t, ok, name)
		installed, _, _ := strings.Cut(start, " ")
		at := filepath.Join(dir, name) // with a program that is there
		writeFile(t, at, strings.Replace(string(text), "ExecStart="+installed, "ExecStart="+program, 1))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", at).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		require.NotContains(t, string(out), name, "a line that systemd does not know")
		out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--no-pager", "--threshold="+exposure, at).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
	agent, err := os.ReadFile("../../deploy/systemd/postern-edge.service")
	require.NoError(t, err)
	for _, line := range []string{"SupplementaryGroups=dialout input", "DeviceAllow=char-ttyUSB rw", "DeviceAllow=char-ttyS rw", "DeviceAllow=char-input r"} {
		require.Contains(t, string(agent), line+"\n", "boards hang on serial lines, scanners on those or on input devices")
	}
	require.NotContains(t, string(agent), "PrivateDevices=yes")
}
