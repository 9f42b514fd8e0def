// Command mutate asks whether tests would notice a fault: it changes one place of
// a package at a time (a mutant), runs the tests, and lists the changes that no
// test refused (survivors).
//
//	go run ./cmd/internal/mutate -seed 1 -n 300 ./edge/locker ./cloud/auth
//
// Sites are found with go/parser and a seeded sample of them is tried, in the
// order of the sample. No file of the tree changes: a mutant is compiled with an
// overlay. A mutant that does not compile is replaced by the next of the sample.
// The package's own tests run first, or those of its parent when it has none; what
// survives them meets the simulated world (cmd/e2e, 20 seeds) when the package is
// part of it.
//
// Verdicts are appended to a file as they come, and a second run with that file
// goes on where the first stopped. A verdict holds while its source file stays as
// it was; -retry tries survivors again, for tests that are new.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"
)

// config is what the flags say.
type config struct {
	dir      string // of the module
	seed     uint64
	count    int
	verdicts string
	retry    bool
	json     bool
	workers  int
	total    time.Duration
	limit    time.Duration
	second   string
	match    *regexp.Regexp // of FILE:LINE KIND; nil: all
	packages []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string, stderr io.Writer) (cfg config, err error) {
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Uint64Var(&cfg.seed, "seed", 1, "seed of the sample")
	f.IntVar(&cfg.count, "n", 100, "how many mutants that compile")
	f.StringVar(&cfg.verdicts, "verdicts", "", "file of verdicts, appended to; none: every run starts anew")
	f.BoolVar(&cfg.retry, "retry", false, "try the survivors of the file again")
	f.BoolVar(&cfg.json, "json", false, "print the verdicts as JSON")
	f.IntVar(&cfg.workers, "p", 1, "mutants at once")
	f.DurationVar(&cfg.total, "for", time.Hour, "when to start no further mutant")
	f.DurationVar(&cfg.limit, "limit", 0, "of one test run; 0: three times what the unchanged package takes, and 20s")
	match := f.String("match", "", "only sites whose FILE:LINE KIND matches this expression, such as 'gate.go:13. '")
	f.StringVar(&cfg.second, "second", "1-20", "seeds of cmd/e2e for survivors of packages that it runs; none: no second stage")
	if err := f.Parse(args); err != nil {
		return cfg, err
	}
	cfg.packages = f.Args()
	if *match != "" {
		if cfg.match, err = regexp.Compile(*match); err != nil {
			return cfg, fmt.Errorf("-match: %w", err)
		}
	}
	switch {
	case len(cfg.packages) == 0:
		return cfg, errors.New("name at least one package, such as ./cloud/auth")
	case cfg.count < 1 || cfg.workers < 1:
		return cfg, fmt.Errorf("-n and -p must be 1 or more: they are %d and %d", cfg.count, cfg.workers)
	}
	return cfg, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return runMutants(ctx, cfg, stdout, stderr)
}

// runMutants tries the sample and prints the report.
func runMutants(ctx context.Context, cfg config, stdout, stderr io.Writer) error {
	packages, err := listPackages(ctx, cfg.dir, cfg.packages)
	if err != nil {
		return err
	}
	var sites []site
	for _, p := range packages {
		found, err := findSites(p)
		if err != nil {
			return err
		}
		sites = append(sites, found...)
	}
	sites = slices.DeleteFunc(sites, func(s site) bool {
		return cfg.match != nil && !cfg.match.MatchString(fmt.Sprintf("%s:%d %s", s.File, s.Line, s.Kind))
	})
	if len(sites) == 0 {
		return errors.New("no site of these packages can change, or none matches")
	}
	book, err := openVerdicts(cfg.verdicts)
	if err != nil {
		return err
	}
	defer book.close()
	r := &runner{cfg: cfg, log: stderr, book: book, base: map[string]time.Duration{}}
	if r.temp, err = os.MkdirTemp("", "mutate"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.temp) }()
	sample := shuffle(sites, cfg.seed)
	done, err := r.runSample(ctx, sample)
	if err != nil {
		return err
	}
	return printReport(stdout, done, len(sites), cfg)
}
