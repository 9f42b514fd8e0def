package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/firmware-sim/page"
)

// pageName is the cabinet's name on its page.
const pageName = "CABINET"

// preparePage opens the page's port, so that its address is known at once. Only
// the loopback will do: what is done there is done to the hardware.
func preparePage(places places, c *board.Cabinet, sizes map[uint]string, say sayer) (func(context.Context) error, error) {
	addr := places.page
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("--page %s: %w", addr, err)
	}
	if !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("--page %s: the host must be an address of the loopback, such as 127.0.0.1:%d", addr, at.Port())
	}
	ln, err := listen(addr, places.anyPage)
	if err != nil {
		return nil, fmt.Errorf("--page %s: %w", addr, cli.InUse(err, "--page"))
	}
	say("doors can be touched at http://%s/%s", ln.Addr(), pageName)
	p := page.New(page.Config{Cabinets: []page.Cabinet{{Code: pageName, Name: "Simulated cabinet", Sim: c, Sizes: sizes}}})
	return func(ctx context.Context) error { return p.Run(ctx, ln) }, nil
}
