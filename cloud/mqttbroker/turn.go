package mqttbroker

import (
	"net"
	"sync"
	"time"
)

// turns lets the connections of one client follow each other. The library ends a
// connection by dropping what it knows of its client id, subscriptions included,
// even when a newer connection has taken the id over meanwhile: that one would be
// connected and receive nothing. So a login waits until the connection before it
// has ended altogether.
type turns struct {
	mu      sync.Mutex
	conns   map[net.Conn]*turn
	clients map[string]*turn // newest by client id
}

// turn is one connection, from its begin to its end.
type turn struct {
	conn   net.Conn
	client string // "" before its login
	over   chan struct{}
}

func newTurns() *turns {
	return &turns{conns: map[net.Conn]*turn{}, clients: map[string]*turn{}}
}

// begin notes a connection; end has to be called when it has been served.
func (t *turns) begin(c net.Conn) *turn {
	x := &turn{conn: c, over: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[c] = x
	return x
}

func (t *turns) end(x *turn) {
	t.mu.Lock()
	delete(t.conns, x.conn)
	if t.clients[x.client] == x {
		delete(t.clients, x.client)
	}
	t.mu.Unlock()
	close(x.over)
}

// follow makes a connection the newest of a client: it closes the one before and
// waits until that has ended, at most as long as a login may take.
func (t *turns) follow(c net.Conn, client string) {
	t.mu.Lock()
	x, before := t.conns[c], t.clients[client]
	if x == nil || x == before {
		t.mu.Unlock()
		return
	}
	x.client, t.clients[client] = client, x
	t.mu.Unlock()
	if before == nil {
		return
	}
	_ = before.conn.Close()
	limit := time.NewTimer(loginWait)
	defer limit.Stop()
	select {
	case <-before.over:
	case <-limit.C:
	}
}
