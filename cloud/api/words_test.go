package api_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// verbs are those that summaries begin with: one for each kind of act.
var verbs = []string{"Accept", "Add", "Announce", "Approve", "Assign", "Cancel", "Check", "Clear", "Close", "Confirm", "Correct", "Count", "Create", "Decline", "Delete", "Dispatch", "Edit", "Enable", "Enrol",
	"Execute", "Extend", "Get", "Grant", "Hand", "Hold", "Override", "Reschedule", "Take", "Ingest", "Intercept", "List", "Log", "Mark", "Open", "Pause", "Query", "Rate", "Reassign", "Record", "Register", "Reject", "Release", "Remove", "Reopen",
	"Prepare", "Match", "Retry", "Replace", "Replay", "Report", "Reroute", "Resume", "Retire", "Revoke", "Rotate", "Save", "Search", "Send", "Snooze", "Start", "Suspend", "Test", "Block", "Unblock", "Unregister", "Update", "Upload", "Validate", "Withdraw"}

// refused are words that no name, summary or description has: a subject is a
// noun, and an endpoint gets events.
var refused = regexp.MustCompile(`(?i)\b(hook|hears|told|nobody|somebody|whoever)\b`)

// A summary is an imperative and a resource.
func TestSummariesAreImperatives(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	seen := map[string]string{}
	for _, o := range x.table.Operations() {
		verb, _, _ := strings.Cut(o.Summary, " ")
		require.True(t, slices.Contains(verbs, verb), "%s: %q begins with no verb of the list", o.Name, o.Summary)
		require.Greater(t, len(strings.Fields(o.Summary)), 1, "%s: %q names no resource", o.Name, o.Summary)
		require.LessOrEqual(t, len(o.Summary), 80, o.Name)
		require.NotRegexp(t, refused, o.Summary, o.Name)
		require.NotRegexp(t, refused, o.Name, o.Name)
		require.NotRegexp(t, refused, o.Description, o.Name)
		require.Regexp(t, `^\p{Lu}.*\.$`, o.Description, o.Name)
		require.NotRegexp(t, `(^|\. )(What|Who|Whether|Those|How)\b`, o.Description, "%s: the subject of a sentence is a noun", o.Name)
		require.LessOrEqual(t, len(o.Description), 300, o.Name)
		if other := seen[o.Tag+o.Summary]; other != "" {
			require.Fail(t, "two operations of an area have one summary", "%s and %s: %q", o.Name, other, o.Summary)
		}
		seen[o.Tag+o.Summary] = o.Name
	}
}
