// Package wiring holds what the programs around one cabinet agree on before they
// have met: the layouts that set-up offers, the board that such a layout means, and
// the addresses that programs on one machine take without other settings. It
// is plain data, safe for concurrent use.
package wiring

import (
	"slices"
	"strings"

	"github.com/postern-io/postern/protocol/lockbus"
)

// Every layout is wired to one board: lock n is on channel n.
const (
	Line   = "main" // name of the line
	Board  = "A"    // name of the board, at address 0 of its family
	Family = lockbus.CU48B
)

// Addresses on the loopback, as HOST:PORT.
const (
	LineAddress      = "127.0.0.1:7001" // a simulated cabinet's line
	SimulatorAddress = "127.0.0.1:7080" // a simulated cabinet's page
	ScreenAddress    = "127.0.0.1:8091" // an agent's page, the cabinet's screen
)

// Template is a layout: compartments in the order of their doors and channels.
type Template struct {
	Name  string // small, medium, large
	Sizes string // of the compartments in their order, each S, M, L or XL
}

// Templates lists the layouts; the first is the usual one.
func Templates() []Template {
	return []Template{
		{"small", "S S M M M M L L"},
		{"medium", "S S S M M M M M M L L L"},
		{"large", "S S S S S S M M M M M M M M M M M M L L L L XL XL"},
	}
}

// Find finds a layout by its name; ok is false when there is none.
func Find(name string) (t Template, ok bool) {
	list := Templates()
	i := slices.IndexFunc(list, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return t, false
	}
	return list[i], true
}

// Each lists the sizes by door: the first is that of door 1.
func (t Template) Each() []string { return strings.Fields(t.Sizes) }

// Doors is how many compartments the layout has.
func (t Template) Doors() int { return len(t.Each()) }
