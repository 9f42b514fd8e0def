package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/artefact"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge/agent"
	edgeupdate "github.com/postern-io/postern/edge/update"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
)

// Versions of the agent on a random day. All run the same program: what differs is
// what is fetched, kept, chosen and reported.
const (
	packagedVersion = "v1.0.0"
	sickVersion     = "1.2.0"         // its programs never report that they are healthy
	trialTime       = 5 * time.Minute // that a launcher waits for that report
)

var offeredVersions = []string{"1.1.0", sickVersion, "1.3.0", "1.4.0"}

// releaseSigner signs the versions. The cloud and its cabinets know its public key.
var releaseSigner = sync.OnceValue(func() *signed.Signer {
	s, err := signed.NewSigner(releaseKey())
	if err != nil {
		panic(err)
	}
	return s
})

func releaseKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{11}, 32)) }

// programOf is the program of a version: more than a connection carries at once.
func programOf(version string) []byte { return bytes.Repeat([]byte("agent "+version+"\n"), 8000) }

// offerVersions has the cloud offer the versions.
func (w *world) offerVersions() {
	for _, v := range offeredVersions {
		var file bytes.Buffer
		m := release.Manifest{Product: release.Edge, Version: v, System: runtime.GOOS, Arch: runtime.GOARCH}
		require.NoError(w.t, release.Write(&file, releaseSigner(), m, programOf(v)))
		_, err := w.cloud.Programs.Add(context.Background(), &file)
		require.NoError(w.t, err)
	}
}

// launch is one start of a cabinet's agent by its launcher.
type launch struct {
	edgeupdate.Choice
	dir string // of the hardware
	at  time.Time
}

// launcher starts the agent of a cabinet as the real one does: it chooses a version among those
// that lie on the disk, and gives up one that is not healthy in time.
type launcher struct {
	*edgeupdate.Remote
	c        *cabinet
	versions *edgeupdate.Versions

	mu       sync.Mutex // guards all below
	now      launch
	proven   bool
	launches []launch
	wrong    []string
}

// choose sets a start of the agent up.
func (l *launcher) choose(cfg *agent.Config) {
	v, err := edgeupdate.New(edgeupdate.Config{Dir: filepath.Join(cfg.Dir, "versions"), Keys: cfg.Secrets.ReleaseKeys, Packaged: packagedVersion, System: runtime.GOOS, Arch: runtime.GOARCH, Log: cfg.Log})
	require.NoError(l.c.w.t, err)
	before := v.Report()
	now := launch{v.Choose(), cfg.Dir, time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Remote, l.versions, l.now, l.proven = edgeupdate.NewRemote(v, cfg.Origin), v, now, !now.Trial
	l.judge(now, before)
	l.launches = append(l.launches, now)
	cfg.Version = now.Version
	if now.Path != "" {
		cfg.Version = "v" + now.Version
	}
	cfg.Updates = l
	cfg.Healthy = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if now == l.now && now.Version != sickVersion && !l.c.dead.Load() {
			l.proven = v.Confirm(now.Choice) == nil
		}
	}
}

// judge says what is wrong with a start: a program that no release has signed, one that is
// older than another that has proven itself, and one that was given up.
func (l *launcher) judge(now launch, before edgeupdate.Report) {
	bad := func(format string, args ...any) {
		l.wrong = append(l.wrong, l.c.code+": "+fmt.Sprintf(format, args...))
	}
	if now.Path != "" {
		program, err := os.ReadFile(now.Path)
		if err != nil || !bytes.Equal(program, programOf(now.Version)) || !slices.Contains(offeredVersions, now.Version) {
			bad("it starts a program that is not the one of %s: %v", now.Version, err)
		}
	}
	if before.GivenUp == now.Version {
		bad("it starts %s, which was given up: %s", now.Version, before.Reason)
	}
	for _, x := range l.launches {
		if x.dir != now.dir {
			continue // of other hardware
		}
		if !x.Trial && release.IsNewer(release.VersionOf(x.Version), release.VersionOf(now.Version)) {
			bad("it starts %s after %s had proven itself", now.Version, x.Version)
		}
		if !now.Trial && now.Version == sickVersion {
			bad("%s counts as healthy", sickVersion)
		}
	}
}

// Restart has the cabinet started again between two steps of the day.
func (l *launcher) Restart() { l.c.reboot.Store(true) }

// endTrial gives up a version whose time is over, and reports whether it did.
func (l *launcher) endTrial() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proven || l.now.Path == "" || time.Since(l.now.at) < trialTime {
		return false
	}
	l.proven = true
	require.NoError(l.c.w.t, l.versions.GiveUp(l.now.Choice, "it did not report that it is healthy"))
	return true
}

// isOver reports whether no update is under way.
func (l *launcher) isOver() bool {
	l.mu.Lock()
	proven := l.proven
	l.mu.Unlock()
	return proven && !l.Waiting() && l.c.agent.Loop().State().Meta.Update == nil
}

// endUpdates lets updates come to their end, and says what was wrong with them.
func (w *world) endUpdates() (wrong string) {
	for _, c := range w.cabinets {
		if c.launcher == nil {
			continue
		}
		over := false
		for range 3600 {
			if w.reboot(); c.launcher.isOver() {
				over = true
				break
			}
			time.Sleep(time.Second)
		}
		w.awaits(c.code+" is back and has read its doors", 15*time.Minute, func() bool { return w.cloud.Devices.Online(c.code) && c.agent.Loop().State().Doors[1].Known })
		runs := release.VersionOf(c.launcher.now.Version)
		switch r := c.launcher.versions.Report(); {
		case len(c.launcher.wrong) > 0:
			wrong = strings.Join(c.launcher.wrong, "; ")
		case !over:
			wrong = fmt.Sprintf("%s: an update does not end: %+v", c.code, r)
		case runs != max(r.Good, release.VersionOf(packagedVersion)):
			wrong = fmt.Sprintf("%s runs %s, and %s has proven itself", c.code, runs, r.Good)
		case r.Floor != "" && r.Floor != runs && r.GivenUp != r.Floor:
			wrong = fmt.Sprintf("%s runs %s, and neither runs nor gave up %s, which it took", c.code, runs, r.Floor)
		}
		w.awaits(c.code+": the cloud knows the version", 15*time.Minute, func() bool {
			d, err := w.cloud.Store.FindDeviceByCode(context.Background(), c.code)
			return err == nil && release.VersionOf(d.Firmware) == runs
		})
		w.effect("runs "+runs, nil)
	}
	return wrong
}

// sendUpdate has staff update a cabinet, to any version that is offered. What it fetches may be
// cut off, or changed on the way by who holds the cloud's files.
func (w *world) sendUpdate(s step, rnd *rand.Rand) {
	c := w.cabinets[s.cabinet]
	if rnd.IntN(3) == 0 {
		c.forges.Store(int64(1 + rnd.IntN(3)))
	}
	version := offeredVersions[rnd.IntN(len(offeredVersions))]
	_, err := w.server().Lockers.SendDeviceCommand(context.Background(), w.staff, locker.DeviceCommandInput{Device: w.box.Devices[s.cabinet].DeviceID, Type: "update", Version: version})
	w.effect("update", err)
}

// fetchProgram has the cloud's present process give a part of a program.
func (x *upload) fetchProgram(r *http.Request) (*http.Response, error) {
	if x.c.cut.Load() || x.c.dead.Load() || x.c.w.broker.Load() == nil {
		return nil, errCut
	}
	var in fasthttp.Request
	in.SetRequestURI(r.URL.RequestURI())
	in.Header.Set("Range", r.Header.Get("Range"))
	var ctx fasthttp.RequestCtx
	ctx.Init(&in, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	ctx.SetUserValue("name", strings.TrimPrefix(r.URL.Path, artefact.Prefix))
	x.c.w.server().Programs.Serve(&ctx)
	part := ctx.Response.Body()
	var body io.Reader = bytes.NewReader(part)
	if x.c.forges.Add(-1) >= 0 && len(part) > 0 {
		part[len(part)/2] ^= 1
		x.c.w.effect("forged program", nil)
	}
	if x.c.w.noise.Load() > 0 && len(part) > 60_000 { // the connection breaks
		body = io.MultiReader(bytes.NewReader(part[:len(part)*2/3]), broken{})
	}
	h := http.Header{"Content-Range": {string(ctx.Response.Header.Peek("Content-Range"))}}
	return &http.Response{StatusCode: ctx.Response.StatusCode(), Header: h, Body: io.NopCloser(body), Request: r}, nil
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errCut }
