package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clockShift is the variable of the environment that shifts the clock of a program that
// is built with shiftedClocks: whole seconds from -9 to 9.
const clockShift = "POSTERN_TEST_CLOCK_SHIFT"

// shiftedClocks is a time package whose wall clock is shifted by the environment, by where
// it stands in place of Go's. Its monotonic clock, timers and sleeps are as they were.
func shiftedClocks(t *testing.T) map[string]string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	name := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(name)
	require.NoError(t, err)
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	require.Equal(t, 1, strings.Count(string(source), reads), "the clock of this release of Go is read in another way")
	shifted := strings.Replace(string(source), reads, reads+"\tsec += clockShift\n", 1) + `
var clockShift = func() int64 {
	text, _ := syscall.Getenv("` + clockShift + `")
	sign := int64(1)
	if text != "" && text[0] == '-' {
		sign, text = -1, text[1:]
	}
	if len(text) != 1 {
		return 0
	}
	return sign * int64(text[0]-'0')
}()
`
	shifted = strings.Replace(shifted, "import (\n", "import (\n\t\"syscall\"\n", 1)
	file := filepath.Join(t.TempDir(), "time.go")
	writeFile(t, file, shifted)
	return map[string]string{name: file}
}

// shortSessions is the part of the cloud that says how long doors may be used, with half a
// minute in place of ten, by where it stands.
func shortSessions(t *testing.T) map[string]string {
	t.Helper()
	name, err := filepath.Abs(filepath.Join("..", "..", "cloud", "locker", "locker.go"))
	require.NoError(t, err)
	source, err := os.ReadFile(name)
	require.NoError(t, err)
	const long = "defaultSession  = 10 * time.Minute\n"
	require.Equal(t, 1, strings.Count(string(source), long))
	file := filepath.Join(t.TempDir(), "locker.go")
	writeFile(t, file, strings.Replace(string(source), long, "defaultSession  = 30 * time.Second\n", 1))
	return map[string]string{name: file}
}
