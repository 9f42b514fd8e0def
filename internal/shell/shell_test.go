package shell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandIsQuotedForAShell(t *testing.T) {
	t.Parallel()
	require.Equal(t, `go run ./cmd/edge --data 'it'\''s here' --line tcp://127.0.0.1:7001 'http://[::1]:8080' ''`,
		Command("go run ./cmd/edge", "--data", "it's here", "--line", "tcp://127.0.0.1:7001", "http://[::1]:8080", ""))
}
