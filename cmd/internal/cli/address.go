package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"syscall"

	"github.com/postern-io/postern/internal/loopback"
)

// IsLoopback reports whether an address, HOST:PORT, is of this computer alone.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback.IsHost(host)
}

// AreLoopback reports whether there are addresses, each a URL, and each is of this computer.
func AreLoopback(addresses []string) bool {
	return len(addresses) > 0 && !slices.ContainsFunc(addresses, func(a string) bool {
		u, err := url.Parse(a)
		return err != nil || !IsLoopback(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "0")))
	})
}

// InUse is an error of listening at an address; where another program has it, with what to do.
// setting is how the address is chosen.
func InUse(err error, setting string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf("%w: end the program that has it, or set %s to another address", err, setting)
}
