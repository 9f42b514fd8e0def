package agent

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// bench is an agent that reaches no server, with what it dialled.
type bench struct {
	t      *testing.T
	dir    string
	old    *signed.Signer
	next   *signed.Signer
	agent  *Agent
	stop   context.CancelFunc
	run    sync.WaitGroup
	mu     sync.Mutex
	dialed []string
	system func() time.Time // the machine's clock; nil is the bench's
	change func(*Config)    // of the next start; nil: none
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "agent"), old: signer(t, 1), next: signer(t, 2)}
	b.start()
	return b
}

func signer(t *testing.T, seed byte) *signed.Signer {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(append(make([]byte, 31), seed)))
	require.NoError(t, err)
	return s
}

func (b *bench) settings() Config {
	return Config{Dir: b.dir, Secrets: access.Secrets{DeviceCode: "CAB-1", DeviceSecret: "x", CodeSalt: make([]byte, 16), CodeKey: make([]byte, 32),
		Keys: []wire.PinnedKey{b.old.Pinned()}, Brokers: []string{"tcp://old:1883"}},
		Lines:  []board.LineConfig{{Name: "main", Port: "main", Boards: []board.BoardConfig{{Name: "A", Family: lockbus.CU48}}}},
		System: b.system,
		Open:   func(context.Context, board.LineConfig) (board.Port, error) { return nil, errors.New("no line") },
		Dial: func(_ context.Context, to *url.URL) (net.Conn, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dialed = append(b.dialed, to.Hostname())
			return nil, errors.New("nobody is there")
		}}
}

func (b *bench) start() {
	b.t.Helper()
	conf := b.settings()
	if b.change != nil {
		b.change(&conf)
	}
	a, err := New(conf)
	require.NoError(b.t, err)
	ctx, stop := context.WithCancel(context.Background())
	b.agent, b.stop = a, stop
	b.run.Go(func() {
		if err := a.Run(ctx); err != nil {
			b.t.Errorf("agent: %v", err)
		}
	})
	synctest.Wait()
}

func (b *bench) halt() { b.stop(); b.run.Wait() }

// dials are the hosts that were tried since the last call.
func (b *bench) dials() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := strings.Join(b.dialed, " ")
	b.dialed = nil
	return s
}

func (b *bench) config(by *signed.Signer, version uint64, keys []wire.PinnedKey, brokers ...string) {
	b.t.Helper()
	env, err := by.Sign(signed.ForConfig, wire.Config{Version: version, DeviceCode: "CAB-1", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}},
		Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Keys: keys, Brokers: brokers})
	require.NoError(b.t, err)
	(*handler)(b.agent).Config(env)
	synctest.Wait()
}

// results are those of the config_applied records that are kept.
func (b *bench) results() (out []string) {
	b.t.Helper()
	run, err := b.agent.store.Read(wire.Settlement, 1, 1000, 1<<20)
	require.NoError(b.t, err)
	for _, raw := range run.Records {
		r, err := wire.DecodeRecord(raw)
		require.NoError(b.t, err)
		var c wire.ConfigApplied
		if r.Kind == wire.KindConfigApplied {
			require.NoError(b.t, wire.Decode(r.Body, &c))
			out = append(out, c.Result)
		}
	}
	return out
}

func (b *bench) stand() stand {
	b.agent.links.mu.Lock()
	defer b.agent.links.mu.Unlock()
	return b.agent.links.kept.Stand
}

func (b *bench) trusts(s *signed.Signer) bool {
	env, err := s.Sign(signed.ForTime, wire.Time{DeviceCode: "CAB-1"})
	require.NoError(b.t, err)
	var p wire.Time
	return (*handler)(b.agent).keys().Open(signed.ForTime, env, &p) == nil
}

func TestAddressesGoBackAfterTenMinutesOfTryingAcrossStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, []wire.PinnedKey{b.old.Pinned()})
		require.Equal(t, proven, b.stand(), "the addresses are as before")
		b.dials()
		b.config(b.old, 2, []wire.PinnedKey{b.old.Pinned()}, "ssl://new:8883")
		require.Equal(t, onTrial, b.stand())
		require.Equal(t, "new", b.dials(), "tried at once")
		time.Sleep(4 * time.Minute)
		require.Contains(t, b.dials(), "new old new")
		b.halt()
		time.Sleep(time.Hour) // without power it cannot try
		b.start()
		time.Sleep(5 * time.Minute)
		require.Equal(t, onTrial, b.stand())
		require.Contains(t, b.dials(), "new old new")
		require.Len(t, b.results(), 2)
		time.Sleep(2 * time.Minute)
		require.Equal(t, goneBack, b.stand())
		require.Len(t, b.results(), 3)
		require.Contains(t, b.results()[2], "went back")
		b.dials()
		time.Sleep(5 * time.Minute)
		require.NotContains(t, b.dials(), "new")
		b.halt()
		b.start()
		time.Sleep(time.Hour)
		require.NotContains(t, b.dials(), "new", "nor after a start")
		require.Len(t, b.results(), 3, "told once")
		require.EqualValues(t, 2, b.agent.loop.State().Config.Version, "the rest of the configuration stands")

		b.config(b.old, 3, []wire.PinnedKey{b.old.Pinned()}, "ssl://newer:8883")
		require.Contains(t, b.dials(), "newer")
		b.config(b.old, 4, []wire.PinnedKey{b.old.Pinned()})
		require.Equal(t, proven, b.stand(), "the last good ones need no trial")
	})
}

// New keys count beside the old ones until a time answer is signed by one of them:
// a key that the cloud does not sign with cuts nothing off, however long it stands.
func TestKeysThatAreNotSeenCutNothingOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		wrong := signer(t, 4)
		b.config(b.old, 1, []wire.PinnedKey{wrong.Pinned()})
		require.True(t, b.trusts(b.old))
		require.True(t, b.trusts(wrong))
		time.Sleep(24 * time.Hour)
		require.True(t, b.trusts(b.old))
		require.True(t, b.trusts(wrong), "only addresses go back")
		b.sync("n1")
		require.True(t, b.trusts(wrong), "a time answer by the old key drops none")
		b.config(b.old, 2, []wire.PinnedKey{b.next.Pinned()})
		require.False(t, b.trusts(wrong), "it was never proven")
		require.True(t, b.trusts(b.next))
		require.True(t, b.trusts(b.old))
		require.Len(t, b.results(), 2, "nothing went back")
	})
}

// Once a time answer was signed by a new key, the old one is gone for good: a start,
// a new store, an older copy of the store or a broker that withholds everything
// bring it back no more. Another message, or an old answer, drops none.
func TestAnOldKeyNeverReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, []wire.PinnedKey{b.next.Pinned()})
		older, err := os.ReadFile(filepath.Join(b.dir, "edge.db"))
		require.NoError(t, err)
		answer := func(sealed, asked string) {
			env, err := b.next.Sign(signed.ForTime, wire.Time{DeviceCode: "CAB-1", Nonce: []byte(sealed), ServerTime: time.Now().UnixNano()})
			require.NoError(t, err)
			(*handler)(b.agent).Time(uplink.TimeAnswer{Envelope: env, Nonce: []byte(asked), SentAt: time.Now(), ReceivedAt: time.Now()})
		}
		answer("n1", "n2")
		require.True(t, b.trusts(b.old), "an answer to an older question")
		b.config(b.next, 2, []wire.PinnedKey{b.next.Pinned()})
		require.True(t, b.trusts(b.old), "a configuration may be an old one")
		answer("n3", "n3")
		gone := func(why string) {
			t.Helper()
			require.False(t, b.trusts(b.old), why)
			require.True(t, b.trusts(b.next), why)
		}
		gone("seen")
		time.Sleep(24 * time.Hour)
		gone("after a day without the cloud")
		b.halt()
		b.start()
		gone("after a start")
		b.config(b.next, 3, nil)
		gone("a configuration that names no keys changes none")
		b.halt()
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "edge.db"), older, 0o600))
		b.start()
		gone("with an older copy of the store")
		b.halt()
		require.NoError(t, os.Remove(filepath.Join(b.dir, "edge.db")))
		b.start()
		gone("with a new store")
	})
}

// After another enrolment the secrets file says which keys count.
func TestAnotherEnrolmentBringsItsOwnKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, []wire.PinnedKey{b.next.Pinned()})
		env, err := b.next.Sign(signed.ForTime, wire.Time{DeviceCode: "CAB-1", Nonce: []byte("n"), ServerTime: time.Now().UnixNano()})
		require.NoError(t, err)
		(*handler)(b.agent).Time(uplink.TimeAnswer{Envelope: env, Nonce: []byte("n"), SentAt: time.Now(), ReceivedAt: time.Now()})
		require.False(t, b.trusts(b.old))
		b.halt()
		b.old = signer(t, 9)
		b.start()
		require.True(t, b.trusts(b.old))
	})
}

func TestConfigurationWithAnAddressThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, nil, "new:8883")
		require.Contains(t, b.results()[0], "broker address")
		require.Zero(t, b.agent.loop.State().Config.Version)
		b.halt()
		b.start() // a refused address must not keep the agent from starting
	})
}
