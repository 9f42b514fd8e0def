package pulses

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
)

func TestPulseTraceAppendsOneLineForEachPulse(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "pulses.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("{\"door\":9}\n"), 0o600))
	p, err := Open(name, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := edge.PulseTrace{At: at, Written: 56, Board: "A", Channel: 4, Door: 3,
		Authority: edge.Authority{Boot: 2, OpeningID: "op_1", Act: "cmd-1", Kind: edge.ByCode, CodeNumber: 7, Mono: 55}}
	p.Append(want)
	p.Append(edge.PulseTrace{At: at, Door: 4})
	require.NoError(t, p.Close())
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	require.Len(t, lines, 3, "what was there stays")
	require.JSONEq(t, `{"at":"2026-01-02T03:04:05.000000006Z","written":56,"board":"A","channel":4,"door":3,"boot":2,"opening_id":"op_1","act":"cmd-1","kind":"code","code_number":7,"mono":55}`, string(lines[1]))
	var got edge.PulseTrace
	require.NoError(t, json.Unmarshal(lines[1], &got))
	require.Equal(t, want, got)
}
