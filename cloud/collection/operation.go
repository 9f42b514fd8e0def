package collection

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Operation is what a row of the catalogue runs.
type Operation[In, Out any] = func(ctx context.Context, c cloud.Caller, in In) (Out, error)

// ByID names a row of a kind.
type ByID[R cloud.Row] struct {
	ID int64 `path:"id"`
}

// Key is the row's id.
func (b ByID[R]) Key() int64 { return b.ID }

// MakeList makes the operation that lists rows: like is the example that an input asks
// for, show an element of the answer and answer the whole of it. Errors: those of List.
func MakeList[In Paged, R cloud.Row, P kept[R], O, Out any](s Store, like func(In) R, show func(R, *time.Location) O, answer func([]O, check.PageOutput) Out) Operation[In, Out] {
	return func(ctx context.Context, c cloud.Caller, in In) (Out, error) {
		list, page, err := List[R, P](ctx, s, c, in, like(in), show)
		return answer(list, page), err
	}
}

// MakeFind makes the operation that shows one row. Error: …_NOT_FOUND.
func MakeFind[R cloud.Row, P kept[R], Out any](s Store, answer func(R, *time.Location) Out) Operation[ByID[R], Out] {
	return func(ctx context.Context, c cloud.Caller, in ByID[R]) (Out, error) {
		return Find[R, P](ctx, s, c, in.ID, answer)
	}
}

// MakeCreate makes the operation that creates a row, which an input fills. Errors: those
// of fill, …_EXISTS.
func MakeCreate[In any, R cloud.Row, P kept[R], Out any](s Store, fill func(In, *R) error, answer func(R, *time.Location) Out) Operation[In, Out] {
	return func(ctx context.Context, c cloud.Caller, in In) (Out, error) {
		return Create[R, P](ctx, s, c, func(r *R) error { return fill(in, r) }, answer)
	}
}

// MakeChange makes the operation that changes the row that an input names. Errors:
// those of fill, …_NOT_FOUND, …_EXISTS.
func MakeChange[In interface{ Key() int64 }, R cloud.Row, P kept[R], Out any](s Store, fill func(In, *R) error, answer func(R, *time.Location) Out) Operation[In, Out] {
	return func(ctx context.Context, c cloud.Caller, in In) (Out, error) {
		return Change[R, P](ctx, s, c, in.Key(), func(r *R) error { return fill(in, r) }, answer)
	}
}

// MakeRemove makes the operation that removes a row. Error: …_NOT_FOUND.
func MakeRemove[R cloud.Row, P kept[R]](s Store) Operation[ByID[R], Done] {
	return func(ctx context.Context, c cloud.Caller, in ByID[R]) (Done, error) {
		return Remove[R, P](ctx, s, c, in.ID)
	}
}
