package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
)

// Whatever changes something has a name in every language: the audit trail and approvals
// show it.
func TestEveryWriteHasAName(t *testing.T) {
	t.Parallel()
	for _, o := range newWorld(t).table.Operations() {
		key := "verb." + o.Name
		if o.Method != "GET" && locale.Action(locale.German, o.Name) == "" {
			require.NotEqual(t, key, locale.Word(locale.German, key), "%s has no name", o.Name)
		}
	}
}
