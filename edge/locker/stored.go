package locker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// keptDoor is the part of a door that outlives a start.
type keptDoor struct {
	Counted  bool    `cbor:"1,keyasint,omitempty"`
	OpenedAt Instant `cbor:"2,keyasint,omitempty"`
	Opening  string  `cbor:"3,keyasint,omitempty"`
	Version  uint64  `cbor:"4,keyasint,omitempty"`
	Delivery string  `cbor:"5,keyasint,omitempty"`
	Blocked  string  `cbor:"6,keyasint,omitempty"`
	Failures int     `cbor:"7,keyasint,omitempty"`
	// Unverified is Door.Unverified.
	Unverified bool `cbor:"8,keyasint,omitempty"`
	Found      bool `cbor:"9,keyasint,omitempty"` // Door.Found of one that is not known
	Wear       Wear `cbor:"10,keyasint,omitempty"`
	Seen       bool `cbor:"11,keyasint,omitempty"` // Door.Seen
}

// encode returns what is kept under key, nil when it is gone.
func (s *State) encode(key string) []byte {
	kind, id, _ := strings.Cut(key, "/")
	switch kind + "/" {
	case keyDoor:
		n, _ := strconv.ParseUint(id, 10, 64)
		d := s.Doors[edge.DoorNumber(n)]
		return wire.MustEncode(keptDoor{d.Counted, d.OpenedAt, d.Opening, d.Version, d.Delivery, d.Blocked, d.Failures, d.Unverified, d.Found && !d.Known, d.Wear, d.Seen})
	case keyOpening:
		return encodeOr(s.Openings, id)
	case keyEnded:
		return encodeOr(s.Ended, id)
	case keyDelivery:
		return encodeOr(s.Deliveries, id)
	case keyCommand:
		return encodeOr(s.Commands, id)
	case keyException:
		return encodeOr(s.Exceptions, id)
	case keyCode:
		n, _ := strconv.ParseUint(id, 10, 64)
		return encodeOr(s.Codes, n)
	}
	switch key {
	case keyMeta:
		return wire.MustEncode(s.Meta)
	case keyConfig:
		return wire.MustEncode(s.Config)
	}
	panic("locker: no such key: " + key)
}

func encodeOr[K comparable, V any](m map[K]V, k K) []byte {
	v, ok := m[k]
	if !ok {
		return nil
	}
	return wire.MustEncode(v)
}

// Load adds one kept entry to s. Unknown keys are left alone: they belong to
// others. An error means that the entry cannot be read.
func (s *State) Load(key string, value []byte) error {
	kind, id, _ := strings.Cut(key, "/")
	var err error
	switch kind + "/" {
	case keyDoor:
		var n uint64
		var k keptDoor
		if n, err = strconv.ParseUint(id, 10, 64); err == nil {
			err = wire.Decode(value, &k)
		}
		s.Doors[edge.DoorNumber(n)] = Door{Number: edge.DoorNumber(n), Counted: k.Counted, OpenedAt: k.OpenedAt, Opening: k.Opening,
			Version: k.Version, Delivery: k.Delivery, Blocked: k.Blocked, Failures: k.Failures, Unverified: k.Unverified, Found: k.Found, MissedClosed: k.Counted, Wear: k.Wear, Seen: k.Seen}
	case keyOpening:
		err = decodeInto(s.Openings, id, value)
	case keyEnded:
		err = decodeInto(s.Ended, id, value)
	case keyDelivery:
		err = decodeInto(s.Deliveries, id, value)
	case keyCommand:
		err = decodeInto(s.Commands, id, value)
	case keyException:
		err = decodeInto(s.Exceptions, id, value)
	case keyCode:
		var n uint64
		if n, err = strconv.ParseUint(id, 10, 64); err == nil {
			err = decodeInto(s.Codes, n, value)
		}
	}
	switch key {
	case keyMeta:
		err = wire.Decode(value, &s.Meta)
	case keyConfig:
		var c wire.Config
		if err = wire.Decode(value, &c); err == nil && c.Version > s.Config.Version {
			s.Config = c
		}
	}
	if err != nil {
		return fmt.Errorf("read state %q: %w", key, err)
	}
	return nil
}

// Settle completes a State after the last Load.
func (s *State) Settle() {
	s.layDoors()
	if s.Meta.Tries != nil {
		s.Meta.Budgets, s.Meta.Tries = s.Meta.Tries.budgets(), nil
	}
}

func decodeInto[K comparable, V any](m map[K]V, k K, value []byte) error {
	var v V
	if err := wire.Decode(value, &v); err != nil {
		return err
	}
	m[k] = v
	return nil
}

// Dump is all of s as it is kept, for a store that has lost its content.
func (s *State) Dump() map[string][]byte {
	keys := []string{keyMeta}
	if s.Config.Version > 0 {
		keys = append(keys, keyConfig)
	}
	for n := range s.Doors {
		keys = append(keys, keyDoor+num(n))
	}
	keys = addKeys(keys, keyOpening, s.Openings)
	keys = addKeys(keys, keyEnded, s.Ended)
	keys = addKeys(keys, keyDelivery, s.Deliveries)
	keys = addKeys(keys, keyCommand, s.Commands)
	keys = addKeys(keys, keyException, s.Exceptions)
	for n := range s.Codes {
		keys = append(keys, keyCode+strconv.FormatUint(n, 10))
	}
	out := make(map[string][]byte, len(keys))
	for _, k := range keys {
		out[k] = s.encode(k)
	}
	return out
}

func addKeys[V any](keys []string, kind string, m map[string]V) []string {
	for id := range m {
		keys = append(keys, kind+id)
	}
	return keys
}
