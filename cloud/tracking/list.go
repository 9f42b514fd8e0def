package tracking

import (
	"errors"
	"reflect"

	"github.com/postern-io/postern/cloud"
)

// The lists of a projection are of as many types as there are formats.

func count(list any) int { return reflect.ValueOf(list).Len() }

// reverse turns a list round in place.
func reverse(list any) {
	swap := reflect.Swapper(list)
	for i, j := 0, count(list)-1; i < j; i, j = i+1, j-1 {
		swap(i, j)
	}
}

func isCode(err error, code string) bool {
	var e *cloud.Error
	return errors.As(err, &e) && e.Code == code
}

func tooLarge(what string) error {
	return &cloud.Error{Kind: cloud.TooLarge, Code: codeTooLarge, Details: map[string]any{"path": what}}
}
