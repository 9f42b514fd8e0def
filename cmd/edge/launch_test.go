package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/update"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Tests of the launcher run alone: a program that is written while another test starts one is
// busy for a moment.
//
// Programs of the test are scripts, which append to the file that is their argument.
const (
	working = `#!/bin/sh
trap 'echo NAME ends >> "$1"; exit 0' TERM
echo NAME runs >> "$1"
echo healthy >&3
while :; do sleep 0.05; done
`
	silent = `#!/bin/sh
trap 'echo NAME ends >> "$1"; exit 0' TERM
echo NAME runs >> "$1"
while :; do sleep 0.05; done
`
	crashing = `#!/bin/sh
echo NAME runs >> "$1"
exit 3
`
	noProgram = `NAME` // the kernel refuses it
)

// launchRig is a launcher with programs of the test.
type launchRig struct {
	t     *testing.T
	dir   string
	notes string
	l     *launcher
	stop  context.CancelFunc
	done  chan error
}

func releaseSigner(t *testing.T) *signed.Signer {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)))
	require.NoError(t, err)
	return s
}

func newLaunchRig(t *testing.T) *launchRig {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("programs of the test are scripts")
	}
	r := &launchRig{t: t, dir: t.TempDir()}
	r.notes = filepath.Join(r.dir, "diary")
	packaged := filepath.Join(r.dir, "packaged")
	require.NoError(t, os.WriteFile(packaged, []byte(strings.ReplaceAll(working, "NAME", "packaged")), 0o700))
	v, err := update.New(update.Config{Dir: filepath.Join(r.dir, "versions"), Keys: []wire.PinnedKey{releaseSigner(t).Pinned()}, Packaged: "v1.0.0", System: runtime.GOOS, Arch: runtime.GOARCH})
	require.NoError(t, err)
	r.l = &launcher{versions: v, packaged: packaged, args: []string{r.notes}, trial: time.Hour, log: slog.New(slog.DiscardHandler), stdout: io.Discard, stderr: io.Discard}
	return r
}

func (r *launchRig) install(version, program string) {
	r.t.Helper()
	_, err := r.l.versions.Install(bytes.NewReader(signedScript(r.t, version, program)))
	require.NoError(r.t, err)
}

func signedScript(t *testing.T, version, program string) []byte {
	t.Helper()
	var out bytes.Buffer
	m := release.Manifest{Product: release.Edge, Version: version, System: runtime.GOOS, Arch: runtime.GOARCH}
	require.NoError(t, release.Write(&out, releaseSigner(t), m, []byte(strings.ReplaceAll(program, "NAME", version))))
	return out.Bytes()
}

func (r *launchRig) start() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop, r.done = stop, make(chan error, 1)
	go func() { r.done <- r.l.run(ctx) }()
	r.t.Cleanup(stop)
}

// diary is what the programs have written.
func (r *launchRig) diary() string {
	raw, err := os.ReadFile(r.notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		require.NoError(r.t, err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(raw)), "\n", ", ")
}

func (r *launchRig) await(diary string) {
	r.t.Helper()
	ring.Await(r.t, func() bool { return r.diary() == diary }, diary)
}

func (r *launchRig) halt() {
	r.t.Helper()
	r.stop()
	require.NoError(r.t, <-r.done)
}

// The packaged program runs and is ended with the launcher. An update that reports is
// proven; it runs from then on, and is ended by a signal as well.
func TestAnUpdateThatReportsStays(t *testing.T) {
	r := newLaunchRig(t)
	r.start()
	r.await("packaged runs")
	r.install("1.1.0", working)
	r.halt()
	r.await("packaged runs, packaged ends")
	r.start()
	ring.Await(t, func() bool { return r.l.versions.Report().Good == "1.1.0" })
	r.halt()
	r.start()
	r.await("packaged runs, packaged ends, 1.1.0 runs, 1.1.0 ends, 1.1.0 runs")
	r.halt()
	require.Equal(t, update.Report{Packaged: "v1.0.0", Floor: "1.1.0", Good: "1.1.0"}, r.l.versions.Report())
}

// An update that ends, does not report, or is no program is given up, and the one before
// runs, without the service's help.
func TestAnUpdateThatDoesNotWorkIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct{ program, diary string }{
		"crashing":   {crashing, "1.2.0 runs, 1.2.0 runs, 1.2.0 runs, 1.1.0 runs"},
		"silent":     {silent, "1.2.0 runs, 1.2.0 ends, 1.1.0 runs"},
		"no program": {noProgram, "1.1.0 runs"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newLaunchRig(t)
			r.install("1.1.0", working)
			require.NoError(t, r.l.versions.Confirm(r.l.versions.Choose()))
			r.install("1.2.0", c.program)
			if c.program == silent {
				r.l.trial = 300 * time.Millisecond
			}
			r.start()
			r.await(c.diary)
			r.halt()
			report := r.l.versions.Report()
			require.Equal(t, []string{"1.2.0", "1.1.0", "1.2.0", ""}, []string{report.Floor, report.Good, report.GivenUp, report.Trial})
		})
	}
}

// A stop of the service is no failure of the update.
func TestAStopCountsAsNoStart(t *testing.T) {
	r := newLaunchRig(t)
	r.install("1.1.0", silent)
	want := ""
	for range 2 * update.MaxStarts {
		r.start()
		want = strings.TrimPrefix(want+", 1.1.0 runs", ", ")
		r.await(want)
		r.halt()
		want += ", 1.1.0 ends"
		r.await(want)
	}
	require.Equal(t, "1.1.0", r.l.versions.Report().Trial)
}

// A proven program that ends is the service's to start again; one that cannot be started
// is replaced by the packaged one.
func TestAProvenProgramThatEnds(t *testing.T) {
	for program, want := range map[string]string{crashing: "1.1.0 runs", noProgram: "packaged runs"} {
		r := newLaunchRig(t)
		r.install("1.1.0", program)
		require.NoError(t, r.l.versions.Confirm(r.l.versions.Choose()))
		r.start()
		r.await(want)
		if program == crashing {
			require.ErrorContains(t, <-r.done, "exit status 3")
			continue
		}
		r.halt()
	}
}

// install-update says what it did, and what is wrong with a file.
func TestInstallUpdate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "update")
	require.NoError(t, os.WriteFile(file, signedScript(t, "1.1.0", working), 0o600))
	s := secrets()
	s.ReleaseKeys = nil
	writeJSON(t, filepath.Join(dir, "secrets.json"), s)
	_, err := runEdge(t, "", "--data", dir, "install-update", file)
	require.ErrorIs(t, err, update.ErrNoKeys)
	s.ReleaseKeys = []wire.PinnedKey{releaseSigner(t).Pinned()}
	writeJSON(t, filepath.Join(dir, "secrets.json"), s)
	out, err := runEdge(t, "", "--data", dir, "install-update", file)
	require.NoError(t, err)
	require.Contains(t, out, "version 1.1.0 is installed")
	_, err = runEdge(t, "", "--data", dir, "install-update", file)
	require.ErrorIs(t, err, update.ErrOlder)
	_, err = runEdge(t, "", "--data", dir, "install-update", file+"x")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = runEdge(t, "", "--data", filepath.Join(dir, "none"), "install-update", file)
	require.ErrorIs(t, err, os.ErrNotExist)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, 65534))
		_, err = runEdge(t, "", "--data", dir, "install-update", file)
		require.ErrorContains(t, err, "run this as that user, with runuser -u ")
	}
}

// A machine that is short of memory or processes for a moment says nothing about an update.
func TestPassingFailuresOfStarts(t *testing.T) {
	t.Parallel()
	start := func(err error) error {
		return &startError{&fs.PathError{Op: "fork/exec", Path: "edge-1.1.0", Err: err}}
	}
	for _, e := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY} {
		require.True(t, isPassing(start(e)), e)
	}
	for _, e := range []error{syscall.ENOEXEC, syscall.ENOENT, syscall.EACCES} {
		require.False(t, isPassing(start(e)), e)
	}
}

// installing is a program that takes an update while it runs, and ends for it.
const installing = `#!/bin/sh
echo healthy >&3
echo NAME runs >> "$1"
while [ ! -e "$1.installed" ]; do sleep 0.05; done
echo NAME ends >> "$1"
exit 0
`

// An agent takes an update by command and ends: its launcher tries the update, whether it was
// the packaged one or one on trial that had shown by then that it works.
func TestLauncherGoesOnWithAnUpdateThatTheAgentTook(t *testing.T) {
	r := newLaunchRig(t)
	require.NoError(t, os.WriteFile(r.l.packaged, []byte(strings.ReplaceAll(installing, "NAME", "packaged")), 0o700))
	r.start()
	r.await("packaged runs")
	r.install("1.1.0", installing)
	require.NoError(t, os.WriteFile(r.notes+".installed", nil, 0o600))
	r.await("packaged runs, packaged ends, 1.1.0 runs, 1.1.0 ends")
	require.NoError(t, <-r.done, "it ended, and there is no update")
}
