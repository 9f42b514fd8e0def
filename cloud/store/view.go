package store

import (
	"context"
	"math"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
)

// view reads inside one transaction: a section for each room over one snapshot.
type view struct {
	*snapshot
	accountView
	factorView
	orderView
	routeView
	lockerView
	deviceView
	chatView
	trackingView
	platformView
	workView
	reportView
	containerView
}

// Sections of a view.
type (
	accountView  struct{ *snapshot }
	factorView   struct{ *snapshot }
	orderView    struct{ *snapshot }
	routeView    struct{ *snapshot }
	lockerView   struct{ *snapshot }
	deviceView   struct{ *snapshot }
	chatView     struct{ *snapshot }
	trackingView struct{ *snapshot }
)

func newView(s snapshot) *view {
	p := &s
	return &view{p, accountView{p}, factorView{p}, orderView{p}, routeView{p}, lockerView{p}, deviceView{p}, chatView{p}, trackingView{p}, platformView{p}, workView{p}, reportView{p}, containerView{p}}
}

// snapshot is what a transaction reads. cloud.View has no contexts: the view lives
// as long as one call, and so does the one it holds.
type snapshot struct {
	ctx   context.Context
	q     querier
	box   *seal.Box
	locks bool      // for a decision: shipments that it reads stay as they are
	ids   *givenIDs // of a decision, nil otherwise
	// sequences are given in a decision, nil otherwise.
	sequences sequences
	// checkpoints are made in a decision, nil otherwise, once as many events stand behind one as the window has.
	checkpoints checkpoints
	window      window
}

var _ cloud.View = (*view)(nil)

func (v *snapshot) sealer() sealer { return sealer{v.box} }

// sealer opens and seals columns; NULL stays NULL.
type sealer struct{ box *seal.Box }

func (b sealer) seal(purpose string, plain []byte) any {
	if plain == nil {
		return nil
	}
	return b.box.Seal(purpose, plain)
}

func (b sealer) open(purpose string, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	return b.box.Open(purpose, sealed)
}

// readOne is one outside of a View.
func readOne[T any](ctx context.Context, db *database, sql string, scan func(rows, *T) error, args ...any) (v T, err error) {
	err = db.engine.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		v, err = one(ctx, q, sql, scan, args...)
		return err
	})
	return v, err
}

// readList is list outside of a View.
func readList[T any](ctx context.Context, db *database, sql string, scan func(rows, *T) error, args ...any) (vs []T, err error) {
	err = db.engine.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		vs, err = list(ctx, q, sql, scan, args...)
		return err
	})
	return vs, err
}

// orNewest is the upper bound of a list that goes backwards from n.
func orNewest(n int64) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return n
}
