package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/postern-io/postern/cmd/internal/postgres"
	"github.com/postern-io/postern/cmd/internal/truth"
)

const (
	clusterSize = 3               // nodes that deploy/cluster/haproxy.cfg names
	restart     = 3 * time.Second // before a process of the cloud that ended is started again
)

// nodes are the processes of the cloud: one, or with --cluster three behind a balancer and
// on a PostgreSQL server of their own. One that ends is started again, as an init system does.
type nodes struct {
	s        *stage
	cfg      childConfig
	all      []*process
	balancer *process         // nil: none
	db       *postgres.Server // nil: none of ours
	leave    context.CancelFunc
	kept     sync.WaitGroup
	failed   atomic.Int64 // ends that no kill and no stop explains
}

// newNodes prepares the processes that serve cfg, and starts the database if there is one
// to start. With cluster, cfg's addresses are the balancer's.
func newNodes(ctx context.Context, s *stage, cfg childConfig, cluster bool) (*nodes, error) {
	n := &nodes{s: s, cfg: cfg, leave: func() {}}
	if !cluster {
		n.all = []*process{newChild("cloud", cfg)}
		return n, nil
	}
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		return n, errors.New("haproxy is not installed: install the package haproxy")
	}
	settings, err := findUpwards(filepath.Join("deploy", "cluster", "haproxy.cfg"))
	if err != nil {
		return n, err
	}
	if cfg.Database == "" {
		if err := n.startDatabase(ctx); err != nil {
			return n, err
		}
	}
	env := append(os.Environ(), "HTTP_BIND="+cfg.HTTP, "MQTT_BIND="+cfg.MQTT)
	for i := 1; i <= clusterSize; i++ {
		c := n.cfg
		c.Node, c.Balanced = fmt.Sprintf("node%d", i), true
		c.Log = filepath.Join(n.s.dir, c.Node+".log")
		if c.HTTP, err = free(""); err != nil {
			return n, err
		}
		if c.MQTT, err = free(""); err != nil {
			return n, err
		}
		_, port, err := net.SplitHostPort(c.HTTP)
		if err != nil {
			return n, err
		}
		env = append(env, fmt.Sprintf("NODE%d_HTTP=%s", i, c.HTTP), fmt.Sprintf("NODE%d_MQTT=%s", i, c.MQTT), fmt.Sprintf("NODE%d_CHECK=%s", i, port))
		n.all = append(n.all, newChild(c.Node, c))
	}
	n.balancer = &process{name: "balancer", command: func() (*exec.Cmd, error) {
		cmd := exec.Command(haproxy, "-db", "-q", "-f", settings)
		cmd.Env = env
		return cmd, nil
	}}
	return n, nil
}

// startDatabase starts a server in the demo's folder.
func (n *nodes) startDatabase(ctx context.Context) (err error) {
	if err = os.Chmod(n.s.dir, 0o711); err != nil { // PostgreSQL may have a user of its own
		return err
	}
	if n.db, err = postgres.New(ctx, n.s.dir); err != nil {
		return err
	}
	if err = n.db.Start(ctx); err != nil {
		return err
	}
	n.cfg.Database = postgres.Address(n.db)
	return n.db.CreateDatabase(ctx)
}

// findUpwards finds a file of the repository from the folder that this program runs in.
func findUpwards(path string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		at := filepath.Join(dir, path)
		if _, err := os.Stat(at); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return at, err
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not found: run the demo in the repository's folder", path)
		}
		dir = filepath.Dir(dir)
	}
}

// start starts the processes, and again whenever one has ended.
func (n *nodes) start() error {
	ctx, leave := context.WithCancel(context.Background())
	n.leave = leave
	for _, p := range n.processes() {
		if err := p.start(); err != nil {
			return err
		}
		n.kept.Go(func() { n.keepRunning(ctx, p) })
	}
	return nil
}

func (n *nodes) processes() []*process {
	if n.balancer == nil {
		return n.all
	}
	return append(n.all[:len(n.all):len(n.all)], n.balancer)
}

// keepRunning starts a process again whenever it has ended, until ctx ends.
func (n *nodes) keepRunning(ctx context.Context, p *process) {
	for ; ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		how, ended := p.ended()
		if !ended {
			continue
		}
		if !wasKilled(how) {
			n.failed.Add(1)
			n.s.logStory("power", "%s ended by itself: %v", p.name, how)
		}
		for sleep(ctx, restart); ctx.Err() == nil; sleep(ctx, restart) {
			if err := p.start(); err != nil {
				n.s.logStory("power", "%v", err)
				continue
			}
			n.s.logStory("power", "%s starts again", p.name)
			break
		}
	}
}

// wasKilled reports whether a process ended by a signal that it cannot refuse.
func wasKilled(how error) bool {
	var exit *exec.ExitError
	if !errors.As(how, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}

// killAll kills every node. They start again by themselves.
func (n *nodes) killAll() {
	for _, p := range n.all {
		p.signal(os.Kill)
	}
}

// killOne kills one of several nodes after a while, unless ctx ends before.
func (n *nodes) killOne(ctx context.Context) (stop func()) {
	if len(n.all) < 2 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	p, after := n.all[n.s.rnd.IntN(len(n.all))], time.Duration(n.s.rnd.Int64N(int64(6*time.Second)))
	var done sync.WaitGroup
	done.Go(func() {
		if sleep(ctx, after); ctx.Err() != nil || p.id() == 0 {
			return
		}
		p.signal(os.Kill)
		n.s.logStory("power", "%s is killed", p.name)
	})
	return func() { cancel(); done.Wait() }
}

// end ends nodes and balancer in order. The database stays.
func (n *nodes) end() {
	n.leave()
	n.kept.Wait()
	var ended sync.WaitGroup
	for _, p := range n.all {
		ended.Go(func() { p.end(syscall.SIGTERM) })
	}
	ended.Wait()
	if n.balancer != nil {
		n.balancer.end(syscall.SIGTERM)
	}
}

// close ends everything.
func (n *nodes) close() error {
	n.end()
	if n.db == nil {
		return nil
	}
	return n.db.Stop()
}

// outages are the times in which a delivery in flight may have been cut off.
func (n *nodes) outages() (out []truth.Span) {
	for _, p := range n.processes() {
		for _, run := range p.ran() {
			out = append(out, truth.Span{At: run.Until, Until: run.Until.Add(10 * time.Second), What: p.name})
		}
	}
	return out
}

// table lists nodes and processes for someone who wants to kill some.
func (n *nodes) table() string {
	var b strings.Builder
	for _, p := range n.processes() {
		fmt.Fprintf(&b, "  %-9s process %d\n", p.name, p.id())
	}
	return b.String()
}
