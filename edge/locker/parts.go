package locker

import (
	"bytes"
	"slices"

	"github.com/postern-io/postern/protocol/wire"
)

// listParts are the parts of one whole code list that have come so far, in their
// order: at most wire.MaxListParts messages. They are not kept and change
// nothing before the last one has come; a start, a part that does not follow, or
// a newer nonce drops them.
type listParts struct {
	nonce           []byte
	generation, end uint64
	to              uint64             // of the last part that came
	entries         [][]wire.CodeEntry // by part
}

// isFollowedBy reports whether c is the next part of the list that is being
// gathered, or the first one while none is.
func (p listParts) isFollowedBy(c wire.Codes) bool {
	if c.Part > wire.MaxListParts || int(c.Part) != len(p.entries)+1 || c.From != p.to || c.To > c.End {
		return false
	}
	return len(p.entries) == 0 || c.Generation == p.generation && c.End == p.end && bytes.Equal(c.Nonce, p.nonce)
}

// with is p and one more part that follows it.
func (p listParts) with(c wire.Codes) listParts {
	return listParts{nonce: c.Nonce, generation: c.Generation, end: c.End, to: c.To, entries: append(slices.Clip(p.entries), c.Entries)}
}

// join makes one whole list of the parts and the last one.
func (p listParts) join(c wire.Codes) wire.Codes {
	c.From, c.Entries, c.Part, c.End = 0, slices.Concat(p.with(c).entries...), 0, 0
	return c
}
