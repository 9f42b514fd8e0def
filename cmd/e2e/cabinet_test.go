package e2e

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cmd/internal/truth"
)

// pulsedFor reports whether an opening pulsed a lock.
func (c *cabinet) pulsedFor(opening string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.pulses, func(p truth.Pulse) bool { return p.OpeningID == opening })
}

// pulsedSince is the last pulse of a door's lock since a moment, of no kind when
// there was none.
func (c *cabinet) pulsedSince(door uint, since time.Time) truth.Pulse {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.pulses) {
		if uint(p.Door) == door && p.At.After(since) {
			return p
		}
	}
	return truth.Pulse{}
}

// trace takes the agent's pulses. A killed agent pulses nothing.
func (c *cabinet) trace(p truth.Pulse) {
	if c.dead.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulses = append(c.pulses, p)
}

var errKilled = errors.New("the agent is dead")

// onDiskOf is the disk under the store: of a killed agent it takes nothing more.
func (c *cabinet) onDiskOf(disk func() error) func() error {
	return func() error {
		if c.dead.Load() {
			return errKilled
		}
		if disk != nil {
			return disk()
		}
		return nil
	}
}

// plug connects the agent to a line of boards.
func (c *cabinet) plug(line string) (net.Conn, error) {
	if c.dead.Load() {
		return nil, errKilled
	}
	conn, err := c.sim.Dial(line)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ports = append(c.ports, conn)
	return conn, nil
}

// kill ends the agent as SIGKILL or a power cut does: from this moment nothing of
// it reaches disk, boards or network, and the cloud gets no notice.
func (c *cabinet) kill() {
	c.dead.Store(true)
	c.mu.Lock()
	for _, p := range c.ports {
		_ = p.Close()
	}
	c.ports = nil
	c.mu.Unlock()
	c.drop()
	c.halt()
}

// disturb notes trouble that the script makes from now on, for d; 0 lasts.
func (c *cabinet) disturb(what string, door uint, d time.Duration) {
	s := truth.Span{At: time.Now(), What: what, Door: door}
	if d > 0 {
		s.Until = s.At.Add(d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = append(c.trouble, s)
}

// forget notes that what happened since a moment, and for a while from now on, may
// be forgotten: the store is damaged or an older copy. The agent does not run.
func (c *cabinet) forget(since time.Time, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = append(c.trouble, truth.Span{At: since, Until: time.Now().Add(d), What: "forgot"})
}

// storePath is the file of the agent's store.
func (c *cabinet) storePath() string { return filepath.Join(c.dir, "edge.db") }

// copyStore copies the store of an agent that does not run.
func (c *cabinet) copyStore() []byte {
	b, err := os.ReadFile(c.storePath())
	require.NoError(c.w.t, err)
	return b
}

// putStore exchanges the store of an agent that does not run for an older copy.
func (c *cabinet) putStore(b []byte) {
	require.NoError(c.w.t, os.WriteFile(c.storePath(), b, 0o600))
	c.rolled = true
}

// damageStore overwrites a part of the store of an agent that does not run.
func (c *cabinet) damageStore(at int64) {
	f, err := os.OpenFile(c.storePath(), os.O_RDWR, 0)
	require.NoError(c.w.t, err)
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	require.NoError(c.w.t, err)
	_, err = f.WriteAt(make([]byte, 8192), at%max(end-8192, 1))
	require.NoError(c.w.t, err)
	c.rolled = true
}

// part is the cabinet's share of a case.
func (c *cabinet) part() truth.Cabinet {
	s := c.agent.Loop().State()
	b := truth.Cabinet{Code: c.code, Facts: c.sim.Truth(), Held: c.w.tap.heldOf(c.code), Sensors: c.sensors, Contents: map[uint]string{}, Kept: map[uint]bool{}}
	for n, d := range s.Doors {
		if d.Delivery != "" {
			b.Contents[uint(n)], b.Kept[uint(n)] = d.Delivery, s.IsUnconfirmed(n)
		}
	}
	for id := range s.Openings {
		b.Running = append(b.Running, id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.Pulses, b.Boots, b.Trouble = slices.Clone(c.pulses), slices.Clone(c.boots), slices.Clone(c.trouble)
	b.Removed = slices.Clone(c.removed)
	return b
}
