package e2e

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/mqttbroker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// message is one payload between a cabinet and the cloud.
type message struct {
	code    string
	leaf    topic.Leaf
	payload []byte
	retain  bool
	at      time.Time
}

// wiretap owns the broker: everything between cabinets and cloud passes through
// its hands. With noise it only loses, repeats and reorders; hostile it records,
// withholds, replays, alters and invents in both directions (wiretap.attack).
type wiretap struct {
	w *world

	mu      sync.Mutex // guards all below
	rnd     *rand.Rand
	devices mqttbroker.Devices
	sender  device.Sender
	live    map[string]int64 // newest session by device code
	up      map[string][]message
	down    map[string][]message
	keeps   int          // most messages of up[code] and of down[code]; 400 when 0
	held    []truth.Held // by statuses, of all cabinets
	heldBy  []string
	late    func()                          // a payload that another one overtakes
	closed  func(m message, down bool) bool // withholds what it says yes to; nil: nothing
	until   time.Time                       // of closed
	tried   map[string]int
}

type (
	// tappedUp is the cloud's side of the broker for what devices send.
	tappedUp struct {
		mqttbroker.Devices
		tap *wiretap
	}
	// tappedDown is the broker for what the cloud sends.
	tappedDown struct {
		device.Sender
		tap *wiretap
	}
)

func (t *wiretap) setDevices(d mqttbroker.Devices) { t.mu.Lock(); defer t.mu.Unlock(); t.devices = d }
func (t *wiretap) setSender(s device.Sender)       { t.mu.Lock(); defer t.mu.Unlock(); t.sender = s }

// keep records a message of one cabinet in one direction. The oldest give way.
func (t *wiretap) keep(list []message, m message) []message {
	if most := cmp.Or(t.keeps, 400); len(list) == most {
		list = slices.Delete(list, 0, most/4)
	}
	return append(list, m)
}

func (x tappedUp) Receive(code string, generation int64, leaf topic.Leaf, payload []byte) {
	t := x.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	m := message{code: code, leaf: leaf, payload: bytes.Clone(payload), at: time.Now()}
	t.live[code] = generation
	t.up[code] = t.keep(t.up[code], m)
	if st, err := wire.DecodeStatus(payload); leaf == topic.Status && err == nil && st.State == wire.Online {
		t.held, t.heldBy = append(t.held, truth.Held{At: m.at, Generation: st.Generation, Number: st.CodeList}), append(t.heldBy, code)
	}
	t.pass(m, false, func() { x.Devices.Receive(code, generation, leaf, payload) })
}

func (x tappedDown) Send(code string, leaf topic.Leaf, payload []byte, retain bool) error {
	t := x.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	m := message{code: code, leaf: leaf, payload: bytes.Clone(payload), retain: retain, at: time.Now()}
	t.down[code] = t.keep(t.down[code], m)
	if t.withholds(m, true) {
		return nil
	}
	return x.Sender.Send(code, leaf, payload, retain)
}

// withholds reports whether a message is kept back for now. The caller holds
// t.mu.
func (t *wiretap) withholds(m message, down bool) bool {
	return t.closed != nil && time.Now().Before(t.until) && t.closed(m, down)
}

// pass passes a payload on, or not, or later, or twice. The caller holds t.mu.
func (t *wiretap) pass(m message, down bool, on func()) {
	if t.withholds(m, down) {
		return
	}
	if t.rnd.Int64N(100) < t.w.noise.Load() {
		switch t.rnd.IntN(3) {
		case 0:
			return
		case 1:
			on()
		case 2:
			if t.late == nil {
				t.late = on
				return
			}
		}
	}
	on()
	if t.late != nil {
		t.late()
		t.late = nil
	}
}

// heldOf lists the code list numbers that a cabinet's statuses named.
func (t *wiretap) heldOf(code string) (out []truth.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, h := range t.held {
		if t.heldBy[i] == code {
			out = append(out, h)
		}
	}
	return out
}

// calm ends everything that the wiretap does.
func (t *wiretap) calm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = nil
}

// hand gives a cabinet or the cloud a message as if it came from the other.
func (t *wiretap) hand(m message, down bool) {
	t.mu.Lock()
	sender, devices, generation := t.sender, t.devices, t.live[m.code]
	t.mu.Unlock()
	if down {
		_ = sender.Send(m.code, m.leaf, m.payload, m.retain) // a cabinet that is not connected gets nothing
		return
	}
	devices.Receive(m.code, generation, m.leaf, m.payload)
}
