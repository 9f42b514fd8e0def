package mqttbroker

import (
	"encoding/binary"
	"errors"
	"net"
)

var errLongConnect = errors.New("the first packet is too long")

// opening is a connection whose first packet is short. The library makes room for a
// packet when its length is announced, and any client announces one before its login.
// One goroutine reads.
type opening struct {
	net.Conn
	head []byte // type and length of the first packet, as far as they are there
	done bool   // the length is known
}

func (o *opening) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if o.done {
		return n, err
	}
	o.head = append(o.head, p[:min(n, 1+binary.MaxVarintLen32-len(o.head))]...)
	length, size := uint64(0), 0
	if len(o.head) > 1 {
		length, size = binary.Uvarint(o.head[1:])
	}
	switch {
	case size > 0 && length <= maxConnect:
		o.done, o.head = true, nil
	case size != 0 || len(o.head) > binary.MaxVarintLen32-1:
		return 0, errLongConnect
	}
	return n, err
}
