// Package ring says how much of a long test runs. `make test` runs the quick ring:
// few seeds, in one process. `make check` adds real programs, PostgreSQL, a pass of each
// browser, of other people's suites and of the commands of the documents, and the
// walks over every page; `make full` runs the same tests whole. Each ring holds
// the ones before it. Only tests import this package; it keeps no state, reads the
// environment at each call, and every function is safe for concurrent use.
//
//	POSTERN_RING=test|check|full  which ring; unset is test
//	POSTERN_SEEDS=2001-4000       the seeds of tests that take a range, in any ring
//	POSTERN_ROUNDS=1-200          the rounds of tests that kill processes, in any ring
//
// A value that does not read as one of these panics, so that a mistyped range
// never passes as a run of nothing.
package ring

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The variables of the environment that choose a ring and its ranges.
const (
	Env       = "POSTERN_RING"
	EnvSeeds  = "POSTERN_SEEDS"
	EnvRounds = "POSTERN_ROUNDS"
)

// FullSeeds is how many seeds the full ring tries of each simulated world.
const FullSeeds = 10_000

// Full reports whether the full ring runs.
func Full() bool { return level() == "full" }

// Check reports whether the ring of `make check` runs, alone or within the full one.
func Check() bool { return level() != "test" }

func level() string {
	switch v := os.Getenv(Env); v {
	case "":
		return "test"
	case "test", "check", "full":
		return v
	default:
		panic(fmt.Sprintf("%s is %q; it must be test, check or full", Env, v))
	}
}

// Count is full in the full ring and quick in the others. The thing counted is the
// caller's: runs of a model, bytes, steps.
func Count(quick, full int) int {
	if Full() {
		return full
	}
	return quick
}

// Among is what a thing is counted by in each of the three rings.
func Among(quick, check, full int) int {
	if Check() {
		return Count(check, full)
	}
	return quick
}

// Seeds is the range of seeds to try, both ends included: that of POSTERN_SEEDS, else
// 1 to quick in the quick ring, to check in that of `make check`, and to FullSeeds in the
// full one.
func Seeds(quick, check uint64) (first, last uint64) {
	if first, last, ok := readRange(EnvSeeds); ok {
		return first, last
	}
	if Full() {
		return 1, FullSeeds
	}
	if Check() {
		return 1, check
	}
	return 1, quick
}

// Rounds is the range of rounds to run, both ends included: that of
// POSTERN_ROUNDS, else 1 to quick in the quick ring and 1 to full in the full one.
// A part of a range is as good as the whole: round n draws its chance from n.
func Rounds(quick, full int) (first, last int) {
	if first, last, ok := readRange(EnvRounds); ok {
		return int(first), int(last)
	}
	return 1, Count(quick, full)
}

// Variables of what a machine has: Tools and Browsers say that what is missing is a
// failure and no reason to skip, by "1" and by "require"; EnvPostgres is the address of a
// PostgreSQL server to test against.
const (
	EnvTools    = "POSTERN_REQUIRE_TOOLS"
	EnvBrowsers = "POSTERN_BROWSER_TESTS"
	EnvPostgres = "POSTERN_TEST_POSTGRES"
)

// Needs leaves a test of other people's programs to `make check`, and there skips it on a
// machine that lacks one, or fails it where the variable, EnvTools or EnvBrowsers,
// requires them. what names the program and where it comes from.
func Needs(t testing.TB, variable, what string, there bool) {
	t.Helper()
	SkipUnlessCheck(t, "it needs "+what)
	switch value := os.Getenv(variable); {
	case there:
	case value == "1" || value == "require":
		t.Fatalf("%s is missing", what)
	default:
		t.Skipf("%s is missing", what)
	}
}

// Postgres is the address of the PostgreSQL server to test against. It skips the test
// without one, and in the quick ring, which runs each model on SQLite; benchmarks have no
// ring.
func Postgres(t testing.TB) string {
	t.Helper()
	if _, measured := t.(*testing.B); !measured {
		SkipUnlessCheck(t, "the same on SQLite")
	}
	address := os.Getenv(EnvPostgres)
	if address == "" {
		t.Skip(EnvPostgres + " is not set")
	}
	return address
}

// SkipUnlessCheck skips a test that is left to `make check`. why says in words what the
// quick ring runs in its place, or what the test needs.
func SkipUnlessCheck(t testing.TB, why string) {
	t.Helper()
	if !Check() {
		t.Skipf("runs with %s=check: %s", Env, why)
	}
}

// SkipUnlessFull skips a test that runs in the full ring only. why says in words
// what the other rings run in its place.
func SkipUnlessFull(t testing.TB, why string) {
	t.Helper()
	if !Full() {
		t.Skipf("runs with %s=full: %s", Env, why)
	}
}

// readRange reads FIRST-LAST, or one number for a range of one; ok is false when
// the variable is unset.
func readRange(name string) (first, last uint64, ok bool) {
	text := os.Getenv(name)
	if text == "" {
		return 0, 0, false
	}
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 63)
	last, err2 := strconv.ParseUint(to, 10, 63)
	if err != nil || err2 != nil || first == 0 || last < first {
		panic(fmt.Sprintf("%s is %q; it must be FIRST-LAST, as in 1-200, of numbers above 0", name, text))
	}
	return first, last, true
}
