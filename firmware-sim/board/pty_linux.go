package board

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// PTY is a pseudo-terminal in raw mode: the cabinet's side is an
// io.ReadWriteCloser, the agent opens Path like a serial port. The agent may
// leave and come back; Close is the adapter being unplugged.
type PTY struct {
	Path   string
	master *os.File
	slave  *os.File // held open, or reading would fail while no agent is there
}

// OpenPTY makes a new pseudo-terminal.
func OpenPTY() (*PTY, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open pseudo-terminal: %w", err)
	}
	var number uint32
	err = control(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		number = n
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unlock pseudo-terminal: %w", err), master.Close())
	}
	path := fmt.Sprintf("/dev/pts/%d", number)
	slave, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open pseudo-terminal: %w", err), master.Close())
	}
	if err := control(slave, makeRaw); err != nil {
		return nil, errors.Join(fmt.Errorf("set %s to raw mode: %w", path, err), slave.Close(), master.Close())
	}
	return &PTY{Path: path, master: master, slave: slave}, nil
}

func (p *PTY) Read(b []byte) (int, error)  { return p.master.Read(b) }
func (p *PTY) Write(b []byte) (int, error) { return p.master.Write(b) }

// Close takes the pseudo-terminal away; an agent that has it open gets an
// error. Closing twice is an error.
func (p *PTY) Close() error { return errors.Join(p.master.Close(), p.slave.Close()) }

func makeRaw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// control runs do on a file's descriptor without taking the file out of the
// runtime's poller, so that Close still ends a Read.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
