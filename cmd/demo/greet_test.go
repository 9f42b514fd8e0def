package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a guest can do is the last line of the greeting, and comes again with each
// act of the day, so that no story line takes it off the screen.
func TestTheInvitationStaysInSight(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newStage(flags{}, &out)
	c := &cabinet{s: s, code: "FRONT-01", name: "Front St Lobby", kiosk: "127.0.0.1:9", doors: []uint{1, 2, 3}}
	s.cabinets = []*cabinet{c}
	s.guest = &guest{s: s, addr: "127.0.0.1:8081", parcel: &parcel{at: c, code: "482915", doors: []uint{3}}}
	last := func() string {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return lines[len(lines)-1]
	}
	const invitation = "type 482915 at http://127.0.0.1:9 and watch door 3 at http://127.0.0.1:8081/FRONT-01"
	s.greet()
	require.Regexp(t, `Try it +`+invitation+`$`, last())
	s.announce("Morning: three deposits")
	require.Contains(t, out.String(), "day        Morning: three deposits\n")
	require.Regexp(t, `guest +try it: `+invitation+`$`, last())
	s.guest.parcel = nil
	s.announce("A door is left open")
	require.Regexp(t, `day +A door is left open$`, last(), "nothing waits")
	s.guest = nil // one day with --once
	s.announce("A lock jams")
	require.Regexp(t, `day +A lock jams$`, last())
}
