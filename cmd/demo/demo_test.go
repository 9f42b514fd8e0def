package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo starts itself again as cloud and agents; so does its test.
func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(child(role))
	}
	os.Exit(m.Run())
}

// A whole day in real time, with killed processes and cut cables: about two
// minutes, most of them waiting.
func TestOneDayAgrees(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a day takes two minutes; it is left out of -short runs")
	}
	var out, errs bytes.Buffer
	err := run(t.Context(), []string{"-once", "-json", "-seed", "7", "-listen", "127.0.0.1:0", "-dir", t.TempDir()}, &out, &errs)
	require.NoError(t, err, "%s%s", out.String(), errs.String())
	var got tally
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.True(t, got.agrees(), "%+v", got)
	require.GreaterOrEqual(t, got.Settled, 9)
}

func TestCountsThatDoNotAgreeAreNoticed(t *testing.T) {
	t.Parallel()
	good := tally{Recorded: 5, Stored: 4, Gaps: 1, Settled: 1, WebhooksSent: 2, WebhooksVerified: 2}
	require.True(t, good.agrees())
	for name, spoil := range map[string]func(*tally){
		"a lost record":         func(t *tally) { t.Stored-- },
		"a lost event":          func(t *tally) { t.Lost++ },
		"settled twice":         func(t *tally) { t.SettledTwice++ },
		"settled over a door":   func(t *tally) { t.SettledOpen++ },
		"a wrong door":          func(t *tally) { t.OpenedWrong++ },
		"an unverified webhook": func(t *tally) { t.WebhooksVerified-- },
		"a forged webhook":      func(t *tally) { t.WebhooksForged++ },
		"nothing happened":      func(t *tally) { *t = tally{} },
	} {
		bad := good
		spoil(&bad)
		require.False(t, bad.agrees(), name)
	}
}
