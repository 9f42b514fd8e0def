//go:build !linux

package board

import "errors"

// PTY needs linux.
type PTY struct{ Path string }

// OpenPTY fails: pseudo-terminals are played on linux only; use TCP.
func OpenPTY() (*PTY, error) {
	return nil, errors.New("open pseudo-terminal: only on linux; use TCP")
}

func (p *PTY) Read([]byte) (int, error)  { return 0, errors.ErrUnsupported }
func (p *PTY) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close does nothing.
func (p *PTY) Close() error { return nil }
