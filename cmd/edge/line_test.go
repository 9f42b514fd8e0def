package main

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/ring"
)

// A cabinet of one board needs no settings file: --line names its line.
func TestTheCommandLineNamesTheLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for address, want := range map[string]string{"tcp://127.0.0.1:7001": "1 lines, 1 boards", "/dev/ttyUSB0": "1 lines, 1 boards"} {
		out, err := runEdge(t, "", "--data", dir, "--line", address, "--check")
		require.NoError(t, err)
		require.Contains(t, out, want)
	}
	// Settings with lines keep their boards; the address alone is another.
	two := file(t, "lines:\n  - {name: left, port: /dev/a, boards: [{name: A, family: cu48}]}\n  - {name: right, port: /dev/b, boards: [{name: B, family: cu16}]}\n")
	s, err := load(options{Config: two, Line: []string{"right=tcp://127.0.0.1:7002"}})
	require.NoError(t, err)
	require.Equal(t, []string{"/dev/a", "tcp://127.0.0.1:7002"}, []string{s.Lines[0].Port, s.Lines[1].Port})
	require.Equal(t, "B", s.Lines[1].Boards[0].Name)
	one := file(t, "lines:\n  - {name: left, port: /dev/a, boards: [{name: A, family: cu48}]}\n")
	s, err = load(options{Config: one, Line: []string{"/dev/serial/by-id/usb-x=1"}})
	require.NoError(t, err)
	require.Equal(t, "/dev/serial/by-id/usb-x=1", s.Lines[0].Port)
	for want, args := range map[string][]string{
		"tcp://HOST:PORT, such as tcp://127.0.0.1:7001, or a serial device, such as /dev/ttyUSB0": {"--line", "127.0.0.1:7001"},
		`--line "tcp://127.0.0.1"`: {"--line", "tcp://127.0.0.1"},
		`--line ""`:                {"--line", ""},
		`the settings have no lines, so --line is one address`:                  {"--line", "/dev/a", "--line", "/dev/b"},
		`the settings have no line "left"; --line is one address`:               {"--line", "left=/dev/a"},
		`the settings have the lines left, right: use --line NAME=ADDRESS`:      {"--config", two, "--line", "/dev/a"},
		`the settings have no line "middle"; they have left, right`:             {"--config", two, "--line", "middle=/dev/a"},
		`--line "left=/dev/c": the line left has been given an address already`: {"--config", two, "--line", "left=/dev/a", "--line", "left=/dev/c"},
	} {
		_, err := runEdge(t, "", append([]string{"--data", dir, "--check"}, args...)...)
		require.ErrorContains(t, err, want)
	}
}

// Enrolment ends with the whole command that runs the cabinet.
func TestEnrolmentSaysTheNextCommand(t *testing.T) {
	t.Parallel()
	url, roots, _ := office(t, func(map[string]string) (int, any) { return 200, enrolled(true) })
	dir := filepath.Join(t.TempDir(), "a folder")
	out, err := runEdge(t, "", "enrol", url, "--device=CAB-1", "--token=one-time", "--data", dir, "--tls-roots", roots, "--kiosk-listen", "127.0.0.1:8099", "--line", "tcp://127.0.0.1:7001")
	require.NoError(t, err)
	require.Contains(t, out, "next: "+cli.Sibling("edge")+" --data '"+dir+"' --kiosk-listen 127.0.0.1:8099 --tls-roots "+roots+" --line tcp://127.0.0.1:7001\n")
	require.NotContains(t, out, "one-time")
	out, err = runEdge(t, "", "enrol", url, "--device=CAB-1", "--token=one-time", "--data", filepath.Join(dir, "2"), "--tls-roots", roots)
	require.NoError(t, err)
	require.Regexp(t, `next: \S*edge\S* .*--line ADDRESS\n.*ADDRESS is tcp://HOST:PORT, such as tcp://127.0.0.1:7001, or a serial device, such as /dev/ttyUSB0`, out)
}

// Where the package is installed, the service is what comes next.
func TestEnrolmentOfAPackageLeadsToTheService(t *testing.T) {
	t.Parallel()
	command, missing := packagedNext(settings{}, "/etc/postern/edge.yaml")
	require.Equal(t, "systemctl start postern-edge", command)
	require.Contains(t, missing, "in /etc/postern/edge.yaml")
	_, missing = packagedNext(settings{Scanners: []scannerEntry{{Name: "dock", Use: scanner.UseLabels}}}, "")
	require.Empty(t, missing, "a post has no lines")
	command, missing = options{Config: "edge-post.yaml"}.nextCommand(settings{Scanners: []scannerEntry{{Name: "dock", Use: scanner.UseLabels}}})
	require.Regexp(t, "edge --config edge-post.yaml$", command)
	require.Empty(t, missing)
	_, missing = packagedNext(settings{Lines: []line{{Name: "a"}}}, "")
	require.Empty(t, missing)
}

// The page's address is on the screen of who starts the cabinet, in words.
func TestAStartSaysWhereTheScreenIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSecrets(t, filepath.Join(dir, "secrets.json"), 0o600)
	ctx, stop := context.WithCancel(t.Context())
	var out lines
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--data", dir, "--kiosk-listen", "127.0.0.1:0", "--line", "tcp://127.0.0.1:9"}, strings.NewReader(""), &out, io.Discard)
	}()
	ring.Await(t, func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return strings.Contains(out.buf.String(), "the cabinet's screen is at http://127.0.0.1:")
	})
	stop()
	require.NoError(t, <-done)
}

func TestATakenAddressNamesItsSetting(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	dir := t.TempDir()
	writeSecrets(t, filepath.Join(dir, "secrets.json"), 0o600)
	_, err = runEdge(t, "", "--data", dir, "--kiosk-listen", ln.Addr().String(), "--line", "tcp://127.0.0.1:9")
	require.ErrorContains(t, err, "end the program that has it, or set kiosk.listen to another address")
}
