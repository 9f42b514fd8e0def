package scanner

import (
	"context"
	"strings"

	"github.com/postern-io/postern/edge/board"
)

// Opener opens a scanner's port.
type Opener func(ctx context.Context, c Config) (board.Port, error)

// OpenPort is the default Opener. The agent connects to hand terminals and does
// not listen: an open port would take events from anyone in the network.
func OpenPort(ctx context.Context, c Config) (board.Port, error) {
	if path, ok := strings.CutPrefix(c.Port, inputPrefix); ok {
		return openInput(path)
	}
	return board.OpenPort(ctx, board.LineConfig{Name: c.Name, Port: c.Port, Baud: c.Baud})
}
