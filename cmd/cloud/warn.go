package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/internal/loopback"
)

// warnings are what these settings allow and what is most likely a mistake, one sentence
// each.
func (s settings) warnings() (out []string) {
	if s.part == server.Edge { // it enrols no cabinet and has no page
		return nil
	}
	if base, err := url.Parse(s.BaseURL); err == nil && base.Host != "" && !loopback.IsHost(base.Host) && cli.AreLoopback(s.MQTT.Brokers) {
		out = append(out, fmt.Sprintf("cabinets on other computers cannot connect: base_url is %s, and every broker address that cabinets are given is on the loopback (%s); set mqtt.tls_listen with a certificate (tls), or mqtt.brokers to the address of a proxy in front", base.Redacted(), strings.Join(s.MQTT.Brokers, ", ")))
	}
	if s.Listen != "" && !cli.IsLoopback(s.Listen) && s.TLS.Listen == "" && len(s.Proxies.Trusted) == 0 {
		out = append(out, fmt.Sprintf("plain HTTP is served beyond this computer: passwords and tokens cross the network in the clear at listen %q; set listen to 127.0.0.1 with a proxy that has TLS before it, name that proxy in proxies.trusted, or set tls.listen with a certificate", s.Listen))
	}
	return out
}

// checkPort reports what is wrong with the port of an address.
func checkPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("use host:port, or :port for all interfaces")
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return errors.New("use a port from 1 to 65535")
	}
	return nil
}

// checkDatabase reports an address of PostgreSQL that cannot be read. Nothing of the
// address is in the error: it may hold a password.
func checkDatabase(address string) error {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil
	}
	u, err := url.Parse(address)
	// A slash, a question mark or a hash in the password ends it early: what follows the
	// login then stands in the path, the query or the fragment.
	if err != nil || strings.Contains(u.Path, "@") || u.Fragment != "" || u.User == nil && strings.Contains(u.RawQuery, "@") {
		return errors.New("the address cannot be read: use postgres://user:password@host:5432/name; in user and password write each of : / ? # [ ] @ % and space as its percent code, such as %40 for @ and %2F for /")
	}
	return nil
}

// checkFolder tries whether a data folder can be made and written. It makes none.
func checkFolder(name string) error {
	at, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	for {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s cannot be made: %s is a file; name a folder", name, at)
		case err == nil:
			return checkWritable(name, at)
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || at == filepath.Dir(at):
			return fmt.Errorf("%s cannot be used: %w", name, reason(err))
		}
		at = filepath.Dir(at)
	}
}

// checkWritable tries to write in the folder at, in which the data folder is or would be.
func checkWritable(name, at string) error {
	f, err := os.CreateTemp(at, ".try.*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %s: %w; name another folder, or give the user that the cloud runs as the right to write there", name, at, reason(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// reason is why a call of the system failed, without the name of what it was asked for.
func reason(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}
