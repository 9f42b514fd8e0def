package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
)

const (
	// Of a reference, or of all, after a restore.
	sqlSequence = `SELECT COALESCE(MAX(last), 0) FROM reference_sequence
WHERE business_id = $1 AND reference_id = $2 AND reference_type = $3 OR business_id = 0 AND reference_id = '' AND reference_type = ''`
	// It changes nothing when another decision has raised the number since it was read.
	sqlRaiseSequence = `INSERT INTO reference_sequence (business_id, reference_id, reference_type, last) VALUES ($1, $2, $3, $4)
ON CONFLICT (business_id, reference_id, reference_type) DO UPDATE SET last = excluded.last WHERE reference_sequence.last <= $5`
	sqlRaiseSequences = `INSERT INTO reference_sequence (business_id, reference_id, reference_type, last) VALUES (0, '', '', $1)
ON CONFLICT (business_id, reference_id, reference_type) DO UPDATE SET last = excluded.last WHERE reference_sequence.last < excluded.last`
)

// errOvertaken says that another decision was faster; the transaction is run again.
var errOvertaken = errors.New("another decision about the same reference was faster")

// sequences are the numbers that one run of a decision gives. They are read without a
// lock and written at the decision's end. There the database holds the rows until the
// commit, and a decision whose numbers were given meanwhile is run again: the order of
// the numbers of a reference is the order of the commits, on whatever nodes.
type sequences map[cloud.EventReference]*raisedSequence

type raisedSequence struct{ stored, last int64 }

// NextSequence implements cloud.HookView.
func (v *snapshot) NextSequence(r cloud.EventReference) (int64, error) {
	if v.sequences == nil {
		return 0, errors.New("sequence numbers are given in decisions only")
	}
	x := v.sequences[r]
	if x == nil {
		stored, err := one(v.ctx, v.q, sqlSequence, scanInt, int64(r.BusinessID), r.ID, r.Type)
		if err != nil {
			return 0, fmt.Errorf("find the sequence of %s %s: %w", r.Type, r.ID, err)
		}
		x = &raisedSequence{stored, stored}
		v.sequences[r] = x
	}
	x.last++
	return x.last, nil
}

// RaiseSequences lets the numbers of all references continue above one. After a restore
// from a backup those that were given since would come again, and receivers would drop
// their events.
func (db webhooks) RaiseSequences(ctx context.Context, above int64) error {
	return db.exec(ctx, sqlRaiseSequences, above)
}

// raise writes the numbers, all decisions those of several references in the same order,
// so that none wait for each other. A decision that keeps to one state of the database
// is refused by that when it was overtaken; one about a device sees what was committed
// meanwhile, and looks itself.
func raise(w *writer, given sequences) {
	refs := make([]cloud.EventReference, 0, len(given))
	for r := range given {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, func(a, b cloud.EventReference) int {
		return cmp.Or(cmp.Compare(a.BusinessID, b.BusinessID), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Type, b.Type))
	})
	need := anything
	if w.dev != 0 {
		need = mustBeNext
	}
	for _, r := range refs {
		w.add(need, sqlRaiseSequence, int64(r.BusinessID), r.ID, r.Type, given[r].last, given[r].stored)
	}
}
