package account

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// The trail is read by who, what, object and time, page by page without a gap, and
// as files that say the same; another business's lines are nowhere.
func TestAuditTrail(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d, other *desk) {
		ctx := t.Context()
		begin := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		ch := &cloud.Changes{}
		for i := range 1203 { // of one moment in threes
			ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: 1, At: begin.Add(time.Duration(i/3) * time.Minute), Actor: fmt.Sprint("account:", 10+i%3), Action: []string{"made", "=cmd()"}[i%2], Target: fmt.Sprint("order:", i%50),
				Detail: `{"ip":"192.0.2.7","outcome":"done","what":"line \"` + fmt.Sprint(i) + `\""}`})
		}
		ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: 2, At: begin, Actor: "account:20", Action: "made", Target: "order:1", Detail: "{}"})
		d.write(ch)
		walk := func(in AuditChoice) (out []AuditLine) {
			ask := AuditInput{AuditChoice: in}
			ask.PerPage = ptr(100)
			for {
				page, err := other.a.ListAudits(ctx, d.now(10), ask)
				require.NoError(t, err)
				out = append(out, page.Lines...)
				if page.NextCursor == nil {
					require.Equal(t, len(out), page.Total)
					return out
				}
				ask.Cursor = *page.NextCursor
			}
		}
		all := walk(AuditChoice{})
		require.Len(t, all, 1203)
		for i := range all[1:] {
			require.Greater(t, all[i].ID, all[i+1].ID)
		}
		require.Equal(t, []any{"192.0.2.7", "done", map[string]any{"what": `line "1202"`}}, []any{all[0].IP, all[0].Outcome, all[0].Details})
		require.Equal(t, "ann", *walk(AuditChoice{Actor: "account:10"})[0].ActorName)
		require.Len(t, walk(AuditChoice{Actor: "account:10"}), 401)
		require.Len(t, walk(AuditChoice{Action: "made"}), 602)
		require.Len(t, walk(AuditChoice{Target: "order:7"}), 24)
		require.Len(t, walk(AuditChoice{Target: "order:7", Actor: "account:10", Action: "=cmd()"}), 8)
		require.Len(t, walk(AuditChoice{From: "2026-07-01T12:10:00Z", To: "2026-07-01T12:20:00Z"}), 30)
		require.Len(t, walk(AuditChoice{Actor: "account:11", From: "2026-07-01T12:10:00Z", To: "2026-07-01T12:20:00Z"}), 10)
		_, err := d.a.ListAudits(ctx, d.now(10), AuditInput{AuditChoice: AuditChoice{Actor: "account:10", Action: "made"}})
		require.Equal(t, "VALIDATION_FAILED", code(err))
		mine, err := d.a.ListAudits(ctx, d.now(20), AuditInput{AuditChoice: AuditChoice{Target: "order:1"}})
		require.NoError(t, err)
		require.Len(t, mine.Lines, 1)

		read := func(in ExportInput) string {
			r, err := d.a.ExportAudits(ctx, d.now(10), in)
			require.NoError(t, err)
			raw, err := io.ReadAll(r)
			require.NoError(t, err)
			return string(raw)
		}
		rows, err := csv.NewReader(strings.NewReader(read(ExportInput{}))).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 1204)
		require.Equal(t, []string{"id", "at", "actor", "actor_name", "action", "target", "operation", "surface", "ip", "outcome", "request_id", "details", "pass_id"}, rows[0])
		for i, l := range all {
			action := l.Action
			if action == "=cmd()" {
				action = "'=cmd()" // a spreadsheet would run it
			}
			require.Equal(t, []string{fmt.Sprint(l.ID), l.Actor, action, l.Target}, []string{rows[i+1][0], rows[i+1][2], rows[i+1][4], rows[i+1][5]})
		}
		lines := strings.Split(strings.TrimSpace(read(ExportInput{Format: "jsonl", AuditChoice: AuditChoice{Target: "order:7"}})), "\n")
		require.Len(t, lines, 24)
		var l AuditLine
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &l))
		require.Equal(t, "order:7", l.Target)

		// A person whose rights end while the file is sent gets no more of it.
		r, err := d.a.ExportAudits(ctx, d.now(11), ExportInput{})
		require.NoError(t, err)
		_, err = d.s.ChangeUser(ctx, d.now(10), ChangeUserInput{ID: 11, UserInput: UserInput{Enabled: ptr(false)}})
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.Equal(t, "FORBIDDEN", strings.TrimSpace(fmt.Sprint(err)))
		require.Less(t, strings.Count(string(got), "\n"), 600)
	})
}
