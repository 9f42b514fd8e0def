package rest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The identity of a container is one line, as labels and lists show it.
func TestContainerIdentityIsOneLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for identity, status := range map[string]int{`PAL 7`: 201, `PAL\n7`: 422, `PAL\u00007`: 422, `PAL\u001b[2J`: 422} {
		a := r.do("POST", "/api/v1/otep/containers", r.provider(), `{"kind":"pallet","scheme":"own","identity":"`+identity+`"}`)
		require.Equal(t, status, a.status, "%q: %s", identity, a.body)
	}
}
