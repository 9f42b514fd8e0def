package agentdocs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
)

// A client that sends many hosts makes us keep no more than a few.
func TestFewAddressesAreKept(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Catalog: catalog.New()})
	require.NoError(t, err)
	for i := range 1000 {
		base := fmt.Sprintf("http://h%d.example", i)
		f := s.once(base, "x", func() File { return File{Tag: base} })
		require.Equal(t, base, f.Tag)
		require.LessOrEqual(t, len(s.made), maxBases)
	}
}
