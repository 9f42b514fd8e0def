package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// listen opens all sockets of a node before anything else starts.
func listen(s settings, log *slog.Logger) (ln server.Listeners, err error) {
	for _, x := range []struct {
		setting, addr string
		at            *net.Listener
	}{{"listen", s.Listen, &ln.HTTP}, {"tls.listen", s.TLS.Listen, &ln.HTTPS}, {"mqtt.listen", s.MQTT.Listen, &ln.MQTT}, {"mqtt.tls_listen", s.MQTT.TLSListen, &ln.MQTTTLS},
		{"mqtt.ws_listen", s.MQTT.WSListen, &ln.WebSocket}, {"mqtt.wss_listen", s.MQTT.WSSListen, &ln.WebSocketTLS}, {"admin.listen", s.Admin.Listen, &ln.Admin}} {
		if x.addr == "" || s.part == server.Core && strings.HasPrefix(x.setting, "mqtt.") {
			continue
		}
		if *x.at, err = net.Listen("tcp", x.addr); errors.Is(err, syscall.EADDRINUSE) && x.addr == usualAdmin { // most likely that of another node here
			log.Warn("metrics and profiles are not served: another program has the address; set admin.listen", "address", x.addr)
			*x.at, err = nil, nil
			continue
		}
		if err != nil {
			return ln, errors.Join(fmt.Errorf("listen (%s): %w", x.setting, cli.InUse(err, x.setting)), closeListeners(ln))
		}
		if slices.Contains(s.Proxies.Protocol, x.setting) {
			*x.at = s.proxies.Listener(*x.at)
		}
	}
	return ln, nil
}

func closeListeners(ln server.Listeners) error {
	var errs []error
	for _, l := range []net.Listener{ln.HTTP, ln.HTTPS, ln.MQTT, ln.MQTTTLS, ln.WebSocket, ln.WebSocketTLS, ln.Admin} {
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
