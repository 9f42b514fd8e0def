package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

var dock = scanner.Config{Name: "dock", Port: "/dev/x", Use: scanner.UseLabels, Post: "Dock 3", Step: otep.Received, Repeat: 5 * time.Second}

func scanAt(t *testing.T, a *Agent, text string) scanner.Outcome {
	return a.scans.Scan(t.Context(), time.Now(), []byte(text), dock).Outcome
}

// subjects are those of the tracking events that the store holds, one of each
// record.
func subjects(t *testing.T, a *Agent) (out []string) {
	run, err := a.store.Read(wire.Settlement, 1, 1000, 1<<20)
	require.NoError(t, err)
	seen := map[[2]uint64]bool{}
	for _, raw := range run.Records {
		var r wire.Record
		require.NoError(t, wire.Decode(raw, &r))
		id := [2]uint64{r.Boot, uint64(r.Mono)}
		if r.Kind != wire.KindTrackingEvent || seen[id] {
			continue
		}
		seen[id] = true
		var e wire.TrackingEvent
		require.NoError(t, wire.Decode(r.Body, &e))
		out = append(out, e.Subject)
	}
	return out
}

// A start of the agent in between makes no second event of one scan.
func TestARepeatOverAStartIsNoSecondScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		require.Equal(t, scanner.Accepted, scanAt(t, b.agent, "SR-1"))
		b.halt()
		time.Sleep(3 * time.Second)
		b.start()
		require.Equal(t, scanner.Repeated, scanAt(t, b.agent, "SR-1"))
		require.Equal(t, []string{"SR-1"}, subjects(t, b.agent))
		time.Sleep(2 * time.Second)
		require.Equal(t, scanner.Accepted, scanAt(t, b.agent, "SR-1"), "5 s after the first")
		require.Equal(t, []string{"SR-1", "SR-1"}, subjects(t, b.agent))
	})
}

// The step that was chosen outlives a start, unless the settings have it no more.
func TestTheChosenStepOutlivesAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.halt()
		cfg := b.settings()
		c := dock
		c.Choices = []otep.Code{otep.Received, otep.PackageOutbound}
		cfg.Scanners = []scanner.Config{c}
		begin := func(want otep.Code) *Agent {
			a, err := New(cfg)
			require.NoError(t, err)
			require.Equal(t, want, a.Scanners()[0].Step)
			return a
		}
		a := begin(otep.Received)
		require.ErrorIs(t, a.ChooseStep(t.Context(), "dock", otep.Delivered), scanner.ErrStep)
		require.ErrorIs(t, a.ChooseStep(t.Context(), "x", otep.Received), scanner.ErrStep)
		require.NoError(t, a.ChooseStep(t.Context(), "dock", otep.PackageOutbound))
		require.Equal(t, otep.PackageOutbound, a.Scanners()[0].Step)
		require.NoError(t, a.Close())
		require.NoError(t, begin(otep.PackageOutbound).Close())
		cfg.Scanners[0].Choices = nil
		require.NoError(t, begin(otep.Received).Close())
	})
}

// A disk that fails shows no success, and the next scan of the same code is stored
// once.
func TestADiskThatFailsShowsNoScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.halt()
		var broken atomic.Bool
		cfg := b.settings()
		cfg.Disk = func() error {
			if broken.Load() {
				return errors.New("the disk fails")
			}
			return nil
		}
		a, err := New(cfg)
		require.NoError(t, err)
		defer a.Close()
		broken.Store(true)
		require.Equal(t, scanner.Failed, scanAt(t, a, "SR-1"))
		require.Equal(t, scanner.Failed, scanAt(t, a, "SR-1"))
		broken.Store(false)
		require.Equal(t, scanner.Accepted, scanAt(t, a, "SR-1"))
		require.Equal(t, scanner.Repeated, scanAt(t, a, "SR-1"))
		require.Equal(t, []string{"SR-1"}, subjects(t, a))
	})
}

// A store that is found damaged is replaced, and what is shown as stored is in the
// new one.
func TestAScanIntoADamagedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		for range 50 {
			require.NoError(t, b.agent.Record(t.Context(), wire.KindScan, wire.Scan{Raw: []byte("needle-needle-needle")}))
		}
		b.halt()
		file := filepath.Join(b.dir, "edge.db")
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(raw, []byte("needle-needle-needle"), []byte("needle-needle-needlf")), 0o600))
		b.start()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, scanner.Accepted, scanAt(t, b.agent, "SR-1"))
		require.NotEmpty(t, b.agent.store.Opened().Created, "the store was not replaced")
		require.Equal(t, []string{"SR-1"}, subjects(t, b.agent))
		require.Equal(t, scanner.Repeated, scanAt(t, b.agent, "SR-1"))
	})
}

// A cabinet whose store fills with labels that the cloud does not have keeps the rest of it for
// doors; a post goes on until its store is full.
func TestLabelsLeaveRoomForDoors(t *testing.T) {
	cabinet := 0 // labels that it takes
	for _, post := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{t: t, dir: filepath.Join(t.TempDir(), "agent"), old: signer(t, 1), next: signer(t, 2)}
			b.change = func(c *Config) {
				c.MaxBytes = 1 << 20
				if post {
					c.Lines = nil
				}
			}
			b.start()
			defer func() { b.halt() }()
			n := 0
			for scanAt(t, b.agent, fmt.Sprintf("SR-%d-%s", n, strings.Repeat("X", 30))) == scanner.Accepted {
				n++
				require.Less(t, n, 20_000)
			}
			require.Greater(t, n, 100)
			if post {
				require.Greater(t, n, cabinet, "a post keeps no room")
			} else {
				cabinet = n
				require.InDelta(t, scansUpTo, b.agent.store.Filled(), 5)
				require.False(t, b.agent.loop.Full(), "doors are served")
			}
		})
	}
}
