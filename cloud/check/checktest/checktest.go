// Package checktest calls operations in tests as every face does: the input is
// checked by its tags first.
package checktest

import (
	"context"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Given is an operation behind the check of its input.
func Given[In, Out any](fn func(context.Context, cloud.Caller, In) (Out, error)) func(context.Context, cloud.Caller, In) (Out, error) {
	return func(ctx context.Context, c cloud.Caller, in In) (out Out, err error) {
		if err := check.Input(&in); err != nil {
			return out, err
		}
		return fn(ctx, c, in)
	}
}
