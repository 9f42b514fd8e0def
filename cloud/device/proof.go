package device

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// A signature tells who made a status, and not when: a broker has those of years.
// From a device with a key this is taken of one that is not a repeat:
//
//	agent                  ends before what is stored,   otherwise
//	                       or closed epoch
//	known                  proof needed                  taken
//	newest start so far    proof needed                  taken
//	any other              proof needed                  proof needed
//
// The proof is the challenge that the cloud has put into the time answer to a
// status of the same agent and epoch in this session, repeated in a later one. A
// status without it changes nothing and is answered with time alone, so that a
// cabinet proves by its next status that it speaks, and a recorded one proves
// nothing. A healthy store that speaks after the challenge has at least what was
// stored before it: only one that ends before that is a fork, and one that ends
// between that and what is stored now was overtaken by its batches.

// challenge is what an agent has to repeat.
type challenge struct {
	value    []byte
	instance string
	epoch    wire.Epoch
	next     [wire.Lanes]uint64 // what was stored of the epoch when it was made
}

// isProven reports whether a status repeats the challenge of its agent and epoch.
func (c challenge) isProven(instance string, st *wire.Status) bool {
	return len(c.value) > 0 && bytes.Equal(c.value, st.Echo) && c.instance == instance && c.epoch == st.Epoch
}

// challenge makes the challenge for the agent and epoch of a status. One that it
// has not repeated yet stands: several answers may be on their way.
func (x *session) challenge(st *wire.Status, lanes [wire.Lanes]cloud.LaneState) []byte {
	c := challenge{value: make([]byte, 16), instance: hex.EncodeToString(st.Instance), epoch: st.Epoch}
	for l := range lanes {
		c.next[l] = lanes[l].Next
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asks.instance == c.instance && x.asks.epoch == c.epoch {
		return x.asks.value
	}
	_, _ = rand.Read(c.value) // never fails
	x.asks = c
	return c.value
}

// dropChallenge forgets the challenge of another agent than the one that speaks
// now: what repeats it is a record from then on.
func (x *session) dropChallenge(st *wire.Status) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asks.instance != hex.EncodeToString(st.Instance) {
		x.asks = challenge{}
	}
}

func (x *session) challenged() challenge {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asks
}

// isLater reports whether a status was made after the newest one of an agent.
func isLater(st *wire.Status, s cloud.InstanceSeen) bool {
	return st.Boot > s.Boot || st.Boot == s.Boot && st.Count > s.Count
}

// isNewest reports whether a status is of a later start than all that were ever
// taken.
func isNewest(row cloud.Session, st *wire.Status) bool {
	for _, s := range row.Instances {
		if st.Boot <= max(s.Boot, s.Highest) {
			return false
		}
	}
	return true
}
