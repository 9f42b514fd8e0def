package access

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// counter is the owner of the cabinet's state, as the desk sees it: it notes what
// it is asked and how many ask at once.
type counter struct {
	state   atomic.Pointer[locker.State]
	asked   []locker.CodeTried
	shown   []locker.PassShown
	inside  atomic.Int32
	crowded atomic.Bool
}

func (c *counter) State() locker.State { return *c.state.Load() }

func (c *counter) Do(_ context.Context, in locker.Input) (locker.Answer, error) {
	if c.inside.Add(1) > 1 {
		c.crowded.Store(true)
	}
	time.Sleep(100 * time.Millisecond)
	c.inside.Add(-1)
	switch in := in.(type) {
	case locker.CodeTried:
		c.asked = append(c.asked, in)
	case locker.PassShown:
		c.shown = append(c.shown, in)
	}
	return locker.Answer{Outcome: wire.CodeOK}, nil
}

// wire to the cloud: a status brings the tail after a while.
type link struct {
	connected bool
	statuses  atomic.Int32
	answer    func()
}

func (l *link) Connected() bool { return l.connected }
func (l *link) StatusChanged() {
	l.statuses.Add(1)
	if l.answer != nil {
		time.AfterFunc(200*time.Millisecond, l.answer)
	}
}

func desk(t *testing.T, l *link) (*Verifier, *counter) {
	t.Helper()
	c := &counter{}
	s := locker.New(wire.Config{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}})
	c.state.Store(&s)
	return New(Config{DeviceCode: "CAB-1", Salt: make([]byte, passcode.SaltSize), Key: make([]byte, passcode.KeySize), Loop: c, Link: l, Now: func() locker.Now { return locker.Now{Mono: 10} },
		Keys: func() signed.Keys {
			return signed.PinnedKeys([]wire.PinnedKey{signer(t, 1).Pinned(), signer(t, 2).Pinned()})
		}}), c
}

func signer(t *testing.T, seed byte) *signed.Signer {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)))
	require.NoError(t, err)
	return s
}

// Both pinned keys count, the present one and the next; any other is no try.
func TestSignedQRCodesReachTheRulesOnceTheyAreTheClouds(t *testing.T) {
	t.Parallel()
	d, c := desk(t, &link{})
	pass := wire.Pass{DeviceCode: "CAB-2", ID: make([]byte, wire.PassIDSize), Kind: wire.OpenStaff, Doors: []uint{1}, NotBefore: 1, NotAfter: 2}
	for seed := byte(1); seed <= 3; seed++ {
		text, err := signer(t, seed).SignPass(pass)
		require.NoError(t, err)
		a, err := d.Scan(t.Context(), " "+text+"\r")
		require.NoError(t, err)
		require.Equal(t, seed == 3, a.Outcome == wire.PassForged)
	}
	a, err := d.Scan(t.Context(), "PX:")
	require.NoError(t, err)
	require.Equal(t, locker.Answer{Outcome: wire.PassForged}, a)
	require.Equal(t, []locker.PassShown{{Pass: pass, Device: "CAB-1"}, {Pass: pass, Device: "CAB-1"}}, c.shown)
	require.Empty(t, c.asked, "no try")
}

func verifier(code string) []byte {
	return passcode.Verifier(code, make([]byte, passcode.SaltSize), make([]byte, passcode.KeySize), wire.CodeParams{MemoryKiB: 8, Passes: 1})
}

func TestOnlyVerifiersLeaveTheDesk(t *testing.T) {
	t.Parallel()
	d, c := desk(t, &link{})
	_, err := d.Type(t.Context(), "482913", nil)
	require.NoError(t, err)
	_, err = d.Scan(t.Context(), " PU:CAB-1:482913\n")
	require.NoError(t, err)
	require.Equal(t, []locker.CodeTried{{Verifier: verifier("482913"), Input: "keypad", Budget: locker.BudgetTyped}, {Verifier: verifier("482913"), Input: "qr", Budget: locker.BudgetScanned}}, c.asked)
}

func TestWhatCannotBeACodeIsNoTry(t *testing.T) {
	t.Parallel()
	d, c := desk(t, &link{})
	for _, x := range []string{"", "12345", "123456789", "12345a", "１２３４５６", "12 456"} {
		_, err := d.Type(t.Context(), x, nil)
		require.ErrorIs(t, err, ErrNotACode)
		require.False(t, x != "" && strings.Contains(err.Error(), x))
	}
	for _, x := range []string{"", "482913", "PU:CAB-2:482913", "PU:CAB-1:48291", "PU:CAB-1", "pu:CAB-1:482913"} {
		_, err := d.Scan(t.Context(), x)
		require.ErrorIs(t, err, ErrNotACode, x)
	}
	require.Empty(t, c.asked)
}

// One try at a time, and one that waits can be given up.
func TestOneTryAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := desk(t, &link{})
		for range 4 {
			go func() { _, _ = d.Type(context.Background(), "482913", nil) }()
		}
		time.Sleep(150 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := d.Type(ctx, "482913", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		synctest.Wait() // orders what follows behind what they wrote
		require.Len(t, c.asked, 4)
		require.False(t, c.crowded.Load())
	})
}

// A locked keypad costs no hash: the verifier stays empty, and the rules say no.
func TestLockedKeypadCostsNoHash(t *testing.T) {
	t.Parallel()
	d, c := desk(t, &link{connected: true})
	s := c.State()
	s.Meta.Budgets.Typed.Shut = locker.Instant{Boot: 1, Mono: 1 << 40}
	c.state.Store(&s)
	_, err := d.Type(t.Context(), "482913", nil)
	require.NoError(t, err)
	require.Nil(t, c.asked[0].Verifier)
	_, err = d.Type(t.Context(), "48291377", nil)
	require.NoError(t, err)
	_, err = d.Scan(t.Context(), "PU:CAB-1:482913")
	require.NoError(t, err)
	require.NotNil(t, c.asked[1].Verifier, "staff codes have tries of their own")
	require.Equal(t, locker.BudgetStaff, c.asked[1].Budget)
	require.NotNil(t, c.asked[2].Verifier, "and so have scanned ones")
}

// A code issued a moment ago is waited for, as long as there is a network.
// A store that is new has no configuration, so no way to make a verifier: a code
// typed then once ended the agent.
func TestCodeBeforeTheFirstConfigurationIsNoTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := desk(t, &link{})
		empty := locker.New(wire.Config{})
		c.state.Store(&empty)
		a, err := d.Type(t.Context(), "123456", nil)
		require.NoError(t, err)
		require.Equal(t, wire.CodeNotActive, a.Outcome)
		require.Empty(t, c.asked)

		l := &link{connected: true, answer: func() {
			s := locker.New(wire.Config{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}})
			s.Meta.CodeList = 1
			c.state.Store(&s)
		}}
		d, c = desk(t, l)
		c.state.Store(&empty)
		a, err = d.Type(t.Context(), "123456", nil)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, a.Outcome, "the configuration came meanwhile")
		require.Len(t, c.asked, 1)
		time.Sleep(time.Second)
	})
}

func TestUnknownCodeWaitsForTheTailOfTheList(t *testing.T) {
	t.Parallel()
	took := func(t *testing.T, l *link, d *Verifier) time.Duration {
		t.Helper()
		began := time.Now()
		_, err := d.Type(context.Background(), "482913", nil)
		require.NoError(t, err)
		return time.Since(began) - 100*time.Millisecond
	}
	synctest.Test(t, func(t *testing.T) {
		l := &link{connected: true}
		d, c := desk(t, l)
		l.answer = func() { s := c.State(); s.Meta.CodeList++; c.state.Store(&s) }
		require.InDelta(t, 200, took(t, l, d).Milliseconds(), 60)
		require.EqualValues(t, 1, l.statuses.Load())

		l.answer = nil
		require.Equal(t, tailWait, took(t, l, d), "not longer than that")
		l.connected = false
		require.Zero(t, took(t, l, d), "no network, no wait")

		l.connected = true
		s := c.State()
		s.Codes = map[uint64]wire.CodeEntry{1: {Number: 1, Verifier: verifier("482913")}}
		c.state.Store(&s)
		require.Zero(t, took(t, l, d), "known")
		require.EqualValues(t, 2, l.statuses.Load())
	})
}

func TestSecretsCheck(t *testing.T) {
	t.Parallel()
	good := Secrets{DeviceCode: "CAB-1", DeviceSecret: "s3cret", CodeSalt: make([]byte, 16), CodeKey: bytes.Repeat([]byte{7}, 32), Keys: []wire.PinnedKey{{}}, Brokers: []string{"tcp://b"}}
	require.NoError(t, good.Check())
	for name, change := range map[string]func(*Secrets){
		"no code": func(s *Secrets) { s.DeviceCode = "" }, "no secret": func(s *Secrets) { s.DeviceSecret = "" }, "short salt": func(s *Secrets) { s.CodeSalt = s.CodeSalt[1:] },
		"short key": func(s *Secrets) { s.CodeKey = s.CodeKey[1:] }, "no pinned key": func(s *Secrets) { s.Keys = nil }, "no broker": func(s *Secrets) { s.Brokers = nil },
	} {
		s := good
		change(&s)
		err := s.Check()
		require.ErrorContains(t, err, "secrets: ", name)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
