package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/postern-io/postern/cloud"
)

// IDKind is a sequence of ids.
type IDKind = cloud.IDKind

// Sequences.
const (
	Businesses   = cloud.BusinessIDs
	Accounts     = cloud.AccountIDs
	Providers    = cloud.ProviderIDs
	Endpoints    = cloud.EndpointIDs
	Devices      = cloud.DeviceIDs
	Grids        = cloud.GridIDs
	Deliveries   = cloud.DeliveryIDs
	Shipments    = cloud.ShipmentIDs
	DeviceOrders = cloud.DeviceOrderIDs
	Exceptions   = cloud.ExceptionIDs
	Outboxes     = cloud.OutboxIDs
	Events       = cloud.EventIDs // the number in an outbox event's id
	Tokens       = cloud.TokenIDs
)

// Blocks start small, so that ids of quiet kinds look natural, and double while
// they are used up, so that busy kinds do not wait for the database.
const (
	firstBlock   = 8
	largestBlock = 4096
)

// The row without a kind is where kinds without a row begin; in a database that was never
// restored there is none.
const sqlLeaseIDs = `INSERT INTO id_block (kind, next) VALUES ($1, COALESCE((SELECT next FROM id_block WHERE kind = ''), 1) + CAST($2 AS @int))
ON CONFLICT (kind) DO UPDATE SET next = id_block.next + CAST($2 AS @int) RETURNING next`

// idBlocks are the ids that this node has leased and not given out.
type idBlocks struct {
	mu     sync.Mutex
	blocks map[IDKind]*idBlock
}

type idBlock struct {
	mu        sync.Mutex // held while a block is leased
	next, end int64      // ids left: next to end-1
	size      int64      // of the next lease
}

func (b *idBlocks) of(kind IDKind) *idBlock {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blocks == nil {
		b.blocks = map[IDKind]*idBlock{}
	}
	if b.blocks[kind] == nil {
		b.blocks[kind] = &idBlock{size: firstBlock}
	}
	return b.blocks[kind]
}

// NewID gives an id of a kind that was never given before, on any node. Inside
// a decision its View gives them. Ids of one node grow; a stop of the node
// leaves a hole.
func (db *database) NewID(ctx context.Context, kind IDKind) (int64, error) {
	b := db.ids.of(kind)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := db.fill(ctx, kind, b); err != nil {
		return 0, err
	}
	id := b.next
	b.next++
	return id, nil
}

// fill leases a block when there is no id left. The caller holds b.mu.
func (db *database) fill(ctx context.Context, kind IDKind, b *idBlock) error {
	if b.next < b.end {
		return nil
	}
	if err := db.leaseIDs(ctx, kind, b); err != nil {
		return fmt.Errorf("lease %s ids: %w", kind, err)
	}
	return nil
}

// dryError ends a run of a decision that needs more ids than are leased:
// leasing waits for the writer that runs the decision. Decide leases and runs
// it again; ids given to an earlier run are given again.
type dryError struct{ kind IDKind }

func (e dryError) Error() string { return "no " + string(e.kind) + " ids are leased" }

// givenIDs are the ids of one decision, over all of its runs.
type givenIDs struct {
	blocks *idBlocks
	given  map[IDKind][]int64
	used   map[IDKind]int // in this run
}

// again starts another run.
func (g *givenIDs) again() { clear(g.used) }

func (g *givenIDs) next(kind IDKind) (int64, error) {
	if g.given == nil {
		g.given, g.used = map[IDKind][]int64{}, map[IDKind]int{}
	}
	n := g.used[kind]
	if n == len(g.given[kind]) {
		id, err := g.blocks.nextLeased(kind)
		if err != nil {
			return 0, err
		}
		g.given[kind] = append(g.given[kind], id)
	}
	g.used[kind] = n + 1
	return g.given[kind][n], nil
}

// nextLeased gives a leased id without waiting.
func (b *idBlocks) nextLeased(kind IDKind) (int64, error) {
	x := b.of(kind)
	if !x.mu.TryLock() {
		return 0, dryError{kind} // being leased right now
	}
	defer x.mu.Unlock()
	if x.next == x.end {
		return 0, dryError{kind}
	}
	x.next++
	return x.next - 1, nil
}

// NewID gives an id inside a decision.
func (v *snapshot) NewID(kind cloud.IDKind) (int64, error) {
	if v.ids == nil {
		return 0, errors.New("ids are given in decisions only")
	}
	return v.ids.next(kind)
}

// refill leases ids for a decision that ran dry.
func (db *database) refill(ctx context.Context, kind IDKind) error {
	b := db.ids.of(kind)
	b.mu.Lock()
	defer b.mu.Unlock()
	return db.fill(ctx, kind, b)
}

func (db *database) leaseIDs(ctx context.Context, kind IDKind, b *idBlock) error {
	var end int64
	err := db.engine.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		n, err := changedInt(ctx, s, sqlLeaseIDs, string(kind), b.size)
		end = n
		return nil, err
	})
	if err != nil {
		return err
	}
	b.next, b.end = end-b.size, end
	b.size = min(b.size*2, largestBlock)
	return nil
}
