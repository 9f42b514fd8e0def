package mqttbroker

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// Bounds of a request for a WebSocket.
const (
	headWait = 5 * time.Second
	maxHead  = 16 << 10
)

// ServeWebSocket takes MQTT over WebSocket on path /mqtt from ln until Close, as
// Serve does.
func (b *Broker) ServeWebSocket(ln net.Listener, config *tls.Config) error {
	ln, err := b.secure(ln, config)
	if err != nil {
		return err
	}
	up := websocket.Upgrader{Subprotocols: []string{"mqtt"}, ReadBufferSize: 2048, WriteBufferSize: 2048,
		// Any page may connect: what counts is the login inside, not a cookie.
		CheckOrigin: func(*http.Request) bool { return true }}
	mux := http.NewServeMux()
	mux.HandleFunc("/mqtt", func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return // Upgrade has answered
		}
		c.SetReadLimit(maxPacket)
		conn := &wsConn{Conn: c.NetConn(), ws: c, remote: c.RemoteAddr()}
		if b.cfg.Caller != nil {
			conn.remote = b.cfg.Caller(r)
		}
		if err := b.ServeConn(conn); err != nil {
			b.cfg.Log.Debug("websocket client left", "remote", conn.remote, "err", err)
		}
	})
	// The deadlines end with the upgrade.
	s := &http.Server{Handler: mux, ReadHeaderTimeout: headWait, ReadTimeout: loginWait, WriteTimeout: loginWait, MaxHeaderBytes: maxHead,
		ErrorLog: slog.NewLogLogger(b.cfg.Log.Handler(), slog.LevelDebug)}
	s.SetKeepAlivesEnabled(false) // there is one thing to ask for here
	if !b.addCloser(s) {
		return errors.Join(errClosed, ln.Close())
	}
	b.wg.Go(func() {
		if err := s.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			b.cfg.Log.Error("serve MQTT over WebSocket", "addr", ln.Addr().String(), "err", err)
		}
	})
	return nil
}

// wsConn is a byte stream over binary WebSocket messages.
type wsConn struct {
	net.Conn
	ws     *websocket.Conn
	r      io.Reader
	remote net.Addr // of the caller
}

func (c *wsConn) RemoteAddr() net.Addr { return c.remote }

func (c *wsConn) Read(p []byte) (int, error) {
	for {
		if c.r == nil {
			kind, r, err := c.ws.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errClosed
			}
			c.r = r
		}
		n, err := c.r.Read(p)
		if errors.Is(err, io.EOF) {
			c.r = nil
			if n == 0 {
				continue
			}
			err = nil
		}
		return n, err
	}
}

func (c *wsConn) Write(p []byte) (int, error) {
	if err := c.ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *wsConn) Close() error { return c.ws.Close() }
