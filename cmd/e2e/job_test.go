package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
)

// The built cloud, killed without warning while it checks and imports a file: it goes
// on by itself, and in the end each good line is an order once.
func TestKilledCloudImportsEachLineOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	t.Parallel()
	const lines, bad = 400, 40
	kills := ring.Count(1, 25)
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 12))
	dir, bin, addr, mqtt := t.TempDir(), build(t), freeAddress(t), freeAddress(t)
	srv, err := server.New(t.Context(), server.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	box, err := srv.Sandbox(t.Context(), server.SandboxConfig{})
	require.NoError(t, err)
	require.NoError(t, errors.Join(srv.Broker.Close(), srv.Store.Close()))

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	call := func(method, path, kind, body string) (int, map[string]any) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+box.Admin.Token)
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Idempotency-Key", "import")
		resp, err := client.Do(req)
		if err != nil {
			return 0, nil
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		var m map[string]any
		if err != nil || json.Unmarshal(raw, &m) != nil {
			return 0, nil
		}
		return resp.StatusCode, m
	}
	start := func() *process {
		return bin.start(t, "cloud", "--data", dir, "--listen", addr, "--mqtt-listen", mqtt)
	}
	var csv strings.Builder
	csv.WriteString("type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight\n")
	for i := range lines {
		weight := "1"
		if i%(lines/bad) == 0 {
			weight = "heavy"
		}
		fmt.Fprintf(&csv, "D,,Ada Moreau,+14165550123,100 Queen St W,Toronto,ON,M5H 2N2,CA,%s\n", weight) // no reference keeps them apart
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	require.NoError(t, form.WriteField("noun", "order"))
	part, err := form.CreateFormFile("file", "orders.csv")
	require.NoError(t, err)
	_, _ = io.WriteString(part, csv.String())
	require.NoError(t, form.Close())

	p := start()
	var id string
	ring.Await(t, func() bool {
		status, m := call("POST", "/api/v1/jobs/import", form.FormDataContentType(), body.String())
		if status == 201 {
			id, _ = m["job"].(map[string]any)["job_id"].(string)
		} else if status != 0 {
			require.FailNow(t, "refused", "%d %v", status, m)
		}
		return status == 201
	}, "the file is not taken")
	job := func() (out map[string]any) {
		ring.Await(t, func() bool {
			_, m := call("GET", "/api/v1/jobs/"+id, "application/json", "")
			out, _ = m["job"].(map[string]any)
			return out != nil
		}, "the job is not answered")
		return out
	}
	until := func(state string) map[string]any {
		for range kills {
			job()
			time.Sleep(time.Duration(rnd.Int64N(int64(60 * time.Millisecond))))
			p.kill(t)
			p = start()
		}
		ring.Await(t, func() bool { return job()["status"] == state }, "the job does not come to be ", state)
		return job()
	}
	j := until("checked")
	require.EqualValues(t, lines-bad, j["good"])
	status, m := call("POST", "/api/v1/jobs/"+id+"/start", "application/json", fmt.Sprintf(`{"digest":%q,"count":%d}`, j["digest"], lines-bad))
	require.Equal(t, 200, status, "%v", m)
	j = until("completed")
	require.EqualValues(t, lines-bad, j["succeeded"])
	require.EqualValues(t, 0, j["failed"])
	_, m = call("GET", "/api/v1/orders", "application/json", "")
	require.EqualValues(t, lines-bad, m["total"])
	p.stop(t)
}
