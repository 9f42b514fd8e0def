package device

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// A device with a key of its own is believed only what it signed. Whatever else
// comes under its name is dropped without an answer, since an answer would let
// the owner of a broker make the cabinet set records aside; it is counted
// and kept as an exception with its size and SHA-256.
//
//	batch    the signature covers epoch, lane, sequence, head and all but the
//	         records; these have to fit the head, from what is stored on
//	status   the signature covers all of it; one that is not newer than what was
//	         taken (boot, count), or does not prove that it is, changes nothing

// unsigned is something that a device's key has not signed.
type unsigned struct {
	what string // batch, status
	why  string
	size int
	sum  [sha256.Size]byte
	at   time.Time
}

func newUnsigned(what, why string, in incoming) unsigned {
	return unsigned{what: what, why: why, size: len(in.payload), sum: sha256.Sum256(in.payload), at: in.at}
}

// fault is the exception of what was dropped; n says how much it was.
func (u unsigned) fault(id cloud.DeviceID, n int) cloud.DeviceException {
	return cloud.DeviceException{DeviceID: id, Type: cloud.DevBadSignature, Count: int64(n), OpenedAt: u.at, SeenAt: u.at,
		Detail: cloud.DetailText(fmt.Sprintf("%s: %s (%d bytes, SHA-256 %x)", u.what, u.why, u.size, u.sum))}
}

// checkSigned divides batches into those that the device's key signed and the
// others.
func checkSigned(x *session, run []parsed) (good []parsed, bad []unsigned) {
	for _, p := range run {
		switch {
		case p.err == nil && len(p.batch.Signature) == 0:
			bad = append(bad, newUnsigned("batch", "not signed", p.incoming))
		case p.err != nil && !signed.VerifyBatch(x.upKey, x.code, p.payload):
			bad = append(bad, newUnsigned("batch", "cannot be read: "+p.err.Error(), p.incoming))
		case !signed.VerifyBatch(x.upKey, x.code, p.payload):
			bad = append(bad, newUnsigned("batch", "the signature is not by the registered key", p.incoming))
		default:
			good = append(good, p)
		}
	}
	return good, bad
}

// misfit drops a batch whose signature holds and whose records are not those of
// its head: they were changed on the way, or the store went another way than
// what is kept here. The receipt of what is kept lets the agent find out which:
// it compares the head with its own and begins a new epoch by itself.
func (t *intake) misfit(p parsed, l *lane, why string) {
	t.unsigned = append(t.unsigned, newUnsigned("batch", why, p.incoming))
	t.acks = append(t.acks, pendingAck{ack: wire.Ack{Epoch: l.Epoch, Lane: l.Lane, Next: l.Next, Head: l.Head}, now: true})
}

// fitsAlone reports whether the records of an epoch's first batch are those of
// its head.
func fitsAlone(b *wire.Batch) bool {
	head := wire.FirstHead(b.Epoch, b.Lane)
	for _, raw := range b.Records {
		head = head.Next(raw)
	}
	return head == b.Head
}

// isOld reports whether a signed status was overtaken: its agent, or the one
// that speaks now, has said something since. Of an agent that is new to the cloud
// nothing is known: it has to prove that it speaks, see challenge. twin is set
// when it is the first time that its agent said this.
func isOld(row cloud.Session, instance string, st *wire.Status) (old, known, twin bool) {
	own, now := -1, -1
	for i, s := range row.Instances {
		if s.Instance == instance {
			own = i
		}
		if s.Instance == row.Instance {
			now = i
		}
	}
	if own < 0 {
		return false, false, false
	}
	if !isLater(st, row.Instances[own]) {
		return true, true, false
	}
	return now >= 0 && !isLater(st, row.Instances[now]), true, true
}
