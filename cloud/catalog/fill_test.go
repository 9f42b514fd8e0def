package catalog

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A caller that shortens its list of members leaves those of others as they are.
func TestMembersBelongToTheirCaller(t *testing.T) {
	t.Parallel()
	o := Define(Operation{Name: "things.find"}, func(context.Context, cloud.Caller, struct {
		ID   int64  `path:"id"`
		Name string `json:"name"`
	}) (struct{}, error) {
		return struct{}{}, nil
	}, nil)
	require.Len(t, slices.DeleteFunc(o.Members(), func(m Member) bool { return m.Name == "id" }), 1)
	names := ""
	for _, m := range o.Members() {
		names += m.Name + " "
	}
	require.Equal(t, "id name ", names)
}
