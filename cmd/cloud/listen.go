package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/postern-io/postern/cloud/server"
)

// listen opens all sockets of a node before anything else starts.
func listen(s settings) (ln server.Listeners, err error) {
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
	}{{"listen", s.Listen, &ln.HTTP}, {"mqtt.listen", s.MQTT.Listen, &ln.MQTT}, {"mqtt.tls_listen", s.MQTT.TLSListen, &ln.MQTTTLS}, {"mqtt.ws_listen", s.MQTT.WSListen, &ln.WebSocket},
		{"mqtt.wss_listen", s.MQTT.WSSListen, &ln.WebSocketTLS}} {
		if x.addr == "" {
			continue
		}
		if *x.at, err = net.Listen("tcp", x.addr); err != nil {
			return ln, errors.Join(fmt.Errorf("listen (%s): %w", x.setting, err), closeListeners(ln))
		}
	}
	return ln, nil
}

func closeListeners(ln server.Listeners) error {
	var errs []error
	for _, l := range []net.Listener{ln.HTTP, ln.MQTT, ln.MQTTTLS, ln.WebSocket, ln.WebSocketTLS} {
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
