package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/truth"
)

// pulses is the file of the agent's trace.
func (c *cabinet) pulses() string { return filepath.Join(c.s.dir, c.code+".pulses.jsonl") }

// checkDay hands the day to the oracle: what the boards know against what
// all others say.
func (s reckoning) checkDay(ctx context.Context, cl *server.Server, recorded int) (truth.Verdict, error) {
	c := truth.Case{Final: true, Recorded: uint64(recorded), Unscripted: !s.flags.Once}
	for _, x := range s.cabinets {
		b, err := x.part()
		if err != nil {
			return truth.Verdict{}, err
		}
		c.Cabinets = append(c.Cabinets, b)
	}
	var err error
	if c.Cloud, err = truth.Read(ctx, cl, s.box.ProviderCaller.Provider.ID, c.Cabinets); err != nil {
		return truth.Verdict{}, err
	}
	s.mu.Lock()
	c.Acts = s.acts
	s.mu.Unlock()
	c.Outages = s.cloud.outages()
	return truth.Judge(c), nil
}

// part is a cabinet's share of the case.
func (c *cabinet) part() (truth.Cabinet, error) {
	b := truth.Cabinet{Code: c.code, WallClock: true, Facts: c.sim.Truth(), Sensors: true}
	for i, run := range c.proc.ran() {
		b.Boots = append(b.Boots, truth.Boot{N: uint64(i + 1), Start: run.At, End: run.Until})
	}
	var err error
	if err = b.ReadStore(filepath.Join(c.s.dir, c.code, "edge.db")); err != nil {
		return b, err
	}
	raw, err := os.ReadFile(c.pulses())
	if err != nil {
		return b, fmt.Errorf("read trace of %s: %w", c.code, err)
	}
	for line := range strings.Lines(string(raw)) {
		var p truth.Pulse
		if !strings.HasSuffix(line, "\n") {
			break // a kill cut it off before its pulse
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			return b, fmt.Errorf("read trace of %s: %w", c.code, err)
		}
		b.Pulses = append(b.Pulses, p)
	}
	return b, nil
}
