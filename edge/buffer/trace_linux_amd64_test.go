package buffer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The recorder runs a script in a child process and follows each of its system
// calls with ptrace. Nothing is assumed about bbolt or about our own code: what
// a process asks of the kernel is all that can ever reach a disk, since bbolt
// maps its file read-only. Every write, truncation, creation, rename, removal
// and sync of a file in the directory is logged with its bytes, in order, and so
// are the notes by which the script says what it has been promised (a write to
// descriptor 3). The log is thus exactly what a power cut could meet.

// opKind is a kind of logged operation.
type opKind uint8

const (
	opWrite opKind = iota + 1
	opTruncate
	opCreate
	opRename
	opRemove
	opSync       // all operations on the file before covers are on disk
	opFailedSync // they never will be, though the process still sees them
	opNote
)

type op struct {
	kind   opKind
	inode  int    // of the file; 0 is the directory
	name   string // opCreate, opRename (from), opRemove
	to     string // opRename
	offset int64  // opWrite; opTruncate: the size
	data   []byte // opWrite; opNote
	covers int    // opSync: index into the log at its entry
}

// fault makes a call fail with errno before the kernel sees it; 0 lets it pass.
// n counts calls of that kind on files of the directory, from 1.
type fault func(call uint64, name string, n int) syscall.Errno

type recorder struct {
	t      *testing.T
	dir    string
	fault  fault
	log    []op
	fds    map[uint64]int // descriptor to inode
	inodes map[string]int // name in dir to inode
	files  int
	counts map[uint64]int
	inCall map[int]*pendingCall
}

// pendingCall is what a thread asked for and the kernel has not answered.
type pendingCall struct {
	number uint64
	args   [4]uint64
	index  int  // of its operation in the log, -1 when none
	begun  int  // length of the log at entry
	fresh  bool // openat of a name that did not exist
	path   string
	errno  syscall.Errno // to answer instead of the kernel
}

const wNoThread = 0x20000000

// record runs this test binary with the script's name and returns the log.
func record(t *testing.T, script, dir string, f fault) []op {
	r := &recorder{t: t, dir: dir, fault: f, fds: map[uint64]int{}, inodes: map[string]int{}, counts: map[uint64]int{}, inCall: map[int]*pendingCall{}}
	errs := make(chan error, 1)
	go func() { // ptrace belongs to a thread; the goroutine ends with it
		runtime.LockOSThread()
		errs <- r.run(script)
	}()
	require.NoError(t, <-errs)
	return r.log
}

func (r *recorder) run(script string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	notes, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer notes.Close()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "BUFFER_SCRIPT="+script, "BUFFER_DIR="+r.dir, "GOMAXPROCS=2", "GODEBUG=asyncpreemptoff=1")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.ExtraFiles = []*os.File{notes}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start traced child: %w", err)
	}
	pid := cmd.Process.Pid
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, syscall.WALL, nil); err != nil {
		return fmt.Errorf("wait for traced child: %w", err)
	}
	const options = syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		return fmt.Errorf("ptrace options: %w", err)
	}
	if err := syscall.PtraceSyscall(pid, 0); err != nil {
		return err
	}
	return r.follow(pid)
}

// follow resumes the child's threads from stop to stop until it ends.
func (r *recorder) follow(pid int) error {
	known := map[int]bool{pid: true}
	for {
		var ws syscall.WaitStatus
		tid, err := syscall.Wait4(-1, &ws, syscall.WALL|wNoThread, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for a traced thread: %w", err)
		}
		switch {
		case ws.Exited() || ws.Signaled():
			if tid != pid {
				continue
			}
			if !ws.Exited() || ws.ExitStatus() != 0 {
				return fmt.Errorf("script ended with %#x", uint32(ws))
			}
			return nil
		case !ws.Stopped():
			continue
		}
		sig := ws.StopSignal()
		pass := 0
		switch {
		case sig == syscall.SIGTRAP|0x80:
			if err := r.stop(tid); err != nil {
				return err
			}
		case sig == syscall.SIGTRAP:
		case sig == syscall.SIGSTOP && !known[tid]:
			known[tid] = true
		default:
			pass = int(sig)
		}
		known[tid] = true
		if err := syscall.PtraceSyscall(tid, pass); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("resume: %w", err)
		}
	}
}

// stop handles the entry or the exit of a call.
func (r *recorder) stop(tid int) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		if err == syscall.ESRCH {
			return nil
		}
		return fmt.Errorf("read registers: %w", err)
	}
	if c := r.inCall[tid]; c != nil {
		delete(r.inCall, tid)
		if c.errno != 0 {
			regs.Rax = uint64(-int64(c.errno))
			if err := syscall.PtraceSetRegs(tid, &regs); err != nil {
				return err
			}
		}
		r.exit(c, int64(regs.Rax))
		return nil
	}
	c := &pendingCall{number: regs.Orig_rax, args: [4]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10}, index: -1}
	r.inCall[tid] = c
	if err := r.enter(tid, c); err != nil {
		return err
	}
	if c.errno != 0 {
		regs.Orig_rax = ^uint64(0) // the kernel does nothing
		return syscall.PtraceSetRegs(tid, &regs)
	}
	return nil
}

func (r *recorder) add(o op) int {
	r.log = append(r.log, o)
	return len(r.log) - 1
}

func (r *recorder) enter(tid int, c *pendingCall) error {
	c.begun = len(r.log)
	inode, tracked := r.fds[c.args[0]]
	var err error
	switch c.number {
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		if c.args[0] == 3 {
			var b []byte
			if b, err = memory(tid, c.args[1], int(c.args[2])); err == nil {
				r.add(op{kind: opNote, data: b})
			}
			return err
		}
		if !tracked || c.args[2] == 0 || r.failing(c, inode) {
			return nil
		}
		var b []byte
		if b, err = memory(tid, c.args[1], int(c.args[2])); err != nil {
			return err
		}
		if c.number == syscall.SYS_WRITE {
			return fmt.Errorf("write without an offset to file %d", inode)
		}
		c.index = r.add(op{kind: opWrite, inode: inode, offset: int64(c.args[3]), data: b})
	case syscall.SYS_FTRUNCATE:
		if tracked && !r.failing(c, inode) {
			c.index = r.add(op{kind: opTruncate, inode: inode, offset: int64(c.args[1])})
		}
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		if tracked {
			r.failing(c, inode)
		}
	case syscall.SYS_CLOSE:
		delete(r.fds, c.args[0])
	case syscall.SYS_OPENAT:
		if c.path, err = text(tid, c.args[1]); err == nil && r.inside(c.path) {
			_, serr := os.Lstat(c.path)
			c.fresh = serr != nil && c.args[2]&syscall.O_CREAT != 0
		}
	case unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		from, to := c.args[0], c.args[1]
		if c.number != unix.SYS_RENAME {
			from, to = c.args[1], c.args[3]
		}
		return r.enterRename(tid, c, from, to)
	case unix.SYS_UNLINK, unix.SYS_UNLINKAT:
		at := c.args[0]
		if c.number == unix.SYS_UNLINKAT {
			at = c.args[1]
		}
		if c.path, err = text(tid, at); err == nil && r.inside(c.path) {
			if _, serr := os.Lstat(c.path); serr == nil {
				c.index = r.add(op{kind: opRemove, name: filepath.Base(c.path)})
			}
		}
	}
	return err
}

func (r *recorder) enterRename(tid int, c *pendingCall, from, to uint64) error {
	a, err := text(tid, from)
	if err != nil || !r.inside(a) {
		return err
	}
	b, err := text(tid, to)
	if err != nil {
		return err
	}
	c.index = r.add(op{kind: opRename, name: filepath.Base(a), to: filepath.Base(b)})
	return nil
}

// failing asks the fault and notes its errno.
func (r *recorder) failing(c *pendingCall, inode int) bool {
	if r.fault == nil || inode == 0 {
		return false
	}
	r.counts[c.number]++
	name := ""
	for n, i := range r.inodes {
		if i == inode {
			name = n
		}
	}
	c.errno = r.fault(c.number, name, r.counts[c.number])
	return c.errno != 0
}

func (r *recorder) exit(c *pendingCall, result int64) {
	switch c.number {
	case syscall.SYS_OPENAT:
		r.exitOpen(c, result)
		return
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		inode, tracked := r.fds[c.args[0]]
		switch {
		case !tracked:
		case result == 0:
			r.add(op{kind: opSync, inode: inode, covers: c.begun})
		default:
			r.add(op{kind: opFailedSync, inode: inode, covers: c.begun})
		}
		return
	}
	if c.index < 0 {
		return
	}
	o := &r.log[c.index]
	switch {
	case result < 0:
		o.kind = 0 // it did not happen
	case o.kind == opWrite:
		o.data = o.data[:result]
	case o.kind == opRename:
		r.inodes[o.to] = r.inodes[o.name]
		delete(r.inodes, o.name)
	case o.kind == opRemove:
		delete(r.inodes, o.name)
	}
}

func (r *recorder) exitOpen(c *pendingCall, fd int64) {
	if fd < 0 || c.path == "" {
		return
	}
	delete(r.fds, uint64(fd))
	if filepath.Clean(c.path) == r.dir {
		r.fds[uint64(fd)] = 0
		return
	}
	if !r.inside(c.path) {
		return
	}
	name := filepath.Base(c.path)
	if c.fresh {
		r.files++
		r.inodes[name] = r.files
		r.add(op{kind: opCreate, inode: r.files, name: name})
	}
	inode := r.inodes[name]
	if c.args[2]&syscall.O_TRUNC != 0 && !c.fresh {
		r.add(op{kind: opTruncate, inode: inode})
	}
	if c.args[2]&(syscall.O_WRONLY|syscall.O_RDWR) != 0 {
		r.fds[uint64(fd)] = inode
	}
}

func (r *recorder) inside(path string) bool { return filepath.Dir(filepath.Clean(path)) == r.dir }

// memory copies bytes out of a stopped thread's process.
func memory(tid int, at uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	if n == 0 {
		return b, nil
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(n)
	got, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: n}}, 0)
	if err != nil || got != n {
		return nil, fmt.Errorf("read %d bytes of a traced process, got %d: %w", n, got, err)
	}
	return b, nil
}

// text reads a C string.
func text(tid int, at uint64) (string, error) {
	var out []byte
	for len(out) < 4096 {
		n := 64 - int(at%64) // never across a page that may not be there
		b, err := memory(tid, at, n)
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(append(out, b[:i]...)), nil
		}
		out, at = append(out, b...), at+uint64(n)
	}
	return "", fmt.Errorf("path without an end: %s", strings.ToValidUTF8(string(out[:32]), "?"))
}
