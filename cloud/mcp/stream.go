package mcp

import (
	"bufio"
	"context"
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

// stream runs a call that tells how far it is. The call outlives the handler
// of its request: nothing of fasthttp is used but the writer.
func (s *Server) stream(j *job, c *Call, token []byte, run func(context.Context, *Call) answer) answer {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	frames, gone, done := make(chan []byte), make(chan struct{}), make(chan answer, 1)
	c.Progress = progress(token, frames, gone)
	go func() {
		defer cancel()
		done <- run(ctx, c)
	}()
	var first []byte
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case a := <-done:
		close(gone)
		return a
	case first = <-frames:
	case <-wait.C:
	}
	return answer{stream: func(w *bufio.Writer) {
		defer close(gone)
		if !relay(w, first, frames, done) && j.modern {
			cancel() // on the legacy wire a lost connection cancels nothing
		}
	}}
}

// progress makes frames of reports. Those that are no progress are left out.
func progress(token []byte, frames chan<- []byte, gone <-chan struct{}) func(done, total float64, message string) {
	var mu sync.Mutex
	var last float64
	began := false
	return func(done, total float64, message string) {
		mu.Lock()
		defer mu.Unlock()
		if began && done <= last {
			return
		}
		began, last = true, done
		b := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), token...)
		b = strconv.AppendFloat(append(b, `,"progress":`...), done, 'f', -1, 64)
		if total > 0 {
			b = strconv.AppendFloat(append(b, `,"total":`...), total, 'f', -1, 64)
		}
		if message != "" {
			b = quote(append(b, `,"message":`...), message)
		}
		select {
		case frames <- append(b, "}}"...):
		case <-gone:
		}
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
