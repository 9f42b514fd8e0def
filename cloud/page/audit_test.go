package page_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// The audit page shows who did what with before and after, leads to the person's last
// hour, and gives the chosen lines as a file; only to readers of the trail.
func TestAuditPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	line := func(b cloud.BusinessID, actor, action, target, detail string, at time.Time) cloud.Audit {
		return cloud.Audit{BusinessID: b, At: at, Actor: actor, Action: action, Target: target, Detail: detail}
	}
	r.w.Write(t, cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{
		line(r.w.Business.ID, "account:1", "order_driver assigned", "order:7", `{"before":1,"after":11,"tool":"<b>assign</b>","outcome":"done","surface":"mcp","ip":"192.0.2.7"}`, at),
		line(r.w.Business.ID, "account:1", "older_step", "order:7", `{}`, at.Add(-2*time.Hour)),
		line(r.w.Other.ID, "account:1", "foreign_step", "order:9", `{}`, at),
	}}})
	require.Equal(t, 303, r.do("GET", "/console/audit", nil).status)
	require.Equal(t, 303, r.do("GET", "/console/audit/export.csv", nil).status)
	r.signedIn()
	g := r.do("GET", "/console/audit", nil)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, "Order: Driver assigned")
	require.Contains(t, g.body, `href="/console/orders/7"`)
	require.Contains(t, g.body, "192.0.2.7")
	require.Contains(t, g.body, "&lt;b&gt;assign")
	require.Regexp(t, `Before:</span> [^<]+ <span aria-hidden="true">→</span> <span class="hush">After:</span> <b>[^<]+</b>`, g.body)
	require.Contains(t, g.body, "Older step")
	require.NotContains(t, g.body, "Foreign step")

	hours := regexp.MustCompile(`href="(/console/audit\?[^"]*from=[^"]*)"`).FindAllStringSubmatch(g.body, -1)
	require.NotEmpty(t, hours)
	for _, m := range hours {
		to := html.UnescapeString(m[1])
		q, err := url.Parse(to)
		require.NoError(t, err)
		if from, err := time.Parse(time.RFC3339, q.Query().Get("from")); err != nil || q.Query().Get("actor") != "account:1" || !from.Equal(at.Add(-time.Hour)) {
			continue
		}
		g = r.do("GET", to, nil)
		require.Contains(t, g.body, "Order: Driver assigned")
		require.NotContains(t, g.body, "Older step", "it is two hours older")
		file := r.do("GET", html.UnescapeString(regexp.MustCompile(`href="(/console/audit/export\.csv\?[^"]*)"`).FindStringSubmatch(g.body)[1]), nil)
		require.Equal(t, 200, file.status)
		require.Contains(t, file.header("Content-Disposition"), "audit.csv")
		require.Contains(t, file.body, "order_driver assigned")
		require.NotContains(t, file.body, "older_step")
		hours = nil
		break
	}
	require.Empty(t, hours, "the line's own link was not there")
	require.Contains(t, r.do("GET", "/console/audit?actor=account%3A1&action=older_step", nil).body, `role="alert"`)
	require.True(t, strings.HasPrefix(r.do("GET", "/console/audit.csv", nil).header("Content-Type"), "text/csv"), "the generated list as a file stays")

	staff := newRig(t, nil)
	require.Equal(t, 303, staff.signIn(staff.w.Emails[cloud.ClientEmployee]).status)
	for _, path := range []string{"/console/audit", "/console/audit/export.csv"} {
		require.Equal(t, 403, staff.do("GET", path, nil).status, path)
	}
}
