package board

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"go.bug.st/serial"
)

// Port is a line's byte stream. Read returns zero bytes without an error when
// the timeout passed, and an error when the adapter is gone. Read and Write may
// run at the same time, and Close ends a Read.
type Port interface {
	io.ReadWriteCloser
	SetReadTimeout(time.Duration) error
}

// Opener opens a line's port.
type Opener func(ctx context.Context, l LineConfig) (Port, error)

// OpenPort is the default Opener: tcp://host:port is a connection, everything
// else a serial device of 8 data bits, no parity, 1 stop bit.
func OpenPort(ctx context.Context, l LineConfig) (Port, error) {
	if addr, ok := strings.CutPrefix(l.Port, "tcp://"); ok {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("open line %q: %w", l.Name, err)
		}
		return ConnPort(conn), nil
	}
	p, err := serial.Open(l.Port, &serial.Mode{
		BaudRate: l.speed(), DataBits: 8, Parity: serial.NoParity, StopBits: serial.OneStopBit,
	})
	if err != nil {
		return nil, fmt.Errorf("open line %q at %s: %w", l.Name, l.Port, err)
	}
	return p, nil
}

func (l LineConfig) speed() int {
	if l.Baud > 0 || len(l.Boards) == 0 {
		return l.Baud
	}
	return l.Boards[0].Family.Baud()
}

// ConnPort makes a connection behave like a serial port.
func ConnPort(c net.Conn) Port { return &connPort{Conn: c} }

type connPort struct {
	net.Conn
	timeout time.Duration // 0 is none; set before the first Read
}

func (p *connPort) SetReadTimeout(d time.Duration) error {
	p.timeout = max(d, 0)
	return nil
}

func (p *connPort) Read(b []byte) (int, error) {
	var until time.Time
	if p.timeout > 0 {
		until = time.Now().Add(p.timeout)
	}
	if err := p.SetReadDeadline(until); err != nil {
		return 0, err
	}
	n, err := p.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, nil
	}
	return n, err
}

// Write gives up after a second: a peer that does not read is as good as gone.
func (p *connPort) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// intake moves a port's bytes into a channel, so that a line can wait for bytes,
// requests and time at once. Bytes that find the channel full are lost, as in a
// serial chip's buffer; framing finds its way back.
type intake struct {
	bytes  chan []byte
	broken chan struct{} // closed when the port failed; err is then set
	err    error
}

func startIntake(p Port) (*intake, error) {
	if err := p.SetReadTimeout(500 * time.Millisecond); err != nil {
		return nil, err
	}
	in := &intake{bytes: make(chan []byte, 64), broken: make(chan struct{})}
	go in.run(p)
	return in, nil
}

func (in *intake) run(p Port) {
	defer close(in.broken)
	buf := make([]byte, 512)
	for {
		n, err := p.Read(buf)
		if n > 0 {
			select {
			case in.bytes <- append([]byte(nil), buf[:n]...):
			default:
			}
		}
		if err != nil {
			in.err = err
			return
		}
	}
}
