package board

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Script is what happens to a cabinet and when, in order of time. Its text form
// has one step per line; # begins a comment:
//
//	TIME ACTION [ARGUMENTS]
//
//	2s      push 3               pulse lock 3 by hand
//	+500ms  close 3              a + counts from the step before
//	5s      fault A silence 4    fault NAME on board A, the next 4 chances
//	8s      unplug main 3s       take line "main" away for 3 s
//
// Actions on doors: push, pull, close, slam, force, put, take, jam, free, each
// with a door number, and "relatch DOOR N". On boards: "reset BOARD" and
// "fault BOARD FAULT N". On lines: "unplug LINE DURATION". Through an open door:
// "insert DOOR ITEM" and "empty DOOR", which fail when it is shut.
type Script []Step

// Step is one action.
type Step struct {
	After  time.Duration // since the start of the script
	Action string
	Args   []string
}

// doorActions are actions whose only argument is a door.
func doorAction(name string) func(*Cabinet, uint) error {
	switch name {
	case "push":
		return (*Cabinet).Push
	case "pull":
		return (*Cabinet).Pull
	case "close":
		return (*Cabinet).CloseDoor
	case "slam":
		return (*Cabinet).Slam
	case "force":
		return (*Cabinet).Force
	case "put":
		return (*Cabinet).PutItem
	case "take":
		return (*Cabinet).TakeItem
	case "jam":
		return (*Cabinet).Jam
	case "free":
		return (*Cabinet).Free
	case "empty":
		return func(c *Cabinet, n uint) error { _, err := c.TakeOut(n); return err }
	}
	return nil
}

// ParseScript reads a script's text form.
func ParseScript(r io.Reader) (Script, error) {
	var s Script
	var last time.Duration
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		step, err := parseStep(words, last)
		if err != nil {
			return nil, fmt.Errorf("script line %d: %w", n, err)
		}
		last = step.After
		s = append(s, step)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return s, nil
}

func parseStep(words []string, last time.Duration) (Step, error) {
	if len(words) < 2 {
		return Step{}, fmt.Errorf("want TIME ACTION, got %q", words[0])
	}
	at, err := time.ParseDuration(strings.TrimPrefix(words[0], "+"))
	if err != nil {
		return Step{}, fmt.Errorf("time %q: %w", words[0], err)
	}
	if strings.HasPrefix(words[0], "+") {
		at += last
	}
	if at < last {
		return Step{}, fmt.Errorf("%s is before the step above, at %s", at, last)
	}
	step := Step{After: at, Action: words[1], Args: words[2:]}
	_, err = step.bind()
	return step, err
}

// bind turns a step into what it does, or says what is wrong with it.
func (s Step) bind() (func(*Cabinet) error, error) {
	want := map[string]int{"relatch": 2, "reset": 1, "fault": 3, "unplug": 2, "insert": 2}[s.Action]
	door := doorAction(s.Action)
	if door != nil {
		want = 1
	}
	if want == 0 {
		return nil, fmt.Errorf("unknown action %q", s.Action)
	}
	if len(s.Args) != want {
		return nil, fmt.Errorf("%s takes %d arguments, got %d", s.Action, want, len(s.Args))
	}
	switch s.Action {
	case "reset":
		return func(c *Cabinet) error { return c.ResetBoard(s.Args[0]) }, nil
	case "fault":
		n, err := strconv.Atoi(s.Args[2])
		if err != nil {
			return nil, fmt.Errorf("fault count %q: %w", s.Args[2], err)
		}
		f := Fault(s.Args[1])
		return func(c *Cabinet) error { return c.Inject(s.Args[0], f, n) }, Faults{f: 1}.Check()
	case "unplug":
		d, err := time.ParseDuration(s.Args[1])
		if err != nil {
			return nil, fmt.Errorf("unplug for %q: %w", s.Args[1], err)
		}
		return func(c *Cabinet) error { return c.Unplug(s.Args[0], d) }, nil
	}
	number, err := strconv.ParseUint(s.Args[0], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("door %q: %w", s.Args[0], err)
	}
	if s.Action == "insert" {
		return func(c *Cabinet) error { return c.Put(uint(number), s.Args[1]) }, nil
	}
	if s.Action == "relatch" {
		n, err := strconv.Atoi(s.Args[1])
		if err != nil {
			return nil, fmt.Errorf("relatch count %q: %w", s.Args[1], err)
		}
		return func(c *Cabinet) error { return c.RelatchNext(uint(number), n) }, nil
	}
	return func(c *Cabinet) error { return door(c, uint(number)) }, nil
}

// Do does one action now, in the words of a script without its time:
// "close 3". The error says what was wrong with it, or that it could not be done.
func (c *Cabinet) Do(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return errors.New("no action")
	}
	do, err := (Step{Action: words[0], Args: words[1:]}).bind()
	if err != nil {
		return err
	}
	return do(c)
}

// CheckScript reports the first step that names a door, board or line that the
// configuration does not have.
func (c Config) CheckScript(s Script) error {
	for _, step := range s {
		known := false
		switch step.Action {
		case "reset", "fault":
			for _, b := range c.Boards {
				known = known || b.Name == step.Args[0]
			}
		case "unplug":
			for _, b := range c.Boards {
				known = known || b.Line == step.Args[0]
			}
		default:
			for _, d := range c.Doors {
				known = known || strconv.FormatUint(uint64(d.Number), 10) == step.Args[0]
			}
		}
		if !known {
			return fmt.Errorf("script at %s: %s %s: the cabinet has no such part", step.After, step.Action, step.Args[0])
		}
	}
	return nil
}

// Play runs a script from now until its end or ctx's. It returns the first
// step's error that could not be done.
func (c *Cabinet) Play(ctx context.Context, s Script) error {
	start := time.Now()
	for _, step := range s {
		do, err := step.bind()
		if err != nil {
			return fmt.Errorf("script at %s: %w", step.After, err)
		}
		if !sleep(ctx, time.Until(start.Add(step.After))) {
			return nil
		}
		if err := do(c); err != nil {
			return fmt.Errorf("script at %s: %w", step.After, err)
		}
	}
	return nil
}
