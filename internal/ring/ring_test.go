package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRingsCountApart(t *testing.T) {
	for _, c := range []struct {
		ring, seeds, rounds   string
		count                 int
		firstSeed, lastSeed   uint64
		firstRound, lastRound int
		check, full           bool
	}{
		{ring: "", count: 3, firstSeed: 1, lastSeed: 9, firstRound: 1, lastRound: 2},
		{ring: "test", count: 3, firstSeed: 1, lastSeed: 9, firstRound: 1, lastRound: 2},
		{ring: "check", count: 3, firstSeed: 1, lastSeed: 60, firstRound: 1, lastRound: 2, check: true},
		{ring: "full", count: 300, firstSeed: 1, lastSeed: 10_000, firstRound: 1, lastRound: 1000, check: true, full: true},
		{ring: "full", seeds: "2001-4000", rounds: "7", count: 300, firstSeed: 2001, lastSeed: 4000, firstRound: 7, lastRound: 7, check: true, full: true},
		{ring: "test", seeds: "77", rounds: "101-200", count: 3, firstSeed: 77, lastSeed: 77, firstRound: 101, lastRound: 200},
	} {
		t.Setenv(Env, c.ring)
		t.Setenv(EnvSeeds, c.seeds)
		t.Setenv(EnvRounds, c.rounds)
		require.Equal(t, []bool{c.check, c.full}, []bool{Check(), Full()})
		require.Equal(t, c.count, Count(3, 300))
		first, last := Seeds(9, 60)
		require.Equal(t, []uint64{c.firstSeed, c.lastSeed}, []uint64{first, last})
		from, to := Rounds(2, 1000)
		require.Equal(t, []int{c.firstRound, c.lastRound}, []int{from, to})
	}
}

func TestUnreadableRangesPanic(t *testing.T) {
	for _, text := range []string{"0-5", "9-5", "-5", "5-", "a-b", "1-2-3", "-"} {
		t.Setenv(EnvSeeds, text)
		require.Panics(t, func() { Seeds(1, 2) }, text)
	}
	t.Setenv(Env, "quick")
	require.Panics(t, func() { Full() })
}

func TestAwaitLooksUntilItIsTrue(t *testing.T) {
	looks := 0
	Await(t, func() bool { looks++; return looks == 5 }, "five looks of %d", looks)
	require.Equal(t, 5, looks)
}
