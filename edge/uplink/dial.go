package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"github.com/postern-io/postern/internal/loopback"
	"github.com/postern-io/postern/protocol/wire"
)

// dialer opens a connection to a broker.
type dialer func(ctx context.Context, addr *url.URL, conf *tls.Config) (net.Conn, error)

// dialers by the scheme of an address.
var dialers = map[string]dialer{
	"tcp": dialPlain, "mqtt": dialPlain,
	"ssl": dialTLS, "tls": dialTLS, "mqtts": dialTLS,
	"ws": dialWebSocket, "wss": dialWebSocket,
}

func (u *Uplink) dial(ctx context.Context, addr *url.URL) (net.Conn, error) {
	conf := u.cfg.TLS
	if conf == nil {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return dialers[addr.Scheme](ctx, addr, conf)
}

func dialPlain(ctx context.Context, addr *url.URL, _ *tls.Config) (net.Conn, error) {
	if !loopback.IsHost(addr.Hostname()) {
		return nil, fmt.Errorf("connection to %s without TLS: only the loopback is allowed", addr.Host)
	}
	return dialTCP(ctx, addr.Host)
}

// dialTCP keeps the system's own buffer at about one batch, so that it does not
// hold back what just happened either.
func dialTCP(ctx context.Context, host string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(wire.MaxPayload) // only a wish
	}
	return c, nil
}

func dialTLS(ctx context.Context, addr *url.URL, conf *tls.Config) (net.Conn, error) {
	c, err := dialTCP(ctx, addr.Host)
	if err != nil {
		return nil, err
	}
	if conf.ServerName == "" && !conf.InsecureSkipVerify {
		conf = conf.Clone()
		conf.ServerName = addr.Hostname()
	}
	t := tls.Client(c, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return t, nil
}

func dialWebSocket(ctx context.Context, addr *url.URL, conf *tls.Config) (net.Conn, error) {
	if addr.Scheme == "ws" && !loopback.IsHost(addr.Hostname()) {
		return nil, fmt.Errorf("connection to %s without TLS: only the loopback is allowed", addr.Host)
	}
	wait := connectTimeout
	if d, ok := ctx.Deadline(); ok {
		wait = time.Until(d)
	}
	return mqtt.NewWebsocket(addr.String(), conf, wait, nil, nil)
}
