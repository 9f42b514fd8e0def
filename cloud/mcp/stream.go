package mcp

import (
	"bufio"
	"context"
	"math"
	"strconv"
	"sync"
	"time"
)

const (
	// patience is how long a call that could stream may take before it does: a
	// quick one is answered with plain JSON and its own status.
	patience = 100 * time.Millisecond
	// beat is how long a stream is silent before it shows that it lives.
	beat = 15 * time.Second
)

// stream runs a call that may tell how far it is. The call outlives the handler
// of its request: nothing of fasthttp is used but the writer.
func (s *Server) stream(j *job, c *Call, run func(context.Context, *Call) answer) answer {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	frames, gone, done := make(chan []byte), make(chan struct{}), make(chan answer, 1)
	send := func(b []byte) {
		select {
		case frames <- b:
		case <-gone:
		}
	}
	var late <-chan time.Time
	if token := j.meta.get("progressToken"); token != nil {
		c.Progress = progress(token, send)
		wait := time.NewTimer(patience)
		defer wait.Stop()
		late = wait.C
	}
	c.Notify = func(method string, params any) {
		if b, err := encode(notification{"2.0", method, params}); err == nil {
			send(b)
		}
	}
	go func() {
		defer cancel()
		done <- s.guarded(j.request, j.id, func() answer { return run(ctx, c) })
	}()
	var first []byte
	select {
	case a := <-done:
		close(gone)
		return a
	case first = <-frames:
	case <-late:
	}
	return answer{stream: func(w *bufio.Writer) {
		defer close(gone)
		if !relay(w, first, frames, done) && j.modern {
			cancel() // on the legacy wire a lost connection cancels nothing
		}
	}}
}

type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// progress sends reports. Reports without progress are left out.
func progress(token []byte, send func([]byte)) func(done, total float64, message string) {
	var mu sync.Mutex
	var last float64
	began := false
	return func(done, total float64, message string) {
		mu.Lock()
		defer mu.Unlock()
		if began && done <= last || math.IsNaN(done) || math.IsInf(done, 0) {
			return
		}
		began, last = true, done
		b := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), token...)
		b = strconv.AppendFloat(append(b, `,"progress":`...), done, 'f', -1, 64)
		if total > 0 && !math.IsInf(total, 0) {
			b = strconv.AppendFloat(append(b, `,"total":`...), total, 'f', -1, 64)
		}
		if message != "" {
			b = quote(append(b, `,"message":`...), message)
		}
		send(append(b, "}}"...))
	}
}

// relay writes frames and then the answer. It reports whether the client took
// everything.
func relay(w *bufio.Writer, first []byte, frames <-chan []byte, done <-chan answer) bool {
	silence := time.NewTicker(beat)
	defer silence.Stop()
	if first != nil && !frame(w, first) {
		return false
	}
	for {
		select {
		case b := <-frames:
			if !frame(w, b) {
				return false
			}
			silence.Reset(beat)
		case a := <-done:
			return frame(w, a.body)
		case <-silence.C:
			if _, err := w.WriteString(":\n\n"); err != nil || w.Flush() != nil {
				return false
			}
		}
	}
}

// frame writes one message of an event stream.
func frame(w *bufio.Writer, message []byte) bool {
	_, _ = w.WriteString("event: message\ndata: ")
	_, _ = w.Write(message)
	_, _ = w.WriteString("\n\n") // a writer that failed once keeps failing
	return w.Flush() == nil
}
