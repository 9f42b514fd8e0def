// Program firmware-sim plays a locker cabinet's controller boards, so that an
// agent can be tried without hardware: over pseudo-terminals, which the agent
// opens like serial ports, or over TCP.
//
//	firmware-sim                                  8 doors, one line at 127.0.0.1:7001, and a page on which people touch the doors
//	firmware-sim --layout large                   the same with 24 doors
//	firmware-sim --link /tmp/cabinet              the line is a pseudo-terminal under a stable name
//	firmware-sim --tcp 127.0.0.1:7001             the first line on this port, others on the next ones
//	firmware-sim --page 127.0.0.1:7090            another address of the page
//	firmware-sim --config cabinet.yaml --script day.txt --seed 42 --fault flip_bit=0.01
//
// It prints one line per thing that really happens, and when it is stopped with
// Ctrl-C the whole truth as JSON, one fact per line, on standard output.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/shell"
	"github.com/postern-io/postern/protocol/wiring"
)

type options struct {
	Config  string             `help:"Cabinet to play, YAML or JSON. Without it: one of --layout, at addresses that are printed." placeholder:"FILE"`
	Layout  string             `default:"" enum:",small,medium,large" help:"Cabinet to play without --config: small (8 doors), medium (12) or large (24) on one CU48B board, as the cloud's set-up page offers them. Default: small."  placeholder:"NAME"`
	Script  string             `help:"What happens and when; one 'TIME ACTION ARGUMENTS' per line." placeholder:"FILE"`
	TCP     *string            `help:"Serve lines on TCP from this address on, the next line on the next port; empty: on pseudo-terminals. Default: 127.0.0.1:7001, or another port when that is taken; with --config or --link pseudo-terminals." placeholder:"HOST:PORT"`
	Link    string             `help:"Keep a symbolic link to the line's pseudo-terminal here, also when the adapter comes back under another name. With several lines, -NAME is added." placeholder:"PATH"`
	Page    *string            `help:"Serve a page here on which people see the doors and touch them: close, jam, free, force, put a parcel in, cut the power; empty: none. The host is 127.0.0.1. Default: 127.0.0.1:7080, or another port when that is taken; with --config none." placeholder:"HOST:PORT"`
	Seed    uint64             `help:"Seed of all chance; 0 takes the configuration's." placeholder:"N"`
	Fault   map[string]float64 `help:"Chance of a fault per request, for example flip_bit=0.01. Repeat, or separate with semicolons. --faults lists them." placeholder:"NAME=CHANCE"`
	Person  bool               `help:"Someone stands in front, uses every door that opens and closes it."`
	Truth   string             `help:"Keep every fact in this file, one JSON line each, as it happens, and go on from what it holds: doors and boxes outlive the program." placeholder:"FILE"`
	Stdin   bool               `help:"Do what standard input says, at once: one 'ACTION ARGUMENTS' per line, in the words of a script. Each is answered by a line, ok or the error, on standard output."`
	Quiet   bool               `help:"Do not print what happens; print only the truth at the end."`
	Faults  bool               `help:"List all faults and stop."`
	Check   bool               `help:"Check configuration and script and stop."`
	Print   bool               `help:"Print the configuration as YAML and stop: a start for a file of your own."`
	Version bool               `help:"Print the version and stop."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "firmware-sim:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opt, err := parse(args, stdout, stderr)
	if errors.Is(err, cli.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case opt.Version:
		return cli.PrintVersion(stdout, "firmware-sim")
	case opt.Faults:
		for _, f := range board.AllFaults() {
			if _, err := fmt.Fprintln(stdout, f); err != nil {
				return err
			}
		}
		return nil
	}
	cfg, script, err := load(opt)
	if err != nil {
		return err
	}
	switch {
	case opt.Print:
		return yaml.NewEncoder(stdout).Encode(cfg)
	case opt.Check:
		_, err = fmt.Fprintf(stdout, "in order: %d boards, %d doors, %d script steps\n", len(cfg.Boards), len(cfg.Doors), len(script))
		return err
	}
	return play(ctx, opt, cfg, script, stdout, stderr)
}

func parse(args []string, stdout, stderr io.Writer) (opt options, err error) {
	_, err = cli.Parse(&opt, "firmware-sim", "Plays a locker cabinet's controller boards over a pseudo-terminal or TCP.", args, stdout, stderr)
	return opt, err
}

// layout is the cabinet that is played when none is described.
func (opt options) layout() wiring.Template {
	t, _ := wiring.Find(cmp.Or(opt.Layout, wiring.Templates()[0].Name)) // the flag has one of their names
	return t
}

// builtin is a layout with the board that it means.
func builtin(t wiring.Template) board.Config {
	cfg := board.Config{Seed: 1, Boards: []board.Board{{Name: wiring.Board, Line: wiring.Line, Family: wiring.Family}}}
	for n := uint(1); n <= uint(t.Doors()); n++ {
		cfg.Doors = append(cfg.Doors, board.Door{Number: n, Board: wiring.Board, Channel: n})
	}
	return cfg
}

func load(opt options) (cfg board.Config, script board.Script, err error) {
	if opt.Config == "" {
		cfg = builtin(opt.layout())
	} else if opt.Layout != "" {
		return cfg, nil, errors.New("--layout is for a cabinet without --config; the file describes its own")
	} else {
		if cfg, err = readConfig(opt.Config); err != nil {
			return cfg, nil, err
		}
	}
	if opt.Seed != 0 {
		cfg.Seed = opt.Seed
	}
	for name, p := range opt.Fault {
		if cfg.Faults == nil {
			cfg.Faults = board.Faults{}
		}
		cfg.Faults[board.Fault(name)] = p
	}
	if opt.Person && cfg.Person == nil {
		cfg.Person = &board.Person{}
	}
	if err := cfg.Check(); err != nil {
		return cfg, nil, err
	}
	if opt.Script == "" {
		return cfg, nil, nil
	}
	f, err := os.Open(opt.Script)
	if err != nil {
		return cfg, nil, fmt.Errorf("open script: %w", err)
	}
	defer f.Close()
	if script, err = board.ParseScript(f); err != nil {
		return cfg, nil, err
	}
	return cfg, script, cfg.CheckScript(script)
}

// readConfig reads YAML, of which JSON is a part. Unknown keys are refused.
func readConfig(name string) (cfg board.Config, err error) {
	err = cli.ReadYAML(name, &cfg)
	return cfg, err
}

func lineNames(cfg board.Config) (names []string) {
	seen := map[string]bool{}
	for _, b := range cfg.Boards {
		if !seen[b.Line] {
			seen[b.Line], names = true, append(names, b.Line)
		}
	}
	sort.Strings(names)
	return names
}

// play runs the cabinet until ctx ends, then prints the truth.
func play(ctx context.Context, opt options, cfg board.Config, script board.Script, stdout, stderr io.Writer) error {
	var mu sync.Mutex // one line at a time on stderr
	say := func(format string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(stderr, format+"\n", a...)
	}
	if !opt.Quiet {
		cfg.OnFact = func(f board.Fact) { say("%s", f) }
	}
	if opt.Truth != "" {
		truth, err := openTruth(opt.Truth, &cfg)
		if err != nil {
			return err
		}
		defer truth.Close()
	}
	c, err := board.New(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	begin := func(serve func(context.Context) error, err error) bool {
		if err != nil {
			cancel(err)
			return false
		}
		wg.Go(func() {
			if err := serve(ctx); err != nil {
				cancel(err)
			}
		})
		return true
	}
	at := opt.places()
	if at.page != "" {
		begin(preparePage(at, c, opt.sizes(), say))
	}
	names := lineNames(cfg)
	for i, name := range names {
		if !begin(prepare(opt.Link, at, c, name, i, len(names), say)) {
			break
		}
	}
	wg.Go(func() {
		if err := c.Play(ctx, script); err != nil {
			say("%v", err)
		} else if len(script) > 0 && ctx.Err() == nil {
			say("script is over; the cabinet goes on (Ctrl-C ends it)")
		}
	})
	if opt.Stdin {
		go obey(c, os.Stdin, stdout)
	}
	<-ctx.Done()
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	if opt.Truth != "" || opt.Stdin {
		return nil
	}
	return printTruth(stdout, c.Truth())
}

func printTruth(w io.Writer, facts []board.Fact) error {
	enc := json.NewEncoder(w)
	for _, f := range facts {
		if err := enc.Encode(f); err != nil {
			return fmt.Errorf("print truth: %w", err)
		}
	}
	return nil
}

type sayer func(format string, a ...any)

// prepare opens a line's first port, so that its address is known at once.
func prepare(link string, at places, c *board.Cabinet, name string, i, lines int, say sayer) (func(context.Context) error, error) {
	if at.tcp != "" {
		return prepareTCP(at, c, name, i, say)
	}
	if link != "" && lines > 1 {
		link += "-" + name
	}
	p, err := plugIn(name, link, say)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return servePTY(ctx, c, name, link, p, say) }, nil
}

func prepareTCP(at places, c *board.Cabinet, name string, i int, say sayer) (func(context.Context) error, error) {
	addr := at.tcp
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("address %q: port: %w", addr, err)
	}
	if n > 0 {
		n += uint64(i)
	}
	ln, err := listen(net.JoinHostPort(host, strconv.FormatUint(n, 10)), at.anyLine)
	if err != nil {
		return nil, fmt.Errorf("line %q: %w", name, cli.InUse(err, "--tcp"))
	}
	say("line %s is at tcp://%s", name, ln.Addr())
	if at.next {
		sayNext("tcp://"+ln.Addr().String(), say)
	}
	return func(ctx context.Context) error { return c.ServeTCP(ctx, name, ln) }, nil
}

// agentData is where an agent without settings keeps its secrets and its store.
const agentData = "data/edge"

// sayNext says how an agent is started on a line: once it is enrolled, which an agent
// without its folder is not.
func sayNext(line string, say sayer) {
	edge := cli.Sibling("edge")
	if _, err := os.Stat(agentData); errors.Is(err, os.ErrNotExist) {
		say("no cabinet is enrolled here yet (there is no %s): run %s with the line of the cabinet on the cloud's set-up page, or on the cabinet's page", agentData, shell.Command(edge, "enrol"))
	}
	say("next: %s", shell.Command(edge, "--line", line))
}

// plugIn makes a pseudo-terminal and points the link at it.
func plugIn(name, link string, say sayer) (*board.PTY, error) {
	p, err := board.OpenPTY()
	if err != nil {
		return nil, err
	}
	where := p.Path
	if link != "" {
		if err := relink(p.Path, link); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		where = link + " -> " + p.Path
	}
	say("line %s is at %s", name, where)
	return p, nil
}

// relink replaces a symbolic link in one step; anything else there is left
// alone.
func relink(target, link string) error {
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("link %s: there is something else that is not a link", link)
	}
	next := link + ".new"
	if err := os.Symlink(target, next); err != nil {
		return fmt.Errorf("link %s: %w", link, err)
	}
	if err := os.Rename(next, link); err != nil {
		return errors.Join(fmt.Errorf("link %s: %w", link, err), os.Remove(next))
	}
	return nil
}

// servePTY serves a line, and after the adapter was unplugged, again on another
// pseudo-terminal.
func servePTY(ctx context.Context, c *board.Cabinet, name, link string, p *board.PTY, say sayer) error {
	if link != "" {
		defer os.Remove(link)
	}
	for {
		err := c.ServeLine(ctx, name, p)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, board.ErrUnplugged) {
			return err
		}
		say("line %s: %s", name, strings.TrimSpace(board.ErrUnplugged.Error()))
		back, _ := c.Plugged(name)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(back)):
		}
		if p, err = plugIn(name, link, say); err != nil {
			return err
		}
	}
}
