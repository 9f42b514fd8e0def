package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/postern-io/postern/firmware-sim/board"
)

// openTruth reads the facts that a file holds into the cabinet's past, and lets
// it keep every further one there before anything else happens. A last line that
// a kill cut off is dropped.
func openTruth(name string, cfg *board.Config) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open truth: %w", err)
	}
	whole := int64(0)
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var fact board.Fact
		if err := json.Unmarshal(line, &fact); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("read truth at byte %d: %w", whole, err)
		}
		cfg.Past = append(cfg.Past, fact)
		whole += int64(len(line))
	}
	if err := f.Truncate(whole); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cut truth: %w", err)
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("seek in truth: %w", err)
	}
	before := cfg.OnFact
	cfg.OnFact = func(fact board.Fact) {
		line, err := json.Marshal(fact)
		if err == nil {
			_, err = f.Write(append(line, '\n'))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "firmware-sim: keep truth:", err)
			os.Exit(1) // a truth with a hole would judge wrongly
		}
		if before != nil {
			before(fact)
		}
	}
	return f, nil
}

// obey does what each line of in says and answers with a line.
func obey(c *board.Cabinet, in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer := "ok"
		if err := c.Do(lines.Text()); err != nil {
			answer = err.Error()
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return
		}
	}
}
