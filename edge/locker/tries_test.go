package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

const hour = 3600 * second

// wrongly tries a code that is none, against a budget.
func (w *world) wrongly(b Budget) Answer {
	return w.step(CodeTried{Verifier: verifier(200), Input: "keypad", Budget: b}).Answer
}

func TestFiveWrongCodesLockTheirBudgetForFiveMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for i := range 5 {
		a := w.wrongly(BudgetTyped)
		require.Equal(t, wire.CodeUnknown, a.Outcome)
		if i < 4 {
			require.Equal(t, []any{4 - i, int64(0), BudgetTyped}, []any{a.Left, a.Until, a.Budget})
			w.now.Mono += 100 * second
			continue
		}
		require.Zero(t, a.Left)
		require.Equal(t, w.now.Mono+300*second, a.Until, "the answer says until when")
	}
	locked := w.now.Mono
	w.now.Mono = locked + 300*second - 1
	require.Equal(t, wire.CodeLockedOut, w.wrongly(BudgetTyped).Outcome)
	w.now.Mono = locked + 300*second
	require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetTyped).Outcome)
}

func TestFourWrongCodesInTenMinutesLockNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for range 20 {
		require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetTyped).Outcome)
		w.now.Mono += 150 * second
	}
}

// Thirty wrong codes within a day, whatever their distance: the budget is locked
// until a day has passed since the first of them, and then bears one for each that
// is older.
func TestThirtyWrongCodesInADayLockTheirBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	first := w.now.Mono
	for i := range 30 {
		a := w.wrongly(BudgetTyped)
		require.Equal(t, wire.CodeUnknown, a.Outcome)
		require.Equal(t, i == 29, a.Until != 0)
		w.now.Mono += 600 * second
	}
	a := w.wrongly(BudgetTyped)
	require.Equal(t, []any{wire.CodeLockedOut, 0, first + 24*hour}, []any{a.Outcome, a.Left, a.Until})
	require.Equal(t, first+24*hour, w.s.Meta.Budgets.Typed.Long(w.now))
	w.now.Mono = first + 24*hour - 1
	require.Equal(t, wire.CodeLockedOut, w.wrongly(BudgetTyped).Outcome)
	w.now.Mono = first + 24*hour
	a = w.wrongly(BudgetTyped)
	require.Equal(t, wire.CodeUnknown, a.Outcome)
	require.Equal(t, first+600*second+24*hour, a.Until, "the second one counts for ten more minutes")
}

func TestALockedBudgetLeavesTheOthers(t *testing.T) {
	t.Parallel()
	all := []Budget{BudgetTyped, BudgetScanned, BudgetStaff}
	for _, b := range all {
		w := newWorld(t, 2)
		w.deposit()
		w.list(wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(8)})
		for range 5 {
			w.wrongly(b)
		}
		for _, other := range all {
			if other != b {
				require.NotEqual(t, wire.CodeLockedOut, w.wrongly(other).Outcome, "%s locked, %s", b, other)
			}
		}
		// Remote opening, too.
		w.order("op_9", wire.OpenStaff, 2)
		require.Len(t, w.takePulses(), 1)
	}
	w := newWorld(t, 1)
	w.deposit()
	for range 5 {
		w.wrongly(BudgetTyped)
	}
	require.Equal(t, wire.CodeLockedOut, w.step(CodeTried{Verifier: verifier(7), Input: "keypad", Budget: BudgetTyped}).Answer.Outcome)
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "qr", Budget: BudgetScanned}).Answer.Outcome)
}

func TestStaffOrTheCloudUnlock(t *testing.T) {
	t.Parallel()
	for name, unlock := range map[string]func(w *world){
		"a right staff code": func(w *world) {
			require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Budget: BudgetStaff}).Answer.Outcome)
		},
		"reset_tries": func(w *world) { w.step(Ordered{Command: w.command(wire.CmdResetTries, nil, wire.DoorReason{})}) },
	} {
		w := newWorld(t, 1)
		w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(8)})
		for range 30 {
			w.wrongly(BudgetTyped)
			w.now.Mono += 200 * second
		}
		for range 30 {
			w.wrongly(BudgetTyped)
			w.now.Mono += 400 * second
		}
		require.Equal(t, wire.CodeLockedOut, w.wrongly(BudgetTyped).Outcome, name)
		unlock(w)
		a := w.wrongly(BudgetTyped)
		require.Equal(t, []any{wire.CodeUnknown, 4}, []any{a.Outcome, a.Left}, name)
	}
}

// A vandal's own parcel is no key to more tries, and a staff code that has run out
// is none either.
func TestOnlyARightStaffCodeUnlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	w.list(wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(8), NotAfter: w.now.Wall(w.now.Mono) - hour})
	for range 4 {
		w.wrongly(BudgetTyped)
	}
	require.Equal(t, wire.CodeExpired, w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Budget: BudgetStaff}).Answer.Outcome)
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad", Budget: BudgetTyped}).Answer.Outcome)
	require.Zero(t, w.wrongly(BudgetTyped).Left)
}

func TestCountersSurviveAStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clock wire.Clock
		off   time.Duration
		want  string
	}{
		"a day without a clock":               {wire.ClockUnset, 25 * time.Hour, wire.CodeLockedOut},
		"an hour with a signed one":           {wire.ClockSynced, time.Hour, wire.CodeLockedOut},
		"a day with a signed one":             {wire.ClockSynced, 25 * time.Hour, wire.CodeUnknown},
		"the machine's clock was set back":    {wire.ClockCarried, -1000 * time.Hour, wire.CodeLockedOut},
		"the machine's clock was set forward": {wire.ClockCarried, 25 * time.Hour, wire.CodeLockedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			for range 30 {
				w.wrongly(BudgetScanned)
				w.now.Mono += 320 * second
			}
			w.restart(c.off, c.clock)
			a := w.wrongly(BudgetScanned)
			require.Equal(t, c.want, a.Outcome)
			require.LessOrEqual(t, a.Until, w.now.Mono+24*hour, "a clock that was set back does not prolong it")
			w.restart(0, wire.ClockUnset)
			require.Equal(t, c.want == wire.CodeLockedOut, w.wrongly(BudgetScanned).Outcome == wire.CodeLockedOut, "nor does another start help")
			w.now.Clock, w.now.Offset = wire.ClockSynced, 1_800_000_000*second+41*hour
			require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetScanned).Outcome, "a signed time ends it")
		})
	}
}

// What was kept when one counter served for all is taken over without loss: a
// keypad that was closed "until staff comes" opens a day after its first wrong code.
func TestTheFormerCounterIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	type formerMeta struct {
		CodeList uint64
		Tries    formerTries
	}
	day := w.now.instant(w.now.Mono)
	last := w.now.instant(w.now.Mono + 3*hour)
	kept := func(f formerTries) {
		w.kept[keyMeta] = wire.MustEncode(formerMeta{CodeList: 17, Tries: f})
		w.now.Mono = last.Mono
		w.restart(time.Minute, wire.ClockCarried)
	}
	kept(formerTries{Day: day, DayCount: 30, Closed: true, Last: last})
	require.EqualValues(t, 17, w.s.Meta.CodeList)
	a := w.wrongly(BudgetTyped)
	require.Equal(t, wire.CodeLockedOut, a.Outcome)
	require.Equal(t, w.now.Mono+21*hour, a.Until, "the machine's clock proves no minute")
	require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetScanned).Outcome)
	w.restart(time.Minute, wire.ClockCarried)
	require.Equal(t, wire.CodeLockedOut, w.wrongly(BudgetTyped).Outcome, "kept in the new form")
	w.now.Mono += 21 * hour
	require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetTyped).Outcome)

	w = newWorld(t, 1)
	kept(formerTries{Day: day, DayCount: 29, Last: last, Wrong: []Instant{last, last}})
	require.NotZero(t, w.wrongly(BudgetTyped).Until, "the thirtieth")
	w = newWorld(t, 1)
	kept(formerTries{Until: w.now.instant(last.Mono + 300*second), Last: last})
	require.Equal(t, wire.CodeLockedOut, w.wrongly(BudgetTyped).Outcome)
}

// A lock runs out by the time that the cabinet was awake, in however many boots, also
// where no signed time ever tells how long it was not.
func TestALockRunsOutOverManyBoots(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		wrong       int
		boot, least time.Duration // of which the lock lasts, and may not be shorter than
		most        int           // boots
	}{
		"a day, in boots of 20 hours":     {30, 20 * time.Hour, 21 * time.Hour, 2},
		"a day, in boots of half an hour": {30, 30 * time.Minute, 21 * time.Hour, 60},
		"5 minutes, in boots of 290 s":    {5, 290 * time.Second, 5 * time.Minute, 2},
		"5 minutes, in boots of 90 s":     {5, 90 * time.Second, 5 * time.Minute, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.restart(0, wire.ClockCarried)
			w.readAll()
			for i := range x.wrong {
				if i > 0 && x.wrong > 5 {
					w.now.Mono += 320 * second
				}
				w.wrongly(BudgetTyped)
			}
			var awake int64
			boots := 0
			for w.s.Meta.Budgets.Typed.Locked(w.now) != 0 {
				for end := w.now.Mono + int64(x.boot); w.now.Mono < end && w.s.Meta.Budgets.Typed.Locked(w.now) != 0; {
					next := w.s.Next(w.now)
					require.NotZero(t, next)
					next = min(next, end)
					awake += next - w.now.Mono
					w.now.Mono = next
					w.step(Tick{})
				}
				if boots++; w.s.Meta.Budgets.Typed.Locked(w.now) != 0 {
					w.restart(time.Hour, wire.ClockCarried)
				}
				require.LessOrEqual(t, boots, x.most)
			}
			require.GreaterOrEqual(t, time.Duration(awake), x.least)
			require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetTyped).Outcome)
		})
	}
}

// What is kept of time passing is little, and nothing once no wrong code counts.
func TestTimeIsKeptOnlyWhileWrongCodesCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.readAll()
	require.Zero(t, w.s.Next(w.now))
	w.wrongly(BudgetTyped)
	writes := 0
	for w.s.Next(w.now) != 0 {
		w.now.Mono = w.s.Next(w.now)
		w.step(Tick{})
		writes++
	}
	require.InDelta(t, 24*6, writes, 2, "one in ten minutes, for a day")
}

// Wrong codes against one budget do not hold up the time of another's lock.
func TestAVandalDoesNotStopTheTimeOfAnotherLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.readAll()
	for range 5 {
		w.wrongly(BudgetTyped)
	}
	for range 40 {
		w.now.Mono += 6 * second
		w.wrongly(BudgetScanned)
	}
	w.restart(time.Minute, wire.ClockCarried)
	w.readAll()
	w.now.Mono += 120 * second
	require.Equal(t, wire.CodeUnknown, w.wrongly(BudgetTyped).Outcome)
}
