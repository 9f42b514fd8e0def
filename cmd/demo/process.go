package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/postern-io/postern/cmd/internal/truth"
)

// process is a program that can be killed and started again.
type process struct {
	name    string
	command func() (*exec.Cmd, error)

	mu   sync.Mutex
	cmd  *exec.Cmd
	over chan error   // how cmd ended, once it did
	runs []truth.Span // the last one's end is zero while it runs
}

// newChild is this program once more, in a role.
func newChild(name string, cfg childConfig) *process {
	return &process{name: name, command: func() (*exec.Cmd, error) {
		b, err := json.Marshal(cfg)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		path := filepath.Join(filepath.Dir(cfg.Log), name+".role.json")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		cmd.Stderr = os.Stderr
		return cmd, nil
	}}
}

// start starts the process, unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	cmd, err := p.command()
	if err != nil {
		return err
	}
	// A process group of its own: Ctrl-C ends the demo, and the demo its children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	p.runs = append(p.runs, truth.Span{At: began, What: p.name})
	p.cmd, p.over = cmd, over
	return nil
}

// signal sends a signal to the process, if it runs, and does not wait for what it does.
func (p *process) signal(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(sig) // one that has ended needs none
	}
}

// end stops the process with a signal and waits for it.
func (p *process) end(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.over: // how it ended is in its log
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.over
	}
	p.gone()
}

// ended reports whether the process ended other than by end, and how.
func (p *process) ended() (how error, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil, false
	}
	select {
	case how = <-p.over:
		p.gone()
		return how, true
	default:
		return nil, false
	}
}

// gone notes the end. p.mu is held.
func (p *process) gone() {
	p.cmd = nil
	p.runs[len(p.runs)-1].Until = time.Now()
}

// id is the process id, 0 while it does not run.
func (p *process) id() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// ran lists when the process ran.
func (p *process) ran() []truth.Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.runs)
}

// free finds an address of the loopback without a listener: the wanted one, or one below
// the ports that systems give to outgoing connections, so that it stays free between two
// starts of a program.
func free(wanted string) (string, error) {
	for range 100 {
		if wanted != "" {
			if ln, err := net.Listen("tcp", wanted); err == nil {
				return strings.Replace(ln.Addr().String(), "[::]", "127.0.0.1", 1), ln.Close()
			}
		}
		wanted = fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
	}
	return "", errors.New("no free port on 127.0.0.1")
}
