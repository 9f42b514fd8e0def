package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// Tools that are more than one operation, or give something new each time.
func TestToolsThatComeTogether(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	admin := []string{"Authorization", w.box.Admin.Token}
	require.False(t, w.on("/mcp/developer", "update_webhook_settings", `{"settings":{"webhook_sign_secret":"0123456789abcdef","order_status_change_webhook_url":"https://hooks.acme.example/a"}}`, admin...).failed)
	id := w.order("T-1")
	w.good("hold_order", fmt.Sprintf(`{"order_id":%d,"reason":"late","confirm":true}`, id), admin...)
	w.good("release_order", `{"order_ref":"T-1","confirm":true}`, admin...)
	w.good("update_order_note", `{"order_ref":"T-1","note":"Call first"}`, admin...)
	w.good("update_order_note", `{"order_ref":"T-1","note":"Then ring","mode":"append"}`, admin...)
	w.good("update_order_note", `{"order_ref":"T-1","note":"And wait","mode":"append"}`, admin...)

	snap := w.good("order_snapshot", `{"order_ref":"T-1","events_limit":2}`, admin...)
	order := snap["order"].(map[string]any)
	require.Equal(t, "Call first\nThen ring\nAnd wait", order["note"])
	require.Equal(t, "mcp", order["source"])
	require.Len(t, snap["operation_events"], 2, "the last ones")
	require.Equal(t, "information_submitted", snap["tracking"].(map[string]any)["current"])
	require.NotNil(t, snap["tracking"].(map[string]any)["last_event"])
	for _, member := range []string{"driver", "eta", "proof_files_detail", "locker", "third_party", "interception"} {
		require.Contains(t, snap, member)
	}

	line := w.on("/mcp/developer", "get_order_audit_timeline", fmt.Sprintf(`{"order_id":%d}`, id), admin...)
	require.False(t, line.failed, "%s", line.raw)
	kinds := map[string]int{}
	last := time.Time{}
	for _, e := range line.body["entries"].([]any) {
		entry := e.(map[string]any)
		kinds[entry["kind"].(string)]++
		require.NotEmpty(t, entry["title"])
		require.NotNil(t, entry["id"], "%v", entry)
		at, err := time.Parse(time.RFC3339, entry["at"].(string))
		require.NoError(t, err)
		require.False(t, at.Before(last), "oldest first")
		last = at
	}
	require.Equal(t, 6, kinds["operation"])
	require.Positive(t, kinds["tracking"])
	require.Equal(t, 2, kinds["webhook"], "%v", kinds)
	part := w.on("/mcp/developer", "get_order_audit_timeline", `{"order_ref":"T-1","include":["operations"],"limit":3}`, admin...)
	require.Len(t, part.body["entries"], 3)
	require.Equal(t, true, part.body["truncated"])

	empty := w.good("otep_client_locker_storage", fmt.Sprintf(`{"order_id":%d}`, id), admin...)
	require.Empty(t, empty["data"].(map[string]any)["events"], "it was in no locker")
	require.Equal(t, order["tracking_number"], empty["data"].(map[string]any)["subject"].(map[string]any)["tracking_number"])

	many := w.good("bulk_create_orders", fmt.Sprintf(`{"confirm":true,"idempotency_key":"k","orders":[%s,{"type":"D","packages":[]},%s]}`, fmt.Sprintf(anOrder, "T-2"), fmt.Sprintf(anOrder, "T-1")), admin...)
	require.Equal(t, []any{true, 3.0, 1.0, 2.0}, []any{many["result"], many["total"], many["succeeded"], many["failed"]})
	rows := many["results"].([]any)
	require.Equal(t, "VALIDATION_FAILED", rows[1].(map[string]any)["code"])
	require.NotEmpty(t, rows[1].(map[string]any)["errors"])
	require.Equal(t, "DUPLICATE_ORDER_REF", rows[2].(map[string]any)["code"])
	again := w.good("bulk_create_orders", fmt.Sprintf(`{"confirm":true,"idempotency_key":"k","stop_on_error":true,"orders":[%s,{"type":"D","packages":[]},%s]}`, fmt.Sprintf(anOrder, "T-2"), fmt.Sprintf(anOrder, "T-3")), admin...)
	require.Equal(t, rows[0], again["results"].([]any)[0], "a row with a key is made once")
	require.Len(t, again["results"], 2, "stopped")

	for n, want := range map[int]bool{100: false, 101: true} {
		r := w.call("bulk_create_orders", `{"confirm":true,"orders":[`+strings.TrimSuffix(strings.Repeat(`{},`, n), ",")+`]}`, admin...)
		require.Equal(t, want, r.failed, "%d orders: %s", n, r.raw)
	}
	zero := w.good("bulk_create_orders", fmt.Sprintf(`{"confirm":true,"orders":[%s,%s]}`, strings.Replace(fmt.Sprintf(anOrder, "ZZ"), `"ZZ"`, `"Z\u0000"`, 1), fmt.Sprintf(anOrder, "Z-1")), admin...)
	require.Equal(t, []any{true, 1.0, 1.0}, []any{zero["result"], zero["succeeded"], zero["failed"]}, "%v", zero)
	bad := zero["results"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"VALIDATION_FAILED", nil}, []any{bad["code"], bad["order_ref"]})
	require.Contains(t, fmt.Sprint(bad["errors"]), "must not contain the character U+0000.")
	refused := w.call("get_order_detail", `{"order_ref":"T\u0000"}`, admin...)
	require.Contains(t, string(refused.raw), "order_ref must not contain the character U+0000.")
	late := w.good("bulk_create_orders_async", fmt.Sprintf(`{"confirm":true,"orders":[%s,%s]}`, strings.Replace(fmt.Sprintf(anOrder, "ZZ"), `"ZZ"`, `"Z\u0000"`, 1), fmt.Sprintf(anOrder, "Z-2")), admin...)
	ring.Await(t, func() bool {
		r := w.good("get_async_batch_result", fmt.Sprintf(`{"async_id":%q}`, late["asyncId"]), admin...)
		return r["status"] == "completed" && r["failed"] == 1.0
	})

	queued := w.good("bulk_create_orders_async", fmt.Sprintf(`{"confirm":true,"orders":[%s]}`, fmt.Sprintf(anOrder, "T-4")), admin...)
	ring.Await(t, func() bool {
		return w.good("get_async_batch_result", fmt.Sprintf(`{"async_id":%q}`, queued["asyncId"]), admin...)["status"] == "completed"
	})
	require.NotContains(t, w.good("get_async_batch_result", fmt.Sprintf(`{"async_id":%q,"include_results":false}`, queued["asyncId"]), admin...), "results")

	public := w.good("track_package", fmt.Sprintf(`{"tracking_number":%q}`, order["tracking_number"]))
	require.Contains(t, fmt.Sprint(public), order["tracking_number"])
	require.NotContains(t, fmt.Sprint(public), "Ann Lee", "nobody in particular asks")
	quote := w.good("quote_delivery", `{"type":"D","destination":{"postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":1}]}`, admin...)
	require.Contains(t, quote, "rates")
}

// Messages for models are in the language that the connection asks for; codes
// are not.
func TestToolsSpeakTheCallersLanguage(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	id := w.order("L-1")
	german := []string{"Authorization", w.box.Admin.Token, "Accept-Language", "de"}
	r := w.call("cancel_order", fmt.Sprintf(`{"order_id":%d}`, id), german...)
	require.Equal(t, "CONFIRMATION_REQUIRED", r.body["code"])
	require.Contains(t, r.body["message"], "stornieren?")
	r = w.call("hold_order", `{"order_id":1,"until":"morgen"}`, german...)
	require.Contains(t, r.body["message"], "muss JJJJ-MM-TT sein")
	r = w.call("get_orders", `{}`, "Accept-Language", "fr")
	require.Contains(t, errorOf(r.reply)["message"], "jeton d’accès")
	r = w.call("cancel_order", `{"order_id":99999,"confirm":true}`, german...)
	require.Equal(t, "ORDER_NOT_FOUND", r.body["code"])
	require.True(t, strings.HasSuffix(r.body["message"].(string), "find_order hilft beim Finden."), "%s", r.body["message"])
}
