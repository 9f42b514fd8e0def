package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/uplink"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// codes hands the agent a message about the list, as answer to a nonce of this
// connection.
func (b *bench) codes(c wire.Codes, nonce string) {
	b.t.Helper()
	b.receive(c, nonce, nonce)
}

// recorded hands it one that answered a nonce of an earlier connection.
func (b *bench) recorded(c wire.Codes, nonce string) {
	b.t.Helper()
	b.receive(c, nonce, "of this connection")
}

func (b *bench) receive(c wire.Codes, nonce, asked string) {
	b.t.Helper()
	c.DeviceCode = "CAB-1"
	if nonce != "" {
		c.Nonce = []byte(nonce)
	}
	env, err := b.old.Sign(signed.ForCodes, c)
	require.NoError(b.t, err)
	(*handler)(b.agent).Codes(uplink.CodesAnswer{Envelope: env, Nonce: []byte(asked)})
	synctest.Wait()
}

// tampers are the kinds of tampering that are kept.
func (b *bench) tampers() (out []string) {
	b.t.Helper()
	run, err := b.agent.store.Read(wire.Settlement, 1, 1000, 1<<20)
	require.NoError(b.t, err)
	for _, raw := range run.Records {
		r, err := wire.DecodeRecord(raw)
		require.NoError(b.t, err)
		var body wire.Tamper
		if r.Kind == wire.KindTamper {
			require.NoError(b.t, wire.Decode(r.Body, &body))
			out = append(out, body.What)
		}
	}
	return out
}

func staffCode(n uint64) []wire.CodeEntry {
	return []wire.CodeEntry{{Number: n, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: make([]byte, 32)}}
}

// The store is gone, or was taken away: what the cloud once sent does not
// pass for its present list.
func TestTheListsGenerationOutlivesTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		st := b.agent.status()
		require.True(t, st.Lost, "a first start knows nothing of what lies inside")
		require.Zero(t, st.Generation)
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
		st = b.agent.status()
		require.Equal(t, []any{uint64(9), uint64(3), false, uint(wire.SnapshotOfUse)}, []any{st.CodeList, st.Generation, st.Lost, st.Snapshot})
		info, err := os.Stat(filepath.Join(b.dir, marksFile))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		older, err := os.ReadFile(filepath.Join(b.dir, "edge.db"))
		require.NoError(t, err)
		b.codes(wire.Codes{From: 9, To: 12, Generation: 3}, "")
		require.EqualValues(t, 12, b.agent.status().CodeList)

		b.halt()
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "edge.db"), []byte("no store"), 0o600))
		b.start()
		st = b.agent.status()
		require.Equal(t, []any{uint64(0), uint64(3), true}, []any{st.CodeList, st.Generation, st.Lost})
		b.recorded(wire.Codes{To: 40, Generation: 2, Entries: staffCode(9)}, "n2")
		require.Equal(t, []string{wire.TamperOldList}, b.tampers())
		require.Empty(t, b.agent.loop.State().Codes)
		b.codes(wire.Codes{To: 12, Generation: 3, Entries: staffCode(9)}, "n3")
		require.False(t, b.agent.status().Lost)
		require.Len(t, b.agent.loop.State().Codes, 1)

		b.halt()
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "edge.db"), older, 0o600))
		b.start()
		st = b.agent.status()
		require.Equal(t, []any{uint64(0), uint64(3)}, []any{st.CodeList, st.Generation}, "an older copy asks for a whole list")
	})
}

// Without the marks being durable the list is not taken.
func TestAListIsTakenOnlyOnceItsMarksAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		name := filepath.Join(b.dir, marksFile)
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.MkdirAll(filepath.Join(name, "in the way"), 0o700))
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
		require.Empty(t, b.agent.loop.State().Codes)
		require.Empty(t, b.tampers())
		require.NoError(t, os.RemoveAll(name))
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
		require.Len(t, b.agent.loop.State().Codes, 1)
		left, err := filepath.Glob(name + ".*")
		require.NoError(t, err)
		require.Empty(t, left, "no half-written file stays")
	})
}

func TestDamagedMarksAreMadeAnewFromTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
		b.halt()
		name := filepath.Join(b.dir, marksFile)
		require.NoError(t, os.WriteFile(name, []byte("{"), 0o600))
		b.start()
		require.EqualValues(t, 9, b.agent.status().CodeList)
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		var kept keptMarks
		require.NoError(t, json.Unmarshal(raw, &kept))
		require.Equal(t, locker.Marks{Generation: 3, Number: 9}, kept.Marks)
		require.NotEmpty(t, kept.Start)
	})
}

// What a status tells of the compartments is complete: see wire.Status.
func TestTheStatusTellsWhatLiesWhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, nil)
		require.Empty(t, b.agent.status().Contents)
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: []wire.CodeEntry{{Number: 9, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: make([]byte, 32),
			DeliveryRef: "LD-1", Doors: []uint{1}, Active: wire.ActiveNow}}}, "n1")
		require.Equal(t, map[uint]string{1: "LD-1"}, b.agent.status().Contents)
	})
}

// A keypad that thirty wrong codes have locked is in the status until it takes
// codes again; five lock it for minutes, which staff need not know.
func TestTheStatusTellsOfALockedKeypad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		first := time.Now()
		for range 30 {
			require.Zero(t, b.agent.status().TypedLocked)
			_, err := b.agent.loop.Do(t.Context(), locker.CodeTried{Verifier: make([]byte, 32), Input: "keypad", Budget: locker.BudgetTyped})
			require.NoError(t, err)
			time.Sleep(10 * time.Minute)
		}
		now := b.agent.now()
		until := time.Duration(b.agent.status().TypedLocked - now.Wall(now.Mono))
		require.InDelta(t, float64(24*time.Hour), float64(time.Since(first)+until), float64(time.Second))
		time.Sleep(until + time.Second)
		require.Zero(t, b.agent.status().TypedLocked)
	})
}

// A store that is exchanged for a copy of an earlier start does not know the start
// that the marks name: the cabinet declares that its memory was lost.
func TestAnOlderCopyOfTheStoreIsKnownAtItsStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
		require.False(t, b.agent.status().Lost)
		b.halt()
		name := filepath.Join(b.dir, "edge.db")
		old, err := os.ReadFile(name)
		require.NoError(t, err)
		for range 2 { // ordinary starts
			b.start()
			require.False(t, b.agent.status().Lost)
			b.halt()
		}
		require.NoError(t, os.WriteFile(name, old, 0o600))
		b.start()
		require.True(t, b.agent.status().Lost)
		require.Zero(t, b.agent.status().CodeList, "a whole list is asked for")
	})
}

// The marks name a list only once all of its parts have come, and power between
// them leaves what was held.
func TestMarksRiseWithTheLastPartOfAList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		part := func(n uint, from, to uint64, nonce string) {
			t.Helper()
			b.codes(wire.Codes{From: from, To: to, Generation: 3, Entries: staffCode(to), Part: n, End: 9}, nonce)
		}
		held := func(number uint64, codes int) {
			t.Helper()
			marks, err := openMarks(b.dir)
			require.NoError(t, err)
			require.Equal(t, number, marks.now().Number)
			require.Equal(t, number, b.agent.status().CodeList)
			require.Equal(t, number == 0, b.agent.status().Lost)
			require.Len(t, b.agent.loop.State().Codes, codes)
		}
		part(1, 0, 4, "n1")
		part(2, 4, 6, "n1")
		held(0, 0)
		b.halt()
		b.start()
		held(0, 0)
		part(3, 6, 9, "n1")
		held(0, 0)
		for n, end := range []uint64{4, 6, 9} {
			held(0, 0)
			part(uint(n+1), []uint64{0, 4, 6}[n], end, "n2")
		}
		held(9, 3)
		require.Empty(t, b.tampers())
	})
}
