package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// readyWait bounds the question whether the node on this machine is ready.
const readyWait = 4 * time.Second

// readyCommand asks the node on this machine, as its settings say, whether it serves: for
// health checks in containers, which have no other program.
type readyCommand struct{}

func (readyCommand) run(ctx context.Context, s settings, stdout io.Writer) error {
	address, token, err := readyAddress(s)
	if err != nil {
		return fmt.Errorf("ready: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("ready: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is for the public name, and the connection stays on this machine. No
	// proxy of the environment is asked, and no other address.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // see above
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ready: %w", err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("ready: %s answers %s", address, a.Status)
	}
	_, err = fmt.Fprintln(stdout, "ready")
	return err
}

// readyAddress is where the node on this machine says whether it is ready, with the token
// that the address needs.
func readyAddress(s settings) (address, token string, err error) {
	const path = "/readyz"
	switch {
	case s.Listen != "":
		return "http://" + here(s.Listen) + path, "", nil
	case s.TLS.Listen != "":
		return "https://" + here(s.TLS.Listen) + path, "", nil
	case s.Admin.Listen != "" && s.Admin.TLS:
		return "https://" + here(s.Admin.Listen) + path, s.Admin.token, nil
	case s.Admin.Listen != "":
		return "http://" + here(s.Admin.Listen) + path, s.Admin.token, nil
	}
	return "", "", errors.New("the node has no HTTP address: set listen, tls.listen or admin.listen")
}

// here is a listener's address as programs on this machine reach it.
func here(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // settings are checked
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
