package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/postern-io/postern/edge/access"
)

// cable is the network between a cabinet and the cloud: a relay that can be
// cut in the middle of anything. A cut ends what is connected; a connection that is
// tried then gets no answer until the cable is mended, as on a dead line.
type cable struct {
	ln net.Listener
	to string

	mu     sync.Mutex
	cut    bool
	closed bool
	held   int        // connections that wait for the mending
	mended *sync.Cond // on mu
	conns  map[net.Conn]bool
}

func newCable(to string) (*cable, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lay cable: %w", err)
	}
	c := &cable{ln: ln, to: to, conns: map[net.Conn]bool{}}
	c.mended = sync.NewCond(&c.mu)
	go c.run()
	return c, nil
}

func (c *cable) run() {
	for {
		here, err := c.ln.Accept()
		if err != nil {
			return // closed
		}
		go c.connect(here)
	}
}

// connect relays one connection, once the cable is whole.
func (c *cable) connect(here net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++
	for c.cut && !c.closed {
		c.mended.Wait()
	}
	c.held--
	there, err := net.Dial("tcp", c.to)
	if err != nil || c.closed {
		_ = here.Close()
		return
	}
	c.conns[here], c.conns[there] = true, true
	go c.pass(here, there)
	go c.pass(there, here)
}

func (c *cable) pass(from, to net.Conn) {
	_, _ = io.Copy(to, from) // either end leaving ends both
	_, _ = from.Close(), to.Close()
	c.mu.Lock()
	delete(c.conns, from)
	delete(c.conns, to)
	c.mu.Unlock()
}

// set cuts or mends the cable.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	c.mended.Broadcast()
	if cut {
		for x := range c.conns {
			_ = x.Close()
		}
	}
}

func (c *cable) isCut() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.cut }

func (c *cable) close() {
	_ = c.ln.Close()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.set(true)
}

// secrets copies a device's secrets file with this cable's end as the address.
func (c *cable) secrets(path string) (string, error) {
	var s access.Secrets
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return "", fmt.Errorf("read secrets: %w", err)
	}
	s.Brokers = []string{"tcp://" + c.ln.Addr().String()}
	if b, err = json.Marshal(s); err != nil {
		return "", fmt.Errorf("encode secrets: %w", err)
	}
	out := filepath.Join(filepath.Dir(path), s.DeviceCode+".cable.json")
	return out, os.WriteFile(out, b, 0o600)
}
