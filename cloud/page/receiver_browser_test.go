package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// In a real browser, without script and on a telephone: an operator sees a
// receiver that fails, tests it, has it looked over, pauses and resumes it, gives
// it a new secret and sends what it missed again, one and many. Who may not finds
// no button and is refused; another business sees nothing.
func TestReceiversInARealBrowser(t *testing.T) {
	ring.SkipUnlessFull(t, "its pages are tested without a browser, others in one")
	w, s, f := server(t, nil)
	fillHooks(t, w)
	p := live(t, w, f)
	p.becomes(true, false)
	now := time.Now().UTC().Truncate(time.Millisecond)
	_, err := w.DB.NoteHealth(t.Context(), []cloud.EndpointTally{{EndpointID: 60, Hour: now.Unix() / 3600, Attempts: 12, Failures: 12, Streak: 12, FailedAt: now, FailingSince: now.Add(-time.Hour)}})
	require.NoError(t, err)
	var email string
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) error {
		a, err := v.Account(23) // whose token is OtherAdmin
		email = a.Email
		return err
	}))
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { p.becomes(q.URL.Path != "/well", false) }))
	defer control.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.service.Run(ctx, slog.New(slog.DiscardHandler)) }()
	defer func() {
		stop()
		require.NoError(t, <-done)
	}()
	out := drive(t, s, []string{"PEOPLE=" + strings.Join([]string{w.Emails[cloud.ClientAdmin], w.Emails[cloud.ClientEmployee], email}, " "), "RECEIVER=60", fmt.Sprint("DELIVERY=", hookGone), "CONTROL=" + control.URL},
		"receivers.mjs", webtest.Password)
	var got struct {
		Axe      map[string][]string
		Overflow []string
		Operator struct {
			List, Why, Sick, Well, Checks, Paused, Resumed, Replay, Count, Job, Sent string
			Secret, Again, Forged                                                    int
		}
		Employee struct {
			Buttons int
			Forged  []int
		}
		Stranger struct{ List, Receiver, Delivery int }
	}
	require.NoError(t, json.Unmarshal(out, &got))
	require.Len(t, got.Axe, 3*8+1)
	for page, violations := range got.Axe {
		require.Empty(t, violations, page)
	}
	require.Empty(t, got.Overflow, "pages that scroll sideways")
	o := got.Operator
	require.Equal(t, "▲ Failing", o.List)
	require.Contains(t, o.Why, "12 of 12 attempts of the last 24 hours failed.")
	require.Contains(t, o.Why, "Failures since the last success: 12")
	require.Contains(t, o.Sick, "The test did not arrive.")
	require.Contains(t, o.Well, "The test arrived.")
	require.Contains(t, o.Checks, "did everything right")
	require.Equal(t, "‖ Paused", o.Paused)
	require.Contains(t, o.Resumed, "on its way")
	require.Equal(t, 43, o.Secret)
	require.Zero(t, o.Again, "it is shown once")
	require.Contains(t, o.Replay, "on its way once more")
	require.Equal(t, "Deliveries that would be sent again: 1", o.Count)
	require.Equal(t, "done", o.Job)
	require.Equal(t, "1 of 1 are on their way", o.Sent)
	require.Equal(t, 403, o.Forged)
	require.Zero(t, got.Employee.Buttons)
	for _, status := range got.Employee.Forged {
		require.Equal(t, 403, status)
	}
	require.Len(t, got.Employee.Forged, 8)
	require.Equal(t, struct{ List, Receiver, Delivery int }{0, 404, 404}, got.Stranger)
}
