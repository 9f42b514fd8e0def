package mqttbroker

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
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
		if err := b.ServeConn(&wsConn{Conn: c.NetConn(), ws: c}); err != nil {
			b.cfg.Log.Debug("websocket client left", "remote", c.RemoteAddr(), "err", err)
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	if !b.keep(s) {
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
	ws *websocket.Conn
	r  io.Reader
}

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
