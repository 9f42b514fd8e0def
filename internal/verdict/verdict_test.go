package verdict

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// noted is a test that keeps its attributes.
type noted struct {
	testing.TB
	attrs []string
}

func (n *noted) Attr(key, value string) { n.attrs = append(n.attrs, key+"="+value) }

func TestVerdictsAreAttributes(t *testing.T) {
	n := &noted{TB: t}
	RecordPages(n, "pages", nil)
	require.Empty(t, n.attrs, "no page was judged")
	RecordPages(n, "pages", map[string][]string{"home": {}, "login": {"contrast: 3"}, "map": nil})
	require.Len(t, n.attrs, 1)
	var v Verdict
	require.NoError(t, json.Unmarshal([]byte(n.attrs[0][len(Attr)+1:]), &v))
	require.Equal(t, Verdict{Axe, "pages", 2, 3}, v)
}
