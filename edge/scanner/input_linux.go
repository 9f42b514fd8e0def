package scanner

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-io/postern/edge/board"
)

// evGrab is EVIOCGRAB of linux/input.h, _IOW('E', 0x90, int).
const evGrab = 0x40044590

// openInput opens a keyboard for this process alone: what it types reaches no
// screen and no console.
func openInput(path string) (board.Port, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open keyboard: %w", err)
	}
	raw, err := f.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) { err = unix.IoctlSetInt(int(fd), evGrab, 1) })
		err = errors.Join(err, cerr)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("grab keyboard %s; another program may have it: %w", path, err), f.Close())
	}
	return &inputPort{File: f}, nil
}

// inputPort is a keyboard as a port that nothing is written to.
type inputPort struct {
	*os.File
	keys    keyboard
	typed   []byte // and not read yet
	timeout time.Duration
}

func (p *inputPort) SetReadTimeout(d time.Duration) error {
	p.timeout = d
	return nil
}

// Read gives what was typed.
func (p *inputPort) Read(b []byte) (int, error) {
	events := make([]byte, 64*eventSize)
	until := time.Now().Add(p.timeout)
	for len(p.typed) == 0 {
		if err := p.SetReadDeadline(until); err != nil {
			return 0, err
		}
		n, err := p.File.Read(events)
		p.typed = p.keys.decode(p.typed, events[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(b, p.typed)
	p.typed = p.typed[:copy(p.typed, p.typed[n:])]
	return n, nil
}
