package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/server"
)

// listeners are the sockets of a node, all open before anything else starts.
type listeners struct {
	server.Listeners
	http net.Listener
}

func listen(s settings) (ln listeners, err error) {
	if s.TLS.Cert != "" {
		cert, err := tls.LoadX509KeyPair(s.TLS.Cert, s.TLS.Key)
		if err != nil {
			return ln, fmt.Errorf("read tls.cert and tls.key: %w", err)
		}
		ln.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	for _, x := range []struct {
		setting, addr string
		at            *net.Listener
	}{{"listen", s.Listen, &ln.http}, {"mqtt.listen", s.MQTT.Listen, &ln.MQTT}, {"mqtt.tls_listen", s.MQTT.TLSListen, &ln.MQTTTLS}, {"mqtt.ws_listen", s.MQTT.WSListen, &ln.WebSocket}} {
		if x.addr == "" {
			continue
		}
		if *x.at, err = net.Listen("tcp", x.addr); err != nil {
			return ln, errors.Join(fmt.Errorf("listen (%s): %w", x.setting, err), ln.close())
		}
	}
	return ln, nil
}

func (ln listeners) close() error {
	var errs []error
	for _, l := range []net.Listener{ln.http, ln.MQTT, ln.MQTTTLS, ln.WebSocket} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

func address(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// Limits of the HTTP listener.
const (
	maxBody   = 1 << 20
	httpWait  = 10 * time.Second
	readyWait = 2 * time.Second
)

// serveOps answers what whoever runs the node asks, until stop is called.
func (ln listeners) serveOps(srv *server.Server, log *slog.Logger) (stop func() error) {
	if ln.http == nil {
		return func() error { return nil }
	}
	// MaxConnsPerIP stays unset: with it fasthttp 1.74 hands connections back to
	// a pool on shutdown while their readers still use them.
	h := &fasthttp.Server{Handler: ops(srv), Name: "", NoDefaultServerHeader: true, MaxRequestBodySize: maxBody, ReadTimeout: httpWait, WriteTimeout: httpWait, IdleTimeout: time.Minute,
		Concurrency: 1024, Logger: quiet{log}}
	done := make(chan error, 1)
	go func() { done <- h.Serve(ln.http) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), httpWait)
		defer cancel()
		return errors.Join(h.ShutdownWithContext(ctx), <-done)
	}
}

// ops is /healthz, /readyz and /metrics.
func ops(srv *server.Server) fasthttp.RequestHandler {
	return func(r *fasthttp.RequestCtx) {
		if !r.IsGet() && !r.IsHead() {
			r.Error("use GET", fasthttp.StatusMethodNotAllowed)
			return
		}
		switch string(r.Path()) {
		case "/healthz":
			r.SetBodyString("ok\n")
		case "/readyz":
			ready(r, srv)
		case "/metrics":
			metrics(r, srv)
		default:
			r.Error("not found", fasthttp.StatusNotFound)
		}
	}
}

// ready says whether the database answers.
func ready(r *fasthttp.RequestCtx, srv *server.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWait)
	defer cancel()
	if _, err := srv.Store.ListSessions(ctx, 0, 1); err != nil {
		r.Error("the database does not answer", fasthttp.StatusServiceUnavailable)
		return
	}
	r.SetBodyString("ready\n")
}

func metrics(r *fasthttp.RequestCtx, srv *server.Server) {
	text, err := metricsText(srv)
	if err != nil {
		r.Error("metrics could not be gathered", fasthttp.StatusInternalServerError)
		return
	}
	r.SetContentType(string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	r.SetBody(text)
}

func metricsText(srv *server.Server) ([]byte, error) {
	families, err := srv.Metrics.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// quiet keeps what clients do wrong at the lowest level of the log.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, a ...any) { q.log.Debug(fmt.Sprintf(format, a...)) }
