package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/postern-io/postern/edge"
)

// pulseTrace appends each pulse and the act that allows it to a file, one JSON
// object a line, before the pulse is sent: for tests that hold every pulse
// against what people were allowed to open.
type pulseTrace struct {
	log *slog.Logger

	mu   sync.Mutex // two lines may pulse at once
	file *os.File
}

// openPulseTrace opens the file name for appending; it makes it when it is not
// there, readable by its owner alone.
func openPulseTrace(name string, log *slog.Logger) (*pulseTrace, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open pulse_trace: %w", err)
	}
	return &pulseTrace{log: log, file: f}, nil
}

// append writes one line in one write. A line that cannot be written is logged;
// the pulse goes on.
func (p *pulseTrace) append(t edge.PulseTrace) {
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

func (p *pulseTrace) close() error { return p.file.Close() }
