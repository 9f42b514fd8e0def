package uplink

import (
	"fmt"

	"github.com/postern-io/postern/protocol/wire"
)

// maxPacket is the largest MQTT packet taken from a broker: a payload, its topic
// and header. The library allocates what a packet's header says, up to 256 MiB.
const maxPacket = wire.MaxPayload + 4<<10

// frames follows the packets in a stream of bytes, however it is cut.
//
//	type 1 · remaining length 1 to 4, seven bits each, lowest first · the rest
type frames struct {
	left   int  // bytes of the packet to come
	length bool // inside the remaining length
	value  int
	shift  uint
}

// feed takes the next bytes, and refuses the header of a packet that is too
// large before its body is read.
func (f *frames) feed(p []byte) error {
	for len(p) > 0 {
		switch {
		case f.left > 0:
			n := min(f.left, len(p))
			f.left, p = f.left-n, p[n:]
		case !f.length:
			f.length, f.value, f.shift, p = true, 0, 0, p[1:]
		default:
			f.value |= int(p[0]&0x7f) << f.shift
			more := p[0]&0x80 != 0
			f.shift, p = f.shift+7, p[1:]
			if f.value > maxPacket || more && f.shift > 21 {
				return fmt.Errorf("the broker sends a packet of at least %d bytes, the limit is %d", f.value, maxPacket)
			}
			if !more {
				f.length, f.left = false, f.value
			}
		}
	}
	return nil
}
