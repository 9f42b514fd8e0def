// Command cluster starts a deployment of several nodes on this machine, to try it: one
// PostgreSQL server, three nodes of the cloud with the sandbox, and HAProxy as
// deploy/cluster/haproxy.cfg has it. It prints addresses and process ids. A node or a
// balancer that ends or is killed is started again after two seconds. Ctrl-C ends
// everything in order and removes the folder. It runs in the root of the repository:
//
//	go run ./cmd/internal/cluster
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/postern-io/postern/cmd/internal/postgres"
)

const (
	pause   = 2 * time.Second  // before a program that ended is started again
	patient = 60 * time.Second // how long starts and ends may take
	look    = 100 * time.Millisecond
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}

// run runs the deployment until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	web := flags.String("http", "127.0.0.1:8080", "where the balancer listens for HTTP; another port is taken when this one is in use")
	mqtt := flags.String("mqtt", "127.0.0.1:1883", "where the balancer listens for devices, likewise")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := &cluster{out: stdout}
	if c.haproxy, err = exec.LookPath("haproxy"); err != nil {
		return errors.New("haproxy is not installed: install the package haproxy")
	}
	if c.dir, err = os.MkdirTemp("", "postern-cluster-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if err := os.Chmod(c.dir, 0o711); err != nil { // PostgreSQL may have a user of its own
		return err
	}
	if err := c.choose(*web, *mqtt); err != nil {
		return err
	}
	db, err := postgres.New(ctx, c.dir)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, db.Stop()) }()
	fmt.Fprintln(c.out, "PostgreSQL starts, and the cloud is built, which takes minutes the first time …")
	if err := c.prepare(ctx, db); err != nil {
		return unlessEnded(ctx, err)
	}
	return c.serve(ctx)
}

// cluster is what the programs have in common. Its fields stay as they are once programs
// run; prints may come from any goroutine.
type cluster struct {
	out       io.Writer
	dir       string
	haproxy   string
	web, mqtt string
	nodes     []node
	email     string // of the sandbox's administrator, and
	password  string
	database  string
}

type node struct{ name, web, mqtt string }

// choose finds the addresses.
func (c *cluster) choose(web, mqtt string) (err error) {
	if c.web, err = freeAddress(web); err != nil {
		return err
	}
	if c.mqtt, err = freeAddress(mqtt); err != nil {
		return err
	}
	for i := range 3 {
		n := node{name: fmt.Sprintf("node%d", i+1)}
		if n.web, err = freeAddress(""); err != nil {
			return err
		}
		if n.mqtt, err = freeAddress(""); err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

// freeAddress is wanted, or an address of the loopback below the ports that systems give
// to outgoing connections, so that it stays free between two starts of a program.
func freeAddress(wanted string) (string, error) {
	for range 100 {
		if wanted != "" {
			if ln, err := net.Listen("tcp", wanted); err == nil {
				return ln.Addr().String(), ln.Close()
			}
		}
		wanted = fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
	}
	return "", errors.New("no port of 127.0.0.1 is free")
}

// prepare starts the database, builds the program, and fills in the sandbox.
func (c *cluster) prepare(ctx context.Context, db *postgres.Server) error {
	if err := db.Start(ctx); err != nil {
		return err
	}
	if err := db.CreateDatabase(ctx); err != nil {
		return err
	}
	c.database = postgres.Address(db)
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", c.file("cloud"), "./cmd/cloud")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the cloud, in the root of the repository: %w: %s", err, out)
	}
	if err := os.WriteFile(c.file("database"), []byte(c.database+"\n"), 0o600); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := os.WriteFile(c.file(n.name+".yaml"), []byte(c.settings(n)), 0o600); err != nil {
			return err
		}
	}
	out, err := exec.CommandContext(ctx, c.file("cloud"), "demo-data", "--config", c.file(c.nodes[0].name+".yaml"), "--log-level", "error").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return fmt.Errorf("make the sandbox: %w", err)
	}
	var box struct {
		Admin struct{ Email, Password string }
	}
	if err := json.Unmarshal(out, &box); err != nil {
		return fmt.Errorf("read the sandbox: %w", err)
	}
	c.email, c.password = box.Admin.Email, box.Admin.Password
	return os.WriteFile(c.file("sandbox.json"), out, 0o600)
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// settings are those of a node: all share keys, files and database, and believe the
// balancer who calls.
func (c *cluster) settings(n node) string {
	return fmt.Sprintf("node: %s\nlisten: %s\nbase_url: http://%s\nmqtt: {listen: %q, brokers: [%q]}\ndata: %s\ndatabase_file: %s\nproxies: {trusted: [127.0.0.1], protocol: [listen, mqtt.listen]}\n",
		n.name, n.web, c.web, n.mqtt, "tcp://"+c.mqtt, c.file("data"), c.file("database"))
}

// serve runs nodes and balancer until ctx ends, and then ends the nodes before the
// balancer.
func (c *cluster) serve(ctx context.Context) (err error) {
	var kept, balanced sync.WaitGroup
	front, endFront := context.WithCancel(context.WithoutCancel(ctx))
	defer balanced.Wait()
	defer endFront()
	back, endBack := context.WithCancel(ctx)
	defer kept.Wait()
	defer endBack()

	env := append(os.Environ(), "HTTP_BIND="+c.web, "MQTT_BIND="+c.mqtt)
	table := ""
	for i, n := range c.nodes {
		_, port, err := net.SplitHostPort(n.web)
		if err != nil {
			return err
		}
		env = append(env, fmt.Sprintf("NODE%d_HTTP=%s", i+1, n.web), fmt.Sprintf("NODE%d_MQTT=%s", i+1, n.mqtt), fmt.Sprintf("NODE%d_CHECK=%s", i+1, port))
		pid, err := c.keepRunning(back, &kept, program{name: n.name, path: c.file("cloud"), args: []string{"--config", c.file(n.name + ".yaml")}})
		if err != nil {
			return err
		}
		table += fmt.Sprintf("  %-9s http://%s   MQTT %s   process %d\n", n.name, n.web, n.mqtt, pid)
	}
	pid, err := c.keepRunning(front, &balanced, program{name: "balancer", path: c.haproxy, args: []string{"-db", "-f", filepath.Join("deploy", "cluster", "haproxy.cfg")}, env: env})
	if err != nil {
		return err
	}
	table += fmt.Sprintf("  %-9s process %d\n", "balancer", pid)
	for _, n := range c.nodes {
		if err := c.await(ctx, n.name, n.web); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	if err := c.await(ctx, "balancer", c.web); err != nil {
		return unlessEnded(ctx, err)
	}
	c.greet(table)
	<-ctx.Done()
	fmt.Fprintln(c.out, "Nodes, balancer and PostgreSQL end in order …")
	return nil
}

// unlessEnded is err, or nil when the person ended the program meanwhile.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *cluster) greet(table string) {
	fmt.Fprintf(c.out, `
Three nodes serve behind a balancer.

  Console   http://%s/console   (log in as %s, password %s)
  MQTT      %s
  Database  %s
  Folder    %s   (logs, settings; tokens and passwords are in sandbox.json)

%s
Kill any of them: kill -9 PROCESS. It is started again after two seconds.
A cabinet, after make build, each line in a terminal of its own:

  bin/firmware-sim --config configs/cabinet.yaml --tcp 127.0.0.1:7001
  bin/edge --config configs/edge.yaml --data %s --secrets %s

Ctrl-C ends everything and removes the folder.

`, c.web, c.email, c.password, c.mqtt, c.database, c.dir, table, c.file("edge"), c.file("data/devices/CAB-1001.json"))
}

// program is a program that is kept running.
type program struct {
	name, path string
	args, env  []string
}

// keepRunning starts a program, and again after a pause whenever it has ended, until ctx ends:
// then the program is asked to end, and kept is done when it has. It gives the process id
// of the first start.
func (c *cluster) keepRunning(ctx context.Context, kept *sync.WaitGroup, p program) (pid int, err error) {
	cmd, err := c.start(ctx, p)
	if err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	kept.Go(func() {
		err := cmd.Wait()
		for ctx.Err() == nil {
			fmt.Fprintf(c.out, "%s ended: %v. It is started again in %s.\n", p.name, describe(err), pause)
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			var next *exec.Cmd
			if next, err = c.start(ctx, p); err == nil {
				fmt.Fprintf(c.out, "%s runs again: process %d\n", p.name, next.Process.Pid)
				err = next.Wait()
			}
		}
		if !inOrder(err) {
			fmt.Fprintf(c.out, "%s did not end in order: %v\n", p.name, err)
		}
	})
	return pid, nil
}

// inOrder reports whether a program that was asked to end did so: HAProxy ends by the
// signal itself.
func inOrder(err error) bool {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		return ok && status.Signal() == syscall.SIGTERM
	}
	return err == nil || errors.Is(err, context.Canceled)
}

// describe is how a program ended.
func describe(err error) string {
	if err == nil {
		return "by itself"
	}
	return err.Error()
}

// start starts a program whose output goes to its log. It is of a process group of its
// own, so that Ctrl-C does not reach it.
func (c *cluster) start(ctx context.Context, p program) (*exec.Cmd, error) {
	log, err := os.OpenFile(c.file(p.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patient
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return cmd, nil
}

// await waits until an address says that it serves. Error: it does not, with the end of
// the program's log.
func (c *cluster) await(ctx context.Context, name, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	for {
		err := askReady(ctx, "http://"+address+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(c.file(name + ".log")) // the error is the other one
			return fmt.Errorf("%s does not serve: %w\n%s", name, err, log[max(0, len(log)-2000):])
		case <-time.After(look):
		}
	}
}

// askReady is nil when an address answers 200.
func askReady(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	return nil
}
