//go:build !linux

package scanner

import (
	"errors"

	"github.com/postern-io/postern/edge/board"
)

// openInput is for Linux alone.
func openInput(string) (board.Port, error) {
	return nil, errors.New("open keyboard: a port of input: needs Linux; use the scanner as a serial device or tcp://host:port")
}
