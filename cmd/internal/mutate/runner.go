package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Least time that a test run has, besides three times what it usually takes.
const leastLimit = 20 * time.Second

// runner tries mutants.
type runner struct {
	cfg  config
	log  io.Writer
	book *verdicts
	temp string
	base map[string]time.Duration // by package with tests: how long they take unchanged
}

// world is the folder of the simulated world's tests.
const world = "cmd/e2e"

// inWorld reports whether the simulated world of cmd/e2e runs a package.
func inWorld(p goPackage) bool {
	rel := strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
	return strings.HasPrefix(rel, "edge/") || rel == "cloud/device" || rel == "cloud/locker"
}

// runSample tries sites in their order until enough compiled. The result is in
// that order, so that a seed gives one report whatever the number of workers.
func (r *runner) runSample(ctx context.Context, sample []site) ([]verdict, error) {
	end := time.Now().Add(r.cfg.total)
	var out []verdict
	for next := 0; len(out) < r.cfg.count && next < len(sample); {
		batch := sample[next:min(len(sample), next+min(r.cfg.workers, r.cfg.count-len(out)))]
		next += len(batch)
		if ctx.Err() != nil || time.Now().After(end) {
			fmt.Fprintln(r.log, "stopped before the sample's end")
			return out, nil
		}
		if err := r.measure(ctx, batch); err != nil {
			return nil, err
		}
		done, err := r.runBatch(ctx, batch)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		for _, v := range done {
			if v.Outcome == killed || v.Outcome == survived {
				out = append(out, v)
			}
		}
	}
	return out, nil
}

// runBatch tries a few mutants at once.
func (r *runner) runBatch(ctx context.Context, batch []site) ([]verdict, error) {
	out, errs := make([]verdict, len(batch)), make([]error, len(batch))
	var wg sync.WaitGroup
	var writing sync.Mutex
	for i, s := range batch {
		if r.isKnown(s) {
			out[i], _ = r.book.find(s)
			continue
		}
		wg.Go(func() {
			if out[i], errs[i] = r.try(ctx, s); errs[i] == nil {
				errs[i] = r.book.append(out[i])
				writing.Lock()
				defer writing.Unlock()
				fmt.Fprintf(r.log, "%-8s %s:%d %s (%s)\n", out[i].Outcome, s.File, s.Line, s.Kind, out[i].By)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// isKnown reports whether a mutant has a verdict and is not to be tried again.
func (r *runner) isKnown(s site) bool {
	v, ok := r.book.find(s)
	return ok && (v.Outcome != survived || !r.cfg.retry)
}

// measure runs the tests of unchanged packages with mutants to try once: they must
// pass, and their time is the measure of a mutant's.
func (r *runner) measure(ctx context.Context, batch []site) error {
	for _, s := range batch {
		tester := s.pkg.tester()
		if _, ok := r.base[tester]; ok || r.isKnown(s) {
			continue
		}
		start := time.Now()
		by, err := r.test(ctx, s.pkg, tester, "", filepath.Join(r.temp, "base"), 10*time.Minute)
		if err != nil {
			return err
		}
		if by != "" {
			return fmt.Errorf("the tests of %s fail without a change: %s", tester, by)
		}
		r.base[tester] = time.Since(start)
	}
	return nil
}

// try builds a mutant and runs its tests.
func (r *runner) try(ctx context.Context, s site) (verdict, error) {
	v := verdict{site: s}
	src, err := s.mutant()
	if err != nil {
		return v, err
	}
	dir, err := os.MkdirTemp(r.temp, "mutant")
	if err != nil {
		return v, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, changed := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.go")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {s.path: changed}})
	if err != nil {
		return v, err
	}
	if err := os.WriteFile(changed, src, 0o600); err != nil {
		return v, err
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return v, err
	}
	limit := r.cfg.limit
	if limit == 0 {
		limit = 3*r.base[s.pkg.tester()] + leastLimit
	}
	targets := []string{s.pkg.tester()}
	if inWorld(s.pkg) && r.cfg.second != "none" {
		targets = append(targets, path.Join(s.pkg.Module.Path, world))
		limit = max(limit, 2*time.Minute)
	}
	v.Outcome = survived
	for _, target := range targets {
		by, err := r.test(ctx, s.pkg, target, overlay, dir, limit)
		switch {
		case err != nil:
			return v, err
		case by == notCompiled:
			v.Outcome = rejected
			return v, nil
		case by != "":
			v.Outcome, v.By = killed, by
			return v, nil
		}
	}
	return v, nil
}

// notCompiled is what test says of a mutant that the compiler refuses.
const notCompiled = "does not compile"

// test builds the tests of target and runs them: what refused the mutant, or
// nothing. Files that they leave go with dir.
func (r *runner) test(ctx context.Context, p goPackage, target, overlay, dir string, limit time.Duration) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "tests")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, target)...)
	build.Dir = p.Module.Dir
	if out, err := build.CombinedOutput(); ctx.Err() != nil {
		return "", ctx.Err()
	} else if err != nil && overlay == "" {
		return "", fmt.Errorf("build the tests of %s: %w: %s", target, err, out)
	} else if err != nil {
		return notCompiled, nil
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%s has no tests", target)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	flags := []string{"-test.failfast", "-test.count=1", "-test.timeout=" + limit.String()}
	cmd := exec.CommandContext(timed, binary, flags...)
	cmd.Dir = filepath.Join(p.Module.Dir, strings.TrimPrefix(target, p.Module.Path))
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if strings.HasSuffix(target, "/"+world) {
		cmd.Args = append(cmd.Args, "-test.run=^TestAnySeed$")
		cmd.Env = append(cmd.Env, "POSTERN_SEEDS="+r.cfg.second)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 5*time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case timed.Err() != nil:
		return "time limit", nil
	case err != nil:
		return reason(out.String(), err), nil
	}
	return "", nil
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicked   = regexp.MustCompile(`(?m)^(panic|fatal error): (.{1,80})`)
)

// reason is why a test run failed, in a few characters.
func reason(out string, err error) string {
	if m := failedTest.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	if m := panicked.FindStringSubmatch(out); m != nil {
		return m[0]
	}
	return err.Error()
}
