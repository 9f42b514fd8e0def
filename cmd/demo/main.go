// Command demo shows all of Postern on one machine: a cloud, two cabinets with
// boards of different makers, a kiosk, a webhook receiver that verifies
// signatures, a shop system that fails and recovers, a driver and a recipient who
// talk about an order, and a day that goes wrong in every way it can: cut cables, a door
// left open, a jammed lock, a killed agent, a killed cloud. With --cluster the cloud is three
// nodes behind a balancer, of which one or the other is killed all day long.
//
// A guest can touch it: a parcel waits with its code printed, and pages show the
// simulated cabinets and let the guest's hands at their doors, network and power
// while the days go on.
//
// Cloud and agents are processes of their own, so that killing one is real. The
// boards are simulated here, and so what physically happened is known: at the
// end of the day the demo compares it with what the cloud stored and what the
// receiver got.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/postern-io/postern/cmd/internal/cli"
)

// flags are the command line.
type flags struct {
	Once     bool   `help:"Play one day, compare, and exit: 0 only if everything agrees."`
	JSON     bool   `name:"json" help:"With --once: print one JSON object with the counts instead of the story."`
	Seed     uint64 `default:"1" help:"Chance of the day: which doors, how long people take."`
	Listen   string `default:"127.0.0.1:8080" help:"Where the cloud's pages and API listen; another port is taken when this one is in use."`
	Dir      string `type:"path" help:"Keep data here instead of in a temporary folder that is removed at the end."`
	Database string `placeholder:"URL" help:"Keep the cloud's rows in this PostgreSQL database, postgres://…, which must be empty; otherwise they are in a file."`
	Cluster  bool   `help:"Run three nodes of the cloud behind HAProxy, on a PostgreSQL server of their own unless --database names one, and kill a node in every act. HAProxy and PostgreSQL must be installed."`
	Version  bool   `help:"Print the version and exit."`
}

func main() {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(child(role))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

var errDisagree = errors.New("the simulators, the cloud and the receiver do not agree")

func run(ctx context.Context, args []string, out, stderr io.Writer) error {
	var f flags
	_, err := cli.Parse(&f, "demo", "Show Postern on this machine: cloud, cabinets, kiosk, webhook receiver, and a day in their life.", args, out, stderr)
	if errors.Is(err, cli.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.Version {
		return cli.PrintVersion(out, "demo")
	}
	story := out
	if f.JSON {
		story = io.Discard
	}
	return play(ctx, f, story, out)
}

// play tells the story of the days, and at the end what was counted.
func play(ctx context.Context, f flags, story, out io.Writer) error {
	s := newStage(f, story)
	defer s.close()
	if err := s.build(ctx); err != nil {
		return err
	}
	s.greet()
	if !f.Once {
		return s.live(ctx)
	}
	if err := (script{s}).day(ctx); err != nil {
		return err
	}
	t, err := reckoning{s}.compare(ctx)
	if err != nil {
		return err
	}
	if f.JSON {
		if err := json.NewEncoder(out).Encode(t); err != nil {
			return fmt.Errorf("print counts: %w", err)
		}
	} else {
		t.print(out)
	}
	if !t.agrees() {
		return errDisagree
	}
	return nil
}

// live plays day after day until it is stopped, obeys what is typed, and compares
// at the end.
func (s *stage) live(ctx context.Context) error {
	go s.obey(os.Stdin)
	go s.guest.watch(ctx)
	for n := 1; ctx.Err() == nil; n++ {
		s.logStory("day", "day %d begins", n)
		if err := (script{s}).day(ctx); err != nil && ctx.Err() == nil {
			s.logStory("day", "this day did not go by the script: %v", err)
		}
		if ctx.Err() != nil {
			break
		}
		s.logStory("day", "day %d is over; the next begins in a moment. Ctrl-C ends the demo", n)
		s.restock(ctx)
		sleep(ctx, 20*time.Second)
	}
	s.logStory("day", "stopping; what is on its way arrives first")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*time.Minute)
	defer cancel()
	if err := s.finish(last); err != nil {
		return err
	}
	t, err := reckoning{s}.compare(last)
	if err != nil {
		return err
	}
	t.print(s.out)
	if !t.consistent() {
		return errDisagree
	}
	return nil
}

// obey does what is typed: "cut FRONT-01", "mend FRONT-01".
func (s *stage) obey(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		verb, code, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		found := false
		for _, c := range s.cabinets {
			if c.code != code || verb != "cut" && verb != "mend" {
				continue
			}
			found = true
			c.cable.set(verb == "cut")
			s.guest.noteAct(code, map[string]string{"cut": "network_off", "mend": "network_on"}[verb], 0)
		}
		if !found && verb != "" {
			s.logStory("demo", "type cut CODE or mend CODE, with a cabinet's code")
		}
	}
}
