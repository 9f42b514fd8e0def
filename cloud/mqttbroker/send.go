package mqttbroker

import (
	"bytes"
	"sync"

	"github.com/postern-io/postern/protocol/topic"
)

// sendQueue is how many messages wait for one device. Further messages are lost.
const sendQueue = 128

// sends are what waits for devices. The library holds a client's lock while it
// writes to the client's socket, and takes the same lock to number what it
// queues, so a device that does not read would hold up its sender until
// its silence ends its connection. Here each device has a queue, and a goroutine
// while something is in it.
type sends struct {
	publish func(sending)

	mu     sync.Mutex
	queues map[string][]sending // by device code, while its goroutine runs
	wg     sync.WaitGroup       // of those goroutines
}

// sending is a message for a device.
type sending struct {
	topic   string
	payload []byte
	retain  bool
}

// add queues a message; it never waits. Of retained ones that wait the newest
// takes the place of the one before. Error: errSlow when the queue is full, which
// it never is for a retained one.
func (s *sends) add(code string, m sending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, running := s.queues[code]
	for i, old := range queue {
		if m.retain && old.retain && old.topic == m.topic {
			queue[i] = m
			return nil
		}
	}
	if len(queue) >= sendQueue && !m.retain {
		return errSlow
	}
	s.queues[code] = append(queue, m)
	if !running {
		s.wg.Go(func() { s.run(code) })
	}
	return nil
}

// run publishes what waits for a device, in order, until nothing does.
func (s *sends) run(code string) {
	for {
		s.mu.Lock()
		queue := s.queues[code]
		if len(queue) == 0 {
			delete(s.queues, code)
			s.mu.Unlock()
			return
		}
		m := queue[0]
		queue[0] = sending{}
		s.queues[code] = queue[1:]
		s.mu.Unlock()
		s.publish(m)
	}
}

// Send gives a device a message; it never waits for the device. A message that is lost on
// the way, or is too much for a device that does not read, is sent again by the
// device link. A retained message stays for the next connection.
func (b *Broker) Send(code string, leaf topic.Leaf, payload []byte, retain bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	return b.sends.add(code, sending{topic.Device(b.cfg.Prefix, code, leaf), bytes.Clone(payload), retain})
}

func (b *Broker) publish(m sending) {
	if err := b.server.Publish(m.topic, m.payload, m.retain, 1); err != nil {
		b.cfg.Log.Debug("send to device", "topic", m.topic, "err", err)
	}
}
