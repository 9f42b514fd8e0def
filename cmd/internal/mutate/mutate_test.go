package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// mutate runs the tool over the package in testdata.
func mutate(t *testing.T, args ...string) report {
	t.Helper()
	var out, log strings.Builder
	require.NoError(t, run(t.Context(), append(append([]string{"-json", "-limit", "2s"}, args...), "./testdata/parcel"), &out, &log), "%s", &log)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &r))
	return r
}

func TestSurvivorsAreTheKnownOnes(t *testing.T) {
	ring.SkipUnlessCheck(t, "it compiles and tests a module")
	t.Parallel()
	before, err := os.ReadFile("testdata/parcel/parcel.go")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "verdicts")
	r := mutate(t, "-n", "100", "-p", "2", "-verdicts", file)
	byChange := map[string]verdict{}
	for _, v := range r.Verdicts {
		byChange[v.Before+" => "+v.After] = v
	}
	for change, by := range map[string]string{
		"if kilograms > 30 { => if kilograms >= 30 {":                "TestPrice",
		"if kilograms > 30 { => if kilograms > 31 {":                 "TestPrice",
		"if kilograms > 30 { => if !(kilograms > 30) {":              "TestPrice",
		"if kilograms > 30 { => if false && (kilograms > 30) {":      "TestPrice",
		"return 500 + kilograms, nil => return 500 - kilograms, nil": "TestPrice",
		"for i := 0; i < n; i++ { => for i := 0; i < n; i-- {":       "time limit",
		"steps = i => ": "TestWait",
	} {
		require.Contains(t, byChange, change)
		require.Equal(t, killed, byChange[change].Outcome, change)
		require.Equal(t, by, byChange[change].By, change)
	}
	var left []string
	for _, v := range r.Verdicts {
		if v.Outcome == survived {
			left = append(left, v.Before+" => "+v.After)
		}
	}
	require.ElementsMatch(t, []string{
		"func Late(now, due int) bool { return now > due } => func Late(now, due int) bool { return now >= due }",
		"return 0, ErrHeavy => return 1, ErrHeavy",
		"for i := 0; i < n; i++ { => for i := 1; i < n; i++ {",
	}, left)
	require.Equal(t, len(left), r.Survived)
	require.Equal(t, len(r.Verdicts)-len(left), r.Killed)
	after, err := os.ReadFile("testdata/parcel/parcel.go")
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the tree stays as it is")

	// A second run reads the verdicts: one that we changed by hand comes back.
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), "TestWait", "TestKnown")+`{"torn`), 0o600))
	again := mutate(t, "-n", "100", "-verdicts", file)
	require.Equal(t, len(r.Verdicts), len(again.Verdicts))
	require.Contains(t, marshal(t, again), "TestKnown")
	require.NotContains(t, marshal(t, again), "TestWait")
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

func TestASeedIsASample(t *testing.T) {
	t.Parallel()
	list, err := listPackages(t.Context(), "", []string{"./testdata/parcel"})
	require.NoError(t, err)
	sites, err := findSites(list[0])
	require.NoError(t, err)
	ids := func(seed uint64) (out []string) {
		for _, s := range shuffle(sites, seed) {
			out = append(out, s.id())
		}
		return out
	}
	require.Equal(t, ids(7), ids(7))
	require.NotEqual(t, ids(7), ids(8))
	require.ElementsMatch(t, ids(7), ids(8), "an order of the same sites")
}

// A run that goes on where another stopped runs no tests of packages of which every mutant has
// a verdict.
func TestPackagesWithoutMutantsToTryAreNotMeasured(t *testing.T) {
	t.Parallel()
	list, err := listPackages(t.Context(), "", []string{"./testdata/parcel"})
	require.NoError(t, err)
	sites, err := findSites(list[0])
	require.NoError(t, err)
	r := &runner{book: &verdicts{known: map[string]verdict{}}, temp: t.TempDir(), base: map[string]time.Duration{}}
	require.False(t, r.isKnown(sites[0]))
	for i, s := range sites {
		r.book.known[s.id()] = verdict{site: s, Outcome: []string{killed, survived, rejected}[i%3]}
	}
	require.NoError(t, r.measure(t.Context(), sites))
	require.Empty(t, r.base)
	r.cfg.retry = true
	require.Equal(t, []bool{true, false, true}, []bool{r.isKnown(sites[0]), r.isKnown(sites[1]), r.isKnown(sites[2])})
}

// What the compiler refuses, and what only logs, is no site or no verdict.
func TestSitesOfEveryKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := `package x

import "log/slog"

func f(a, b int, log *slog.Logger) (n int, err error) {
	if err != nil { return 0, err }
	if a < b || b < 1 { n++; log.Error("x", "n", 3) }
	switch { case a == b: n += 2; return n, nil }
	defer log.Info("end")
	return n, g(map[string][4]int{})
}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte(src), 0o600))
	p := goPackage{Dir: dir, ImportPath: "m/x", GoFiles: []string{"x.go"}}
	p.Module.Dir = dir
	sites, err := findSites(p)
	require.NoError(t, err)
	kinds := map[string]int{}
	var constants []string
	for _, s := range sites {
		kinds[s.Kind]++
		if s.Kind == offByOne {
			constants = append(constants, src[s.From:s.To]+" to "+s.With)
		}
		require.NotContains(t, s.Before[:min(len(s.Before), 3)], "log", "%+v", s)
		changed, err := s.mutant()
		require.NoError(t, err)
		require.NotEqual(t, src, string(changed))
	}
	require.Equal(t, map[string]int{ignoreError: 1, negateCondition: 2, moveBoundary: 2, swapLogic: 1, swapSign: 2, removeStatement: 3, removeReturn: 2, offByOne: 3}, kinds)
	require.Equal(t, []string{"0 to 1", "1 to 2", "2 to 3"}, constants)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte(src+"//\n"), 0o600))
	_, err = sites[0].mutant()
	require.ErrorContains(t, err, "changed during the run")
}

func TestSitesAreChosenByPlaceAndKind(t *testing.T) {
	t.Parallel()
	r := mutate(t, "-match", `parcel\.go:11 boundary`)
	require.Len(t, r.Verdicts, 1)
	require.Equal(t, []any{1, 11, moveBoundary, killed}, []any{r.Sites, r.Verdicts[0].Line, r.Verdicts[0].Kind, r.Verdicts[0].Outcome})
}

// A package without tests of its own is judged by those of its parent.
func TestPackageWithoutTestsIsJudgedByItsParent(t *testing.T) {
	ring.SkipUnlessCheck(t, "it compiles and tests a module")
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-json", "-limit", "2s", "./testdata/parcel/label"}, &out, &strings.Builder{}))
	var r report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &r))
	require.NotEmpty(t, r.Verdicts)
	for _, v := range r.Verdicts {
		require.Equal(t, []string{killed, "TestLabel"}, []string{v.Outcome, v.By}, v.After)
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"-n", "0", "./testdata/parcel"}, {"-p", "0", "./testdata/parcel"}, {"./nothing"}, {"-x", "./testdata/parcel"}, {"-match", "(", "./testdata/parcel"}, {"-match", "nowhere.go", "./testdata/parcel"}} {
		require.Error(t, run(t.Context(), args, &strings.Builder{}, &strings.Builder{}), "%q", args)
	}
	bad := filepath.Join(t.TempDir(), "verdicts")
	require.NoError(t, os.WriteFile(bad, []byte("x\n"), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{"-verdicts", bad, "./testdata/parcel"}, &strings.Builder{}, &strings.Builder{}), "line 1")
}
