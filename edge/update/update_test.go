package update

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/internal/lockfile"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

func signer(t testing.TB, seed byte) *signed.Signer {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)))
	require.NoError(t, err)
	return s
}

// program is what an artefact of a version holds.
func program(version string) []byte { return []byte("#!program " + version) }

func artefact(t testing.TB, version string) []byte {
	t.Helper()
	return artefactOf(t, signer(t, 1), release.Manifest{Product: release.Edge, Version: version, System: "linux", Arch: "arm64"}, program(version))
}

func artefactOf(t testing.TB, s *signed.Signer, m release.Manifest, program []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, release.Write(&out, s, m, program))
	return out.Bytes()
}

func config(t testing.TB, packaged string, disk Disk) Config {
	t.Helper()
	return Config{Keys: []wire.PinnedKey{signer(t, 1).Pinned()}, Packaged: packaged, System: "linux", Arch: "arm64", Disk: disk}
}

func open(t testing.TB, packaged string, disk Disk) *Versions {
	t.Helper()
	v, err := New(config(t, packaged, disk))
	require.NoError(t, err)
	return v
}

// model is what Versions should hold.
type model struct {
	packaged           string
	floor, good, trial string
	starts             int
}

func (m *model) install(version string) error {
	floor := m.floor
	if !release.IsNewer(floor, m.packaged) {
		floor = m.packaged
	}
	if !release.IsNewer(version, floor) {
		return ErrOlder
	}
	if m.trial != "" && m.starts > 0 {
		return ErrTrial
	}
	m.floor, m.trial, m.starts = version, version, 0
	return nil
}

func (m *model) choose() Choice {
	if m.trial != "" && (m.starts >= MaxStarts || !release.IsNewer(m.trial, m.packaged)) {
		m.trial = ""
	}
	if m.trial != "" {
		m.starts++
		return Choice{Version: m.trial, Path: "/versions/edge-" + m.trial, Trial: true}
	}
	if m.good != "" && release.IsNewer(m.good, m.packaged) {
		return Choice{Version: m.good, Path: "/versions/edge-" + m.good}
	}
	return Choice{Version: "v" + m.packaged}
}

// act is a step of a life, on the real thing and on the model.
type act struct {
	name string
	real func(*Versions) error
	mind func(*model) error
}

func install(t testing.TB, version string) act {
	raw := artefact(t, version)
	return act{"install " + version, func(v *Versions) error {
		_, err := v.Install(bytes.NewReader(raw))
		return err
	}, func(m *model) error { return m.install(version) }}
}

func choose() act {
	return act{"choose", func(v *Versions) error { v.Choose(); return nil }, func(m *model) error { m.choose(); return nil }}
}

// about ends the trial of a version.
func about(what, version string) act {
	c := Choice{Version: version}
	return act{what + " " + version, func(v *Versions) error {
		switch what {
		case "confirm":
			return v.Confirm(c)
		case "give up":
			return v.GiveUp(c, "test")
		}
		return v.Withdraw(c)
	}, func(m *model) error {
		switch {
		case m.trial != version || version == "":
		case what == "confirm":
			m.good, m.trial = version, ""
		case what == "give up":
			m.trial = ""
		default:
			m.starts = max(0, m.starts-1)
		}
		return nil
	}}
}

// judge looks at a disk that a power cut has left: it starts the program of before or that
// of after, whole, takes nothing back, and can still be updated. It changes the disk.
func judge(t testing.TB, disk *simDisk, before, after model) error {
	held := map[string][]byte{}
	for name, c := range disk.names {
		held[disk.Path(name)] = bytes.Clone(c.now)
	}
	v := open(t, "v"+before.packaged, disk)
	olds := []string{before.floor}
	if before.floor == after.floor {
		olds = append(olds, after.trial, after.good)
	}
	for _, old := range olds {
		if old == "" {
			continue
		}
		if _, err := v.Install(bytes.NewReader(artefact(t, old))); !errors.Is(err, ErrOlder) {
			return fmt.Errorf("%s was accepted again: %v", old, err)
		}
	}
	is, one, other := v.Choose(), before.choose(), after.choose()
	if is != one && is != other {
		return fmt.Errorf("starts %+v, neither %+v nor %+v", is, one, other)
	}
	if is.Path != "" && !bytes.Equal(held[is.Path], program(is.Version)) {
		return fmt.Errorf("starts %q for %s", held[is.Path], is.Version)
	}
	if is.Trial { // an update behind it waits until it is decided
		if _, err := v.Install(bytes.NewReader(artefact(t, "9.0.0"))); !errors.Is(err, ErrTrial) {
			return fmt.Errorf("an update takes the place of the one on trial: %w", err)
		}
		if err := v.GiveUp(is, "for the next one"); err != nil {
			return err
		}
	}
	if is != other && before.floor != after.floor {
		if _, err := v.Install(bytes.NewReader(artefact(t, after.floor))); err != nil {
			return fmt.Errorf("an update that did not come to pass cannot be made again: %w", err)
		}
	}
	if _, err := v.Install(bytes.NewReader(artefact(t, "9.0.0"))); err != nil {
		return fmt.Errorf("cannot be updated any more: %w", err)
	}
	if is := v.Choose(); is.Version != "9.0.0" || !is.Trial {
		return fmt.Errorf("an update behind it is not started, but %+v", is)
	}
	return nil
}

// life is updates that prove themselves, fail and are ended.
func life(t testing.TB) []act {
	return []act{install(t, "1.1.0"), choose(), about("withdraw", "1.1.0"), choose(), about("confirm", "1.1.0"), choose(),
		install(t, "1.2.0"), choose(), choose(), choose(), choose(), // given up
		install(t, "1.3.0"), install(t, "1.4.0"), choose(), about("give up", "1.4.0"), choose(),
		install(t, "1.5.0"), choose(), about("confirm", "1.5.0"), choose()}
}

// cutEverywhere cuts the power at each step of a life and judges every image; it returns
// how many there were and what is wrong with the first bad one.
func cutEverywhere(t testing.TB, stride int, noSync bool) (images int, wrong error) {
	t.Helper()
	acts := life(t)
	for cut := 1; wrong == nil; cut++ {
		disk := newSimDisk()
		disk.cut, disk.noSync = cut, noSync
		v := open(t, "v1.0.0", disk)
		before := model{packaged: "1.0.0"}
		after, done := before, true
		for _, a := range acts {
			before = after
			_ = a.mind(&after)
			// Choose passes over a disk that fails; what it lost is seen afterwards.
			if err := a.real(v); errors.Is(err, errPower) || disk.step() != nil {
				done = false
				disk.images(stride, func(image *simDisk) {
					images++
					if err := judge(t, image, before, after); err != nil && wrong == nil {
						wrong = fmt.Errorf("power gone before step %d, in %q: %w", cut, a.name, err)
					}
				})
				break
			}
			disk.steps-- // the look at the power is no step
		}
		if done {
			return images, wrong
		}
	}
	return images, wrong
}

// Whenever power goes, the agent starts with the program of before or that of after.
func TestPowerCutsLeaveAProgramToStart(t *testing.T) {
	t.Parallel()
	images, wrong := cutEverywhere(t, ring.Among(97, 7, 1), false)
	require.NoError(t, wrong)
	require.Greater(t, images, 300)
	t.Log(images, "images")
}

// The judge finds what is wrong when content is not synced before it gets its name.
func TestTheJudgeFindsMissingSyncs(t *testing.T) {
	t.Parallel()
	_, wrong := cutEverywhere(t, 7, true)
	require.Error(t, wrong)
}

// A step that the disk refuses is an error that names it; the program of before or that of
// after is started, and what was not accepted can be installed again.
func TestAFullDiskLeavesAProgramToStart(t *testing.T) {
	t.Parallel()
	for full := 1; ; full++ {
		disk := newSimDisk()
		disk.full = full
		v := open(t, "v1.0.0", disk)
		_, err := v.Install(bytes.NewReader(artefact(t, "1.1.0")))
		if err == nil {
			require.Greater(t, full, 8)
			return
		}
		require.ErrorIs(t, err, errFull)
		accepted := disk.names[stateFile] != nil
		_, err = v.Install(bytes.NewReader(artefact(t, "1.1.0")))
		if accepted {
			require.ErrorIs(t, err, ErrOlder, "step %d", full)
		} else {
			require.NoError(t, err, "step %d", full)
		}
		// A start that cannot be kept is none: the packaged program runs meanwhile.
		disk.full = disk.steps + 1
		require.Equal(t, Choice{Version: "v1.0.0"}, v.Choose())
		require.Equal(t, Choice{Version: "1.1.0", Path: "/versions/edge-1.1.0", Trial: true}, v.Choose())
		require.NoError(t, v.Confirm(v.Choose()))
	}
}

// Any order of acts ends as the model says, with starts of the process in between and
// packages that are upgraded.
func TestVersionsAreAsTheModelSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		disk, want := newSimDisk(), model{packaged: "1.0.0"}
		v := open(t, "v1.0.0", disk)
		for range rapid.IntRange(1, 40).Draw(rt, "acts") {
			version := fmt.Sprintf("1.%d.0", rapid.IntRange(0, 12).Draw(rt, "version"))
			a := rapid.SampledFrom([]act{install(t, version), choose(), choose(), about("confirm", want.trial), about("give up", version), about("withdraw", want.trial)}).Draw(rt, "act")
			if rapid.IntRange(0, 9).Draw(rt, "upgrade") == 0 && release.IsNewer(version, want.packaged) {
				want.packaged = version
				v = open(t, "v"+version, disk)
			}
			require.ErrorIs(rt, a.real(v), a.mind(&want), a.name)
			require.Equal(rt, want.choose(), v.Choose(), a.name)
		}
	})
}

func TestUpdatesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := artefact(t, "1.1.0")
	forged := bytes.Clone(good)
	forged[len(forged)-1] ^= 1
	of := func(m release.Manifest) []byte { return artefactOf(t, signer(t, 1), m, []byte("x")) }
	for name, c := range map[string]struct {
		file []byte
		want error
		text string
	}{
		"forged program": {forged, release.ErrArtefact, "not the one that was signed"},
		"foreign key":    {artefactOf(t, signer(t, 2), release.Manifest{Product: release.Edge, Version: "1.1.0", System: "linux", Arch: "arm64"}, []byte("x")), signed.ErrSignature, "not pinned"},
		"cut":            {good[:len(good)-1], release.ErrArtefact, "cut off"},
		"longer":         {append(bytes.Clone(good), 0), release.ErrArtefact, "more than"},
		"other arch":     {of(release.Manifest{Product: release.Edge, Version: "1.1.0", System: "linux", Arch: "amd64"}), ErrOther, "it is edge for linux/amd64, this needs edge for linux/arm64"},
		"other product":  {of(release.Manifest{Product: "cloud", Version: "1.1.0", System: "linux", Arch: "arm64"}), ErrOther, "it is cloud for"},
		"older":          {artefact(t, "0.9.0"), ErrOlder, "it is 0.9.0, and must be above 1.0.0"},
		"the same":       {artefact(t, "1.0.0"), ErrOlder, "must be above 1.0.0"},
		"a candidate":    {artefact(t, "1.0.0-rc.9"), ErrOlder, "must be above 1.0.0"},
		"no artefact":    {[]byte("\x7fELF............"), release.ErrArtefact, "does not begin as one"},
		"empty":          {nil, release.ErrArtefact, "cut off"},
	} {
		disk := newSimDisk()
		v := open(t, "v1.0.0", disk)
		_, err := v.Install(bytes.NewReader(c.file))
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.text, name)
		require.Empty(t, disk.names, "%s: something was left", name)
		require.Equal(t, Choice{Version: "v1.0.0"}, v.Choose(), name)
	}
	v, err := New(Config{Packaged: "v1.0.0", System: "linux", Arch: "arm64", Disk: newSimDisk()})
	require.NoError(t, err)
	_, err = v.Install(bytes.NewReader(good))
	require.ErrorIs(t, err, ErrNoKeys)
}

// deaf is a disk that does not give the state now.
type deaf struct {
	Disk
	err     error
	program error // of opening a program, nil for none
}

func (d *deaf) Open(name string) (io.ReadCloser, error) {
	if d.program != nil {
		return nil, d.program
	}
	return d.Disk.Open(name)
}

func (d *deaf) ReadFile(name string) ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.Disk.ReadFile(name)
}

// A disk that does not give the state for a moment is no reason to forget it: nothing is
// written over, and the proven program is still there.
func TestAStateThatCannotBeReadNowStays(t *testing.T) {
	t.Parallel()
	disk := &deaf{Disk: newSimDisk()}
	v := open(t, "1.0.0", disk)
	_, err := v.Install(bytes.NewReader(artefact(t, "1.1.0")))
	require.NoError(t, err)
	c := v.Choose()
	require.NoError(t, v.Confirm(c))
	disk.err = syscall.EIO
	_, err = v.Install(bytes.NewReader(artefact(t, "1.2.0")))
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, Choice{Version: "1.0.0"}, v.Choose(), "the packaged one")
	require.ErrorIs(t, v.Confirm(c), syscall.EIO)
	disk.err = nil
	require.Equal(t, "1.1.0", v.Choose().Version)
	require.Equal(t, "1.1.0", v.Report().Floor)

	// The program on trial, too.
	_, err = v.Install(bytes.NewReader(artefact(t, "1.2.0")))
	require.NoError(t, err)
	disk.program = &fs.PathError{Op: "open", Path: "edge-1.2.0", Err: syscall.EMFILE}
	require.False(t, v.Choose().Trial)
	disk.program = nil
	require.Equal(t, "1.2.0", v.Choose().Version)
}

// An update that is on trial keeps its place until it is decided.
func TestAnUpdateOnTrialKeepsItsPlace(t *testing.T) {
	t.Parallel()
	v := open(t, "1.0.0", newSimDisk())
	install := func(version string) error {
		_, err := v.Install(bytes.NewReader(artefact(t, version)))
		return err
	}
	require.NoError(t, install("1.1.0"))
	require.NoError(t, install("1.2.0"), "the first has not been started")
	c := v.Choose()
	require.Equal(t, "1.2.0", c.Version)
	require.ErrorIs(t, install("1.3.0"), ErrTrial)
	require.NoError(t, v.Confirm(c))
	require.Equal(t, "1.2.0", v.Report().Good)
	require.NoError(t, install("1.3.0"))
	c = v.Choose()
	require.NoError(t, v.GiveUp(c, "broken"))
	require.NoError(t, install("1.4.0"))
	require.Equal(t, "1.2.0", v.Report().Good)
}

// A program that changed on the disk is not started, nor is a state that cannot be read
// the end.
func TestDamagedFilesAreNotStarted(t *testing.T) {
	t.Parallel()
	for _, confirmed := range []bool{false, true} {
		disk := newSimDisk()
		v := open(t, "v1.0.0", disk)
		for _, version := range []string{"1.1.0", "1.2.0"} {
			require.NoError(t, install(t, version).real(v))
			if version == "1.1.0" || confirmed {
				require.NoError(t, v.Confirm(v.Choose()))
			}
		}
		disk.names["edge-1.2.0"].now[3] ^= 1
		want := Choice{Version: "1.1.0", Path: "/versions/edge-1.1.0"}
		if confirmed {
			want = Choice{Version: "v1.0.0"}
		}
		require.Equal(t, want, v.Choose())
		disk.names[stateFile].now = []byte("{")
		require.Equal(t, Choice{Version: "v1.0.0"}, v.Choose())
		require.NoError(t, install(t, "1.3.0").real(v))
		require.Equal(t, "1.3.0", v.Choose().Version)
	}
}

// In a real folder: programs can be started, what is needed no more is removed, a second
// installation waits outside, and a full disk changes nothing.
func TestVersionsInAFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "versions")
	c := config(t, "v1.0.0", nil)
	var log bytes.Buffer
	c.Dir, c.Log = dir, slog.New(slog.NewTextHandler(&log, nil))
	v, err := New(c)
	require.NoError(t, err)
	for _, version := range []string{"1.1.0", "1.2.0", "1.3.0"} {
		m, err := v.Install(bytes.NewReader(artefact(t, version)))
		require.NoError(t, err)
		require.Equal(t, version, m.Version)
		is := v.Choose()
		require.Equal(t, filepath.Join(dir, "edge-"+version), is.Path)
		info, err := os.Stat(is.Path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		raw, err := os.ReadFile(is.Path)
		require.NoError(t, err)
		require.Equal(t, program(version), raw)
		require.NoError(t, v.Confirm(is))
	}
	_, err = v.Install(bytes.NewReader(artefact(t, "1.4.0")))
	require.NoError(t, err)
	require.Equal(t, Report{Packaged: "v1.0.0", Floor: "1.4.0", Good: "1.3.0", Trial: "1.4.0"}, v.Report())
	require.NoError(t, v.GiveUp(v.Choose(), "it does not work"))
	require.Equal(t, Report{Packaged: "v1.0.0", Floor: "1.4.0", Good: "1.3.0", GivenUp: "1.4.0", Reason: "it does not work"}, v.Report())
	require.Contains(t, log.String(), "an update is given up")
	names, err := v.disk.Names()
	require.NoError(t, err)
	require.Equal(t, "edge-1.3.0 edge-1.4.0 lock lock.install state.json", strings.Join(names, " "))

	held, err := lockfile.Acquire(filepath.Join(dir, lockInstall), 0)
	require.NoError(t, err)
	_, err = v.Install(bytes.NewReader(artefact(t, "1.5.0")))
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, held.Close())
	require.Equal(t, "1.3.0", v.Choose().Version)
}
