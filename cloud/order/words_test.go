package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
)

// What was done to an order has words in every language.
func TestOperationsHaveWords(t *testing.T) {
	for _, name := range operations {
		key := "operation." + name
		require.NotEqual(t, key, locale.Word(locale.English, key))
	}
}
