package tracking_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/protocol/otep"
)

func TestConformanceInWords(t *testing.T) {
	t.Parallel()
	answer := func(lang, body string) string {
		r, err := otep.Validate([]byte(body), time.Date(2026, 6, 11, 0, 0, 0, 0, time.UTC))
		require.NoError(t, err)
		b, err := json.Marshal(tracking.Conform(lang, r))
		require.NoError(t, err)
		return string(b)
	}
	require.JSONEq(t, `{"result":true,"conformant":true,"otep_version":"0.1","level":1,"errors":[],"warnings":[
		{"path":"profile","message":"profile is missing, 'parcel' is assumed","code":"V05","hint":"Name the profile, for example \"parcel\"."}]}`,
		answer(locale.English, `{"otep_version":"0.1","subject":{"order_id":1},"events":[{"occurred_at":"2026-06-10T00:00:00Z","status_code":"delivered","source":{"type":"carrier"}}]}`))
	require.JSONEq(t, `{"result":true,"conformant":false,"otep_version":"0.1","level":0,"warnings":[],"errors":[
		{"path":"events[0].occurred_at","message":"occurred_at is required (ISO-8601 with offset)","code":"V11","hint":"Bitte angeben, wann es geschah, zum Beispiel \"2026-06-10T11:30:00-04:00\"."},
		{"path":"events[0].phase","message":"phase 'transit' disagrees with status_code (expected 'delivered')","code":"V21","hint":"Bitte phase „delivered“ schreiben oder weglassen: Sie folgt aus dem status_code."}]}`,
		answer(locale.German, `{"otep_version":"0.1","profile":"parcel","subject":{"order_id":1},"events":[{"phase":"transit","status_code":"delivered","source":{"type":"carrier"}}]}`))

	r, err := otep.Validate([]byte(`{"otep_version":"0.1","profile":"parcel","subject":{"order_id":1},"events":[5]}`), time.Time{})
	require.NoError(t, err)
	require.Equal(t, "timelines[3].events[0]", tracking.Findings(locale.French, "timelines[3].", r.Errors)[0].Path)
}
