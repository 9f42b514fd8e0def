package server

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/webhook/webhooktest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// The parser of the specification's authors, with all of its rules, finds
// nothing to object to, and the messages that are there; it does find what is
// wrong in a broken document.
func TestAsyncAPIBeforeItsParser(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "the description is compared with the one that was published")
	type parsed struct {
		Diagnostics, Messages, Channels []string
		Operations                      int
	}
	parse := func(doc []byte) (v parsed) {
		require.NoError(t, json.Unmarshal(webhooktest.Node(t, "asyncapi.mjs", doc), &v))
		return v
	}
	raw := served(t)
	v := parse(raw)
	verdict.RecordTest(t, "@asyncapi/parser", "AsyncAPI document, whole")
	require.Len(t, v.Diagnostics, 1, "%v", v.Diagnostics)
	require.Contains(t, v.Diagnostics[0], "asyncapi-latest-version", "the version is 3.0.0 on purpose")
	var want []string
	for _, e := range HookEvents() {
		want = append(want, e.Name)
	}
	slices.Sort(v.Messages)
	require.ElementsMatch(t, want, slices.Compact(v.Messages))
	require.Equal(t, len(want), v.Operations)
	require.Len(t, v.Channels, 8)

	broken := parse(bytes.Replace(raw, []byte(`"action":"send"`), []byte(`"action":"shout"`), 1))
	require.Contains(t, strings.Join(broken.Diagnostics, "\n"), "error")
}
