package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Outcomes of a mutant.
const (
	killed   = "killed"
	survived = "survived"
	rejected = "rejected" // it does not compile, and counts for nothing
)

// verdict is what became of a mutant.
type verdict struct {
	site
	Outcome string `json:"outcome"`
	By      string `json:"by,omitempty"` // the test, or why else the run failed
}

// verdicts are those of a file, and of this run. Safe for concurrent use.
type verdicts struct {
	mu    sync.Mutex
	known map[string]verdict // by site's id
	file  *os.File           // nil: nothing is kept
}

// openVerdicts reads the file and opens it for more. A last line that is torn,
// from a run that was killed, is dropped.
func openVerdicts(path string) (*verdicts, error) {
	b := &verdicts{known: map[string]verdict{}}
	if path == "" {
		return b, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	whole := bytes.LastIndexByte(raw, '\n') + 1
	lines := bufio.NewScanner(bytes.NewReader(raw[:whole]))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s line %d is no verdict: %w", path, n, err)
		}
		b.known[v.id()] = v
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if b.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if err = b.file.Truncate(int64(whole)); err == nil {
		_, err = b.file.Seek(int64(whole), 0)
	}
	return b, err
}

func (b *verdicts) find(s site) (verdict, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.known[s.id()]
	return v, ok
}

func (b *verdicts) append(v verdict) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[v.id()] = v
	if b.file == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = b.file.Write(append(raw, '\n'))
	return err
}

func (b *verdicts) close() {
	if b.file != nil {
		_ = b.file.Close()
	}
}
