// Package pulses keeps an agent's trace of pulses in a file, for tests and the
// demo.
package pulses

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/postern-io/postern/edge"
)

// Trace appends each pulse and the act that allows it to a file, one JSON
// object a line, before the pulse is sent: for tests that hold every pulse
// against what people were allowed to open.
type Trace struct {
	log *slog.Logger

	mu   sync.Mutex // two lines may pulse at once
	file *os.File
}

// Open opens the file name for appending; it makes it when it is not
// there, readable by its owner alone.
func Open(name string, log *slog.Logger) (*Trace, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open pulse_trace: %w", err)
	}
	return &Trace{log: log, file: f}, nil
}

// Append writes one line in one write. A line that cannot be written is logged;
// the pulse goes on.
func (p *Trace) Append(t edge.PulseTrace) {
	line, err := json.Marshal(t)
	if err == nil {
		p.mu.Lock()
		_, err = p.file.Write(append(line, '\n'))
		p.mu.Unlock()
	}
	if err != nil {
		p.log.Error("write pulse trace", "door", t.Door, "act", t.Act, "err", err)
	}
}

// Close closes the file.
func (p *Trace) Close() error { return p.file.Close() }
