package board

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/lockbus"
)

func small(fam lockbus.Family) Config {
	return Config{
		Seed:   3,
		Boards: []Board{{Name: "A", Line: "main", Family: fam, Address: 1}},
		Doors:  []Door{{Number: 1, Board: "A", Channel: 1}, {Number: 2, Board: "A", Channel: 2}},
	}
}

// master is a bare line master: it sends a request and collects what comes
// back within the time.
type master struct {
	t    *testing.T
	conn net.Conn
	c    lockbus.Codec
}

func (m *master) raw(req lockbus.Frame, wait time.Duration) []byte {
	p, err := m.c.AppendRequest(nil, req)
	require.NoError(m.t, err)
	_, err = m.conn.Write(p)
	require.NoError(m.t, err)
	return m.listen(wait)
}

func (m *master) listen(wait time.Duration) (got []byte) {
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(wait)))
	buf := make([]byte, 256)
	for {
		n, err := m.conn.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return got
		}
	}
}

func (m *master) ask(req lockbus.Frame, wait time.Duration) (frames []lockbus.Frame) {
	s := lockbus.NewScanner(m.c)
	s.Feed(m.raw(req, wait))
	for f, ok := s.Next(nil); ok; f, ok = s.Next(nil) {
		frames = append(frames, f)
	}
	return frames
}

func onBench(t *testing.T, cfg Config, f func(c *Cabinet, m *master)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(cfg)
		require.NoError(t, err)
		conn, err := c.Dial("main")
		require.NoError(t, err)
		defer func() {
			_ = conn.Close()
			c.Close()
			synctest.Wait()
		}()
		f(c, &master{t, conn, lockbus.For(cfg.Boards[0].Family)})
	})
}

func kinds(c *Cabinet) (k []FactKind) {
	for _, f := range c.Truth() {
		k = append(k, f.Kind)
	}
	return k
}

var status = lockbus.Frame{Kind: lockbus.AskStatus, Board: 1}

func unlock(n uint8) lockbus.Frame { return lockbus.Frame{Kind: lockbus.Unlock, Board: 1, Lock: n} }

func TestAnUnlockOpensTheDoorAndTheTruthSaysWhen(t *testing.T) {
	t.Parallel()
	onBench(t, small(lockbus.CU48), func(c *Cabinet, m *master) {
		begin := time.Now()
		require.Empty(t, m.raw(unlock(1), time.Second), "a CU48 does not answer an unlock")
		require.Equal(t, []FactKind{CoilFired, HookOut, Opened}, kinds(c))
		require.False(t, c.OpenAt(1, begin))
		require.True(t, c.OpenAt(1, time.Now()))
		require.False(t, c.OpenAt(2, time.Now()))
		f := m.ask(status, 100*time.Millisecond)
		require.Len(t, f, 1)
		require.EqualValues(t, 1<<48-2, f[0].Hooks)
		shut := time.Now()
		require.NoError(t, c.CloseDoor(1))
		time.Sleep(time.Second)
		require.False(t, c.OpenAt(1, time.Now()))
		require.True(t, c.WasOpenBetween(1, begin, time.Now()))
		require.True(t, c.WasOpenBetween(1, shut, time.Now()), "open until the very moment")
		require.False(t, c.WasOpenBetween(1, shut.Add(1), time.Now()))
	})
}

func TestDoorsThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(c *Cabinet) error
		act     func(c *Cabinet) error
		want    []FactKind
	}{
		"jammed":  {func(c *Cabinet) error { return c.Jam(1) }, nil, []FactKind{CoilFired}},
		"relatch": {func(c *Cabinet) error { return c.RelatchNext(1, 1) }, nil, []FactKind{CoilFired, HookOut, HookIn}},
		"lost":    {func(c *Cabinet) error { return c.Inject("A", LostUnlock, 1) }, nil, nil},
		"double":  {func(c *Cabinet) error { return c.Inject("A", DoubleUnlock, 1) }, nil, []FactKind{CoilFired, HookOut, Opened, CoilFired}},
		"reset":   {nil, func(c *Cabinet) error { return c.ResetBoard("A") }, []FactKind{CoilFired, BoardReset}},
		"slam": {nil, func(c *Cabinet) error {
			time.Sleep(time.Second)
			return c.Slam(1)
		}, []FactKind{CoilFired, HookOut, Opened, Closed, HookIn, HookOut, HookIn}},
		"closed on a live coil": {nil, func(c *Cabinet) error {
			time.Sleep(300 * time.Millisecond)
			return c.CloseDoor(1)
		}, []FactKind{CoilFired, HookOut, Opened, Closed, HookIn}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, small(lockbus.CU48), func(cab *Cabinet, m *master) {
				if c.prepare != nil {
					require.NoError(t, c.prepare(cab))
				}
				m.raw(unlock(1), 20*time.Millisecond)
				if c.act != nil {
					require.NoError(t, c.act(cab))
				}
				time.Sleep(3 * time.Second)
				require.Equal(t, c.want, kinds(cab))
			})
		})
	}
}

func TestAWeakSpringNeedsAHand(t *testing.T) {
	t.Parallel()
	cfg := small(lockbus.CU48)
	cfg.Doors[0].WeakSpring = true
	onBench(t, cfg, func(c *Cabinet, m *master) {
		m.raw(unlock(1), 2*time.Second)
		require.Equal(t, []FactKind{CoilFired, HookOut, HookIn}, kinds(c))
		m.raw(unlock(1), 200*time.Millisecond)
		require.NoError(t, c.Pull(1))
		time.Sleep(time.Second)
		require.True(t, c.OpenAt(1, time.Now()))
	})
}

func TestTooManyCoilsBrownOut(t *testing.T) {
	t.Parallel()
	onBench(t, small(lockbus.CU48), func(c *Cabinet, m *master) {
		m.raw(lockbus.Frame{Kind: lockbus.UnlockAll, Board: 1}, 50*time.Millisecond)
		require.Contains(t, kinds(c), BrownOut)
		require.Empty(t, m.raw(status, 300*time.Millisecond), "no power")
		time.Sleep(200 * time.Millisecond)
		f := m.ask(status, 100*time.Millisecond)
		require.Len(t, f, 1)
		require.Zero(t, f[0].Hooks, "inputs read 0 while the board starts")
		time.Sleep(300 * time.Millisecond)
		require.EqualValues(t, 1<<48-1, m.ask(status, 100*time.Millisecond)[0].Hooks)
	})
}

func TestABoardThatFiresInTurnNeedsNoMoreThanOneCoil(t *testing.T) {
	t.Parallel()
	onBench(t, small(lockbus.Door80), func(c *Cabinet, m *master) {
		f := m.ask(lockbus.Frame{Kind: lockbus.UnlockAll, Board: 1}, 3*time.Second)
		require.Len(t, f, 1)
		require.NotContains(t, kinds(c), BrownOut)
		require.True(t, c.OpenAt(1, time.Now()) && c.OpenAt(2, time.Now()))
	})
}

func TestLineFaultsOnTheWire(t *testing.T) {
	t.Parallel()
	clean := "02010065FFFFFFFFFFFF0365"
	for fault, check := range map[Fault]func(t *testing.T, p []byte, frames int){
		DropByte:    func(t *testing.T, p []byte, n int) { require.Len(t, p, 11); require.Zero(t, n) },
		ExtraByte:   func(t *testing.T, p []byte, n int) { require.Len(t, p, 13) },
		FlipBit:     func(t *testing.T, p []byte, n int) { require.Len(t, p, 12); require.Zero(t, n) },
		FlipKeepSum: func(t *testing.T, p []byte, n int) { require.Equal(t, 1, n); require.NotEqual(t, clean, hexed(p)) },
		Echo:        func(t *testing.T, p []byte, n int) { require.Len(t, p, 18); require.Equal(t, 1, n) },
		StaleAnswer: func(t *testing.T, p []byte, n int) { require.Len(t, p, 24); require.Equal(t, 2, n) },
		TwoAnswers:  func(t *testing.T, p []byte, n int) { require.Len(t, p, 24); require.Equal(t, 2, n) },
		WrongBoard:  func(t *testing.T, p []byte, n int) { require.NotEqual(t, byte(1), p[1]); require.Equal(t, 1, n) },
		Collision:   func(t *testing.T, p []byte, n int) { require.Len(t, p, 12); require.Zero(t, n) },
		WrongBaud:   func(t *testing.T, p []byte, n int) { require.Zero(t, n) },
		Silence:     func(t *testing.T, p []byte, n int) { require.Empty(t, p) },
		SplitAnswer: func(t *testing.T, p []byte, n int) { require.Equal(t, 1, n) },
		LateAnswer:  func(t *testing.T, p []byte, n int) { require.Empty(t, p) },
		AdapterGone: func(t *testing.T, p []byte, n int) { require.Empty(t, p) },
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			onBench(t, small(lockbus.CU48), func(c *Cabinet, m *master) {
				m.raw(status, 100*time.Millisecond)
				require.NoError(t, c.Inject("A", fault, 1))
				p := m.raw(status, 100*time.Millisecond)
				s := lockbus.NewScanner(m.c)
				s.Feed(p)
				n := 0
				for _, ok := s.Next(nil); ok; _, ok = s.Next(nil) {
					n++
				}
				check(t, p, n)
				if fault == AdapterGone {
					_, err := c.Dial("main")
					require.ErrorIs(t, err, ErrUnplugged)
					return
				}
				m.listen(200 * time.Millisecond)
				require.Len(t, m.ask(status, 100*time.Millisecond), 1, "injected once")
			})
		})
	}
}

func hexed(p []byte) string {
	const digits = "0123456789ABCDEF"
	var s strings.Builder
	for _, b := range p {
		s.WriteByte(digits[b>>4])
		s.WriteByte(digits[b&15])
	}
	return s.String()
}

func TestBoardFaults(t *testing.T) {
	t.Parallel()
	onBench(t, small(lockbus.Station), func(c *Cabinet, m *master) {
		ask := lockbus.Frame{Kind: lockbus.AskLock, Board: 1, Lock: 1}
		require.NoError(t, c.Inject("A", CoolingDown, 1))
		require.Equal(t, lockbus.Cooling, m.ask(unlock(1), 100*time.Millisecond)[0].Result)
		require.NoError(t, c.Inject("A", BusyAfter, 1))
		require.Empty(t, m.ask(unlock(1), time.Second))
		require.Empty(t, m.ask(ask, 100*time.Millisecond), "this request frees it")
		require.False(t, m.ask(ask, 100*time.Millisecond)[0].Closed)
		require.NoError(t, c.Inject("A", LostAnswer, 1))
		require.Empty(t, m.ask(unlock(2), time.Second))
		require.True(t, c.OpenAt(2, time.Now()))
	})
}

func TestThePersonPutsSomethingInAndCloses(t *testing.T) {
	t.Parallel()
	cfg := small(lockbus.CU48B)
	cfg.Person = &Person{Wait: time.Second, Does: "put"}
	onBench(t, cfg, func(c *Cabinet, m *master) {
		m.raw(unlock(1), 10*time.Second)
		require.Equal(t, []FactKind{CoilFired, HookOut, Opened, ItemIn, Closed, HookIn}, kinds(c))
		require.True(t, c.ItemAt(1, time.Now()))
		require.EqualValues(t, 1, m.ask(status, 100*time.Millisecond)[0].Items)
	})
}

func TestTheSameSeedPlaysTheSameDay(t *testing.T) {
	t.Parallel()
	day := func() (trace []byte) {
		cfg := small(lockbus.CU48)
		cfg.Faults = Faults{FlipBit: 0.2, DropByte: 0.2, LostUnlock: 0.3, Relatch: 0.3, NoiseOnIdle: 0.3}
		cfg.Person = &Person{Slams: 0.5}
		onBench(t, cfg, func(c *Cabinet, m *master) {
			for i := range 30 {
				trace = append(trace, m.raw(unlock(uint8(1+i%2)), time.Second)...)
				trace = append(trace, m.raw(status, time.Second)...)
			}
			for _, f := range c.Truth() {
				trace = append(trace, f.String()...)
			}
		})
		return trace
	}
	require.True(t, bytes.Equal(day(), day()))
}

func TestAScriptIsPlayedAtItsTimes(t *testing.T) {
	t.Parallel()
	s, err := ParseScript(strings.NewReader("# morning\n1s force 1\n+500ms put 1 # a parcel\n+0s close 1\n3s fault A silence 1\n4s unplug main 2s\n4s jam 2\n5s relatch 2 1\n5s reset A\n"))
	require.NoError(t, err)
	require.Len(t, s, 8)
	cfg := small(lockbus.CU48B)
	require.NoError(t, cfg.CheckScript(s))
	onBench(t, cfg, func(c *Cabinet, _ *master) {
		begin := time.Now()
		require.NoError(t, c.Play(context.Background(), s))
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.False(t, c.OpenAt(1, begin.Add(999*time.Millisecond)))
		require.True(t, c.OpenAt(1, begin.Add(1200*time.Millisecond)))
		require.False(t, c.OpenAt(1, begin.Add(1600*time.Millisecond)))
		require.True(t, c.ItemAt(1, time.Now()))
		_, plugged := c.Plugged("main")
		require.False(t, plugged)
	})
	for _, bad := range []string{"x force 1", "1s", "1s force", "1s force one", "2s force 1\n1s force 1", "1s fault A nothing 1", "1s sing 1", "1s unplug main soon"} {
		_, err := ParseScript(strings.NewReader(bad))
		require.Error(t, err, bad)
	}
}

func TestAWrongConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Config){
		"no boards":      func(c *Config) { c.Boards = nil },
		"same address":   func(c *Config) { c.Boards = append(c.Boards, c.Boards[0]) },
		"channel":        func(c *Config) { c.Doors[0].Channel = 49 },
		"same channel":   func(c *Config) { c.Doors[1].Channel = 1 },
		"same number":    func(c *Config) { c.Doors[1].Number = 1 },
		"no such board":  func(c *Config) { c.Doors[1].Board = "Z" },
		"address":        func(c *Config) { c.Boards[0].Address = 10 },
		"fault":          func(c *Config) { c.Faults = Faults{"gremlin": 1} },
		"chance":         func(c *Config) { c.Faults = Faults{Echo: 2} },
		"negative times": func(c *Config) { c.Boards[0].Turnaround = -1 },
	} {
		cfg := small(lockbus.CU48)
		spoil(&cfg)
		_, err := New(cfg)
		require.Error(t, err, name)
	}
}

func TestAPseudoTerminalCarriesEveryByte(t *testing.T) {
	t.Parallel()
	p, err := OpenPTY()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	agent, err := os.OpenFile(p.Path, os.O_RDWR, 0)
	require.NoError(t, err)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	_, err = p.Write(all)
	require.NoError(t, err)
	got := make([]byte, 0, 256)
	for buf := make([]byte, 256); len(got) < 256; {
		n, err := agent.Read(buf)
		require.NoError(t, err)
		got = append(got, buf[:n]...)
	}
	require.Equal(t, all, got)
	require.NoError(t, agent.Close())
	require.NoError(t, p.Close())
}

func FuzzScript(f *testing.F) {
	f.Add("1s push 3\n+2s close 3")
	f.Add("1s fault A echo 2")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScript(strings.NewReader(text))
		if err != nil {
			return
		}
		_ = small(lockbus.CU48).CheckScript(s)
		for _, step := range s {
			_, err := step.bind()
			require.NoError(t, err)
		}
	})
}
