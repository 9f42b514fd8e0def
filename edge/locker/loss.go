package locker

import "github.com/postern-io/postern/protocol/wire"

// Found says what a start found of its store.
type Found uint8

// What a start can find. The zero Found is a store that is as it was left.
const (
	FoundNew    Found = iota + 1 // it began anew
	FoundBehind                  // it is an older copy: what the cabinet remembers outside of it is newer
)

// lose declares that the cabinet's memory cannot be relied on, since before boot:
// neither of what lies where, which the next whole list brings back, nor of the
// commands that were carried out.
func (m Meta) lose(boot uint64) Meta {
	if !m.Lost {
		m.Lost, m.LostBoot = true, boot
	}
	m.CommandsLost = true
	return m
}

// DeclareLoss declares the loss that a start found, before its first step, and
// returns what has to be kept of that together with the mark that the start was
// made: once it is, no other start finds the loss. Started tells of it.
func (s *State) DeclareLoss(found Found, boot uint64) (put map[string][]byte) {
	s.Meta = s.Meta.lose(boot)
	s.Meta.Found = found
	return map[string][]byte{keyMeta: s.encode(keyMeta)}
}

// lose declares a loss.
func (d doors) lose() {
	d.setMeta(d.Meta.lose(d.now.Boot))
	d.present = true
}

// found takes what this start, or one before it that power ended at once, found
// of the store.
func (d doors) found(in Started) {
	is := d.Meta.Found
	switch {
	case in.Fresh:
		is = FoundNew
	case in.Behind && is == 0:
		is = FoundBehind
	}
	d.Fresh = is == FoundNew
	if is == 0 {
		return
	}
	if is == FoundBehind {
		d.record(wire.KindTamper, d.now.Mono, wire.Tamper{What: wire.TamperStoreRolledBack})
	}
	d.lose()
	m := d.Meta
	m.Found = 0
	d.setMeta(m)
}

// dateLoss fixes the time of a loss once there is a synchronised clock. The loss
// is older than this start, and so are the commands that it took; as far as the
// clock's error allows, a younger one may be among them.
func (d *draft) dateLoss() {
	if !d.Meta.CommandsLost || !d.obeys() {
		return
	}
	m := d.Meta
	m.CommandsFrom, m.CommandsLost = max(m.CommandsFrom, d.now.Wall(0)+ms(d.now.ErrMS)), false
	d.setMeta(m)
}
