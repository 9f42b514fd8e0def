package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// runJobs runs jobs until the test ends, or until stop is called.
func (x *world) runJobs() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = x.jobs.Run(ctx) }()
	stop = func() { cancel(); <-done }
	x.t.Cleanup(stop)
	return stop
}

// jobPause is that between two looks at a job.
const jobPause = 20 * time.Millisecond

// jobIn waits until a job is in one of some states.
func (x *world) jobIn(token, id string, states ...string) map[string]any {
	x.t.Helper()
	pause := jobPause
	for end := time.Now().Add(150 * time.Second); ; time.Sleep(pause) {
		pause = min(2*pause, 20*jobPause)
		out := x.made("GET", "/api/v1/jobs/"+id, token, "")["job"].(map[string]any)
		for _, s := range states {
			if out["status"] == s {
				return out
			}
		}
		require.True(x.t, time.Now().Before(end), "%v", out)
	}
}

func (x *world) rowsOf(token, id, state string) []any {
	return x.made("GET", "/api/v1/jobs/"+id+"/rows?per_page=200&state="+state, token, "")["rows"].([]any)
}

// upload sends a file to be imported.
func (x *world) upload(token, noun string, file []byte) answer {
	x.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	require.NoError(x.t, m.WriteField("noun", noun))
	require.NoError(x.t, m.WriteField("name", "orders.csv"))
	part, err := m.CreateFormFile("file", "orders.csv")
	require.NoError(x.t, err)
	_, _ = part.Write(file)
	require.NoError(x.t, m.Close())
	return x.do("POST", "/api/v1/jobs/import", token, body.String(), "Content-Type", m.FormDataContentType())
}

func ids(list []string) string { return `["` + strings.Join(list, `","`) + `"]` }

// A verb over records is tried for each, started with what was shown, and done once a
// record; records that changed since, or that cannot be done, say why.
func TestAVerbOverManyRecords(t *testing.T) { onBoth(t, manyRecords) }

func manyRecords(t *testing.T, x *world) {
	x.runJobs()
	me := x.login(x.token(admin))
	var orders []string
	for range 6 {
		id, _ := x.order(cloud.OrderNew)
		orders = append(orders, id)
	}
	x.made("POST", "/api/v1/orders/"+orders[0]+"/cancel", me, `{"reason":"before"}`)
	made := x.made("POST", "/api/v1/jobs", me, `{"noun":"order","operation":"orders.cancel","ids":`+ids(append(orders, "987654"))+`,"input":{"reason":"together"}}`)["job"].(map[string]any)
	id := made["job_id"].(string)
	j := x.jobIn(me, id, "checked")
	require.EqualValues(t, 5, j["good"])
	require.EqualValues(t, 2, j["refused"])
	for _, r := range x.rowsOf(me, id, "refused") {
		require.NotEmpty(t, r.(map[string]any)["message"])
	}
	require.Equal(t, "NEW_ORDER", x.read("/api/v1/orders/"+orders[1], "order", "order_status"), "nothing is written by a check")

	// Another person changes one of them in between.
	x.made("PATCH", "/api/v1/orders/"+orders[1], me, `{"note":"changed"}`)
	refuse := func(body, code string) {
		t.Helper()
		a := x.do("POST", "/api/v1/jobs/"+id+"/start", me, body)
		require.Equal(t, code, a.code(), "%s", a.body)
	}
	refuse(`{"digest":"x"}`, "APPROVAL_CHANGED")
	digest := j["digest"].(string)
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+digest+`"}`)
	refuse(`{"digest":"`+digest+`"}`, "JOB_STATE_CONFLICT")
	j = x.jobIn(me, id, "completed")
	require.EqualValues(t, 4, j["succeeded"])
	require.EqualValues(t, 1, j["failed"])
	require.Equal(t, "NEW_ORDER", x.read("/api/v1/orders/"+orders[1], "order", "order_status"), "it is not what was shown")
	require.Contains(t, x.rowsOf(me, id, "failed")[0].(map[string]any)["message"], "changed")
	for _, o := range orders[2:] {
		require.Equal(t, "CANCELLED", x.read("/api/v1/orders/"+o, "order", "order_status"))
	}

	// Others see nothing of it, and keys prepare none.
	for name, token := range map[string]string{"other business": x.w.OtherAdmin, "customer": x.token(cloud.Customer)} {
		require.Equal(t, "JOB_NOT_FOUND", x.do("GET", "/api/v1/jobs/"+id, token, "").code(), name)
		require.Equal(t, "JOB_NOT_FOUND", x.do("GET", "/api/v1/jobs/"+id+"/rows", token, "").code(), name)
		require.Equal(t, "JOB_NOT_FOUND", x.do("POST", "/api/v1/jobs/"+id+"/retry", token, "{}").code(), name)
	}
	key := x.made("POST", "/api/v1/user/api-keys", me, `{"name":"k"}`)
	raw := key["token"].(string)
	require.Equal(t, "JOB_NEEDS_PERSON", x.do("POST", "/api/v1/jobs", raw, `{"noun":"order","operation":"orders.cancel","ids":["1"]}`).code())
	require.Equal(t, "VALIDATION_FAILED", x.do("POST", "/api/v1/jobs", me, `{"noun":"order","operation":"orders.delete","ids":["1"]}`).code(), "it is for one alone")
}

// More than fifty rows want their number, and all that match a filter are taken.
func TestTheNumberIsTyped(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	x.runJobs()
	me := x.login(x.token(admin))
	for range 51 {
		x.order(cloud.OrderNew)
	}
	made := x.made("POST", "/api/v1/jobs", me, `{"noun":"order","operation":"orders.cancel","filter":"status_ids=1","all":true,"input":{"reason":"together"}}`)["job"].(map[string]any)
	id := made["job_id"].(string)
	j := x.jobIn(me, id, "checked")
	good := int(j["good"].(float64))
	require.GreaterOrEqual(t, good, 51)
	start := func(more string) answer {
		return x.do("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"`+more+`}`)
	}
	require.Equal(t, "VALIDATION_FAILED", start("").code())
	require.Equal(t, "VALIDATION_FAILED", start(`,"count":50`).code())
	require.Equal(t, 200, start(`,"count":`+strconv.Itoa(good)).status)
	require.EqualValues(t, good, x.jobIn(me, id, "completed")["succeeded"])
}

// The answer of a decision about a job is kept with the decision: whatever becomes of its
// process, a repeat is answered alike.
func TestADecisionAboutAJobKeepsItsAnswer(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	order, _ := x.order(cloud.OrderNew)
	p := x.signIn("admin", x.token(admin))
	made := x.made("POST", "/api/v1/jobs", p.session, `{"noun":"order","operation":"orders.cancel","ids":["`+order+`"],"input":{"reason":"once"}}`)["job"].(map[string]any)
	now := time.Now().UTC().Truncate(time.Millisecond)
	once := &cloud.Once{ID: cloud.CallID{1}, At: now, Until: now.Add(time.Minute), Bare: true, Encode: json.Marshal}
	out, err := x.jobs.Cancel(cloud.WithCall(t.Context(), &cloud.Call{Operation: "jobs.cancel", Once: once}), p.caller, job.ByID{ID: made["job_id"].(string)})
	require.NoError(t, err)
	kept, err := x.w.DB.FindCall(t.Context(), once.ID, now)
	require.NoError(t, err)
	want, err := json.Marshal(out)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(kept.Answer))
}

// The rights of the person count at the time at which a row is run: one that is taken in
// the middle ends the job with that reason, and nothing more is done.
func TestARightThatEndsInTheMiddle(t *testing.T) { onBoth(t, rightEnds) }

func rightEnds(t *testing.T, x *world) {
	stop := x.runJobs()
	p := x.signIn("employee", x.token(cloud.ClientEmployee), "orders:read", "orders:write")
	var orders []string
	for range 4 {
		id, _ := x.order(cloud.OrderNew)
		orders = append(orders, id)
	}
	id := x.made("POST", "/api/v1/jobs", p.session, `{"noun":"order","operation":"orders.cancel","ids":`+ids(orders)+`,"input":{"reason":"together"}}`)["job"].(map[string]any)["job_id"].(string)
	j := x.jobIn(p.session, id, "checked")
	stop()
	x.made("POST", "/api/v1/jobs/"+id+"/start", p.session, `{"digest":"`+j["digest"].(string)+`"}`)
	x.login(x.token(cloud.ClientEmployee), "orders:read")
	x.runJobs()
	j = x.jobIn(p.session, id, "failed")
	require.Contains(t, j["reason"], "orders:write")
	require.EqualValues(t, 0, j["succeeded"])
	require.Equal(t, "NEW_ORDER", x.read("/api/v1/orders/"+orders[0], "order", "order_status"))

	// Once it is given again, what was left is done.
	require.Equal(t, 403, x.do("POST", "/api/v1/jobs/"+id+"/retry", p.session, "{}").status)
	x.login(x.token(cloud.ClientEmployee), "orders:read", "orders:write")
	x.made("POST", "/api/v1/jobs/"+id+"/retry", p.session, "{}")
	require.EqualValues(t, 4, x.jobIn(p.session, id, "completed")["succeeded"])
}

// line is a line of a file with orders.
func line(ref, name, phone, weight string) string {
	return fmt.Sprintf("D,%s,%q,%s,100 Queen St W,Toronto,ON,M5H 2N2,CA,%s\n", ref, name, phone, weight)
}

// A file is read, matched, checked and mended; the good lines are imported once, in
// whatever alphabet and however long names are.
func TestAFileOfOrders(t *testing.T) { onBoth(t, fileOfOrders) }

func fileOfOrders(t *testing.T, x *world) {
	x.runJobs()
	me := x.login(x.token(admin))
	file := []byte("type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight,colour\n" +
		line("F-1", "Ada Moreau", "+14165550123", "2.5") + line("F-2", "שרה כהן", "'+14165550123", "1,5") +
		line("F-3", strings.Repeat("n", 300), "+14165550123", "1") + line("F-4", "=cmd|' /C calc'!A0", "+14165550123", "1") + "Z" + line("F-5", "Bad type", "+14165550123", "1")[1:])
	a := x.upload(me, "order", file)
	require.Equal(t, 201, a.status, "%s", a.body)
	id := at(a.json, "job", "job_id").(string)
	j := x.jobIn(me, id, "checked")
	require.Equal(t, []any{"type", "order_ref", "recipient.name", "recipient.phone", "recipient.address_line1", "recipient.city", "recipient.province", "recipient.postal_code", "recipient.country", "packages[0].weight", ""}, j["columns"])
	bad := x.rowsOf(me, id, "refused")
	require.Len(t, bad, 2, "%v", bad)
	long, kind := bad[0].(map[string]any), bad[1].(map[string]any)
	require.EqualValues(t, 3, long["row"])
	require.Equal(t, []any{"recipient.name", "Recipient · Name"}, []any{at(long["errors"].([]any)[0], "path"), at(long["errors"].([]any)[0], "column")})
	require.EqualValues(t, 5, kind["row"])
	require.Contains(t, kind["errors"].([]any)[0].(map[string]any)["choices"], "Delivery")

	// One is mended in place.
	cells := `["D","F-5","Good now","+14165550123","100 Queen St W","Toronto","ON","M5H 2N2","Kanada","1"]` // a country by its name in some language
	j = x.made("PUT", "/api/v1/jobs/"+id+"/rows/5", me, `{"cells":`+cells+`}`)["job"].(map[string]any)
	require.EqualValues(t, 4, j["good"])
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`)
	j = x.jobIn(me, id, "completed")
	require.EqualValues(t, 4, j["succeeded"], "%v", x.rowsOf(me, id, "failed"))
	made := x.rowsOf(me, id, "done")
	record := made[len(made)-1].(map[string]any)["record_id"].(string)
	require.Equal(t, "CA", at(x.made("GET", "/api/v1/orders/"+record, me, ""), "order", "recipient", "country"))
	require.Equal(t, "JOB_STATE_CONFLICT", x.do("PUT", "/api/v1/jobs/"+id+"/rows/3", me, `{"cells":["D"]}`).code())

	// The same file again: what was imported is not imported twice.
	again := at(x.upload(me, "order", file).json, "job", "job_id").(string)
	j = x.jobIn(me, again, "checked")
	require.EqualValues(t, 0, j["good"])
	require.Equal(t, "JOB_EMPTY", x.do("POST", "/api/v1/jobs/"+again+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`).code())

	// A file without a name is imported like one with a name.
	header := strings.SplitAfter(string(file), "\n")[0]
	a = x.do("POST", "/api/v1/jobs/import", me, fileOf("order", header+line("F-6", "Ada Moreau", "+14165550123", "1")), "Content-Type", "multipart/form-data; boundary=a-file-of-records")
	require.Equal(t, 201, a.status, "%s", a.body)
	id = at(a.json, "job", "job_id").(string)
	j = x.jobIn(me, id, "checked")
	require.Equal(t, "file.csv", j["file_name"])
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`)
	require.EqualValues(t, 1, x.jobIn(me, id, "completed")["succeeded"])

	require.Equal(t, 201, x.upload(x.w.OtherAdmin, "order", file).status, "another business has files of its own")
	require.Equal(t, 403, x.upload(x.token(cloud.Broker), "order", file).status, "contractors make no orders")
	require.Equal(t, 422, x.upload(me, "order", []byte("type\n")).status)
	require.Equal(t, 422, x.upload(me, "driver", file).status)
}

// What is wrong with many lines is said once, and one value mends all of them: of a
// member whose column has something else, and of one that has no column. Lines without
// that problem keep what they say, and nothing is started by it.
func TestOneValueMendsManyLines(t *testing.T) { onBoth(t, oneValue) }

func oneValue(t *testing.T, x *world) {
	x.runJobs()
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	me, file := p.session, "type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,packages.weight\n"
	for n := range 120 {
		kind := "Z"
		if n%10 == 0 {
			kind = "D"
		}
		file += fmt.Sprintf("%s,V-%d,Ada Moreau,+14165550123,100 Queen St W,Toronto,ON,M5H 2N2,1\n", kind, n)
	}
	id := at(x.upload(me, "order", []byte(file)).json, "job", "job_id").(string)
	require.EqualValues(t, 120, x.jobIn(me, id, "checked")["refused"])
	problems := func() map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, y := range x.made("GET", "/api/v1/jobs/"+id+"/problems", me, "")["problems"].([]any) {
			y := y.(map[string]any)
			out[y["path"].(string)] = y
		}
		return out
	}
	got := problems()
	require.Len(t, got, 2, "%v", got)
	require.EqualValues(t, 108, got["type"]["rows"])
	require.EqualValues(t, 2, got["type"]["first_row"])
	require.Contains(t, got["type"]["choices"], "Delivery")
	require.EqualValues(t, 120, got["recipient.country"]["rows"])
	require.Len(t, got["recipient.country"]["messages"], 1)

	page := d.ask(me, "/console/jobs/"+id, nil)
	require.Contains(t, page.body, "What is wrong")
	require.Contains(t, page.body, "Set for all (108) and check")
	for _, bad := range []string{`{"path":"colour","value":"red"}`, `{"path":"","value":"D"}`, `{"path":"order_ref","value":"same"}`, `{"path":"type"}`} {
		require.Equal(t, 422, x.do("POST", "/api/v1/jobs/"+id+"/fill", me, bad).status, bad)
	}
	require.Equal(t, 404, x.do("POST", "/api/v1/jobs/"+id+"/fill", x.w.OtherAdmin, `{"path":"type","value":"D"}`).status)
	require.Equal(t, 404, x.do("GET", "/api/v1/jobs/"+id+"/problems", x.w.OtherAdmin, "").status)

	require.Equal(t, 303, d.ask(me, "/console/jobs/"+id, url.Values{"do": {"fill"}, "path": {"type"}, "value": {"Delivery"}}).status)
	require.EqualValues(t, 120, x.jobIn(me, id, "checked")["refused"], "the country is missing")
	require.Len(t, problems(), 1)
	x.made("POST", "/api/v1/jobs/"+id+"/fill", me, `{"path":"recipient.country","value":"CA"}`)
	j := x.jobIn(me, id, "checked")
	require.EqualValues(t, 0, j["refused"], "%v", x.rowsOf(me, id, "refused"))
	require.Empty(t, problems())
	for n, row := range x.rowsOf(me, id, "open") {
		cells := row.(map[string]any)["cells"].([]any)
		require.Equal(t, []any{map[bool]string{true: "D", false: "Delivery"}[n%10 == 0], "V-" + strconv.Itoa(n), "CA"}, []any{cells[0], cells[1], cells[9]})
	}
	require.EqualValues(t, 0, j["succeeded"])
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`","count":120}`)
	require.EqualValues(t, 120, x.jobIn(me, id, "completed")["succeeded"])
	require.Equal(t, "JOB_STATE_CONFLICT", x.do("POST", "/api/v1/jobs/"+id+"/fill", me, `{"path":"type","value":"D"}`).code())
}

// Refused lines say what is wrong in the language of who reads them, whatever that of the
// import was, by the words for the member and never by its path. Fifty can be mended in
// place; the page counts the others and says what to do.
func TestRefusedLinesSpeakToTheirReader(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	x.runJobs()
	d := newDesk(t, x)
	me := x.signIn("admin", x.token(admin)).session
	file := "type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight,client\n"
	for n := range 53 {
		file += line(fmt.Sprint("W-", n), "", "+14165550123", "-1")
	}
	x.made("POST", "/api/v1/client/orderCreate", me, orderOf("W-TAKEN"))
	file += line("W-TAKEN", "Ada", "+14165550123", "1")
	id := at(x.upload(me, "order", []byte(file)).json, "job", "job_id").(string)
	require.EqualValues(t, 54, x.jobIn(me, id, "checked")["refused"])
	lines, hidden := regexp.MustCompile(`(?s)<(?:ul|ol) class="joblines">.*?</(?:ul|ol)>`), regexp.MustCompile(`<input type="hidden"[^>]*>`)
	for lang, want := range map[string][]string{
		"de": {"<bdi>Empfänger · Name fehlt.</bdi>", "<bdi>Pakete · Gewicht muss größer als 0 sein.</bdi>", "Abgelehnte Zeilen, die hier fehlen: 4."},
		"fr": {"<bdi>Destinataire · Nom est obligatoire.</bdi>", "Lignes refusées non affichées : 4."},
		"en": {"<bdi>Recipient · Name is required.</bdi>", "Refused rows that are not shown: 4."},
	} {
		page := d.ask(me, "/console/jobs/"+id+"?lang="+lang, nil).body
		shown := strings.Join(lines.FindAllString(page, -1), "")
		for _, text := range want {
			require.Contains(t, page, text)
		}
		require.Equal(t, 50, strings.Count(shown, `name="do" value="mend"`), lang)
		require.Equal(t, "", regexp.MustCompile(`.{0,40}(recipient\.|packages[.\[]).*`).FindString(hidden.ReplaceAllString(shown, "")), lang)
		csv := d.ask(me, "/console/jobs/"+id+"/rows.csv?state=bad&lang="+lang, nil).body
		require.Contains(t, csv, strings.TrimSuffix(strings.TrimPrefix(want[0], "<bdi>"), "</bdi>"))
		require.NotContains(t, strings.SplitN(csv, "\n", 2)[1], "recipient.name")
	}
	german := x.do("GET", "/api/v1/jobs/"+id+"/rows?state=refused&per_page=60", me, "", "Accept-Language", "de").json["rows"].([]any)
	require.Equal(t, map[string]any{"column": "Empfänger · Name", "path": "recipient.name", "message": "Empfänger · Name fehlt.", "choices": []any{}}, german[0].(map[string]any)["errors"].([]any)[1])
	require.Contains(t, german[53].(map[string]any)["message"], "hat schon der Auftrag")

	// A header in the file's own words stays: people look for it.
	own := strings.Replace(file, "recipient.name", "Client’s name", 1)
	id = at(x.upload(me, "order", []byte(own)).json, "job", "job_id").(string)
	x.jobIn(me, id, "checked")
	x.made("PUT", "/api/v1/jobs/"+id+"/columns", me, `{"columns":["type","order_ref","recipient.name","recipient.phone"]}`)
	x.jobIn(me, id, "checked")
	require.Contains(t, d.ask(me, "/console/jobs/"+id+"?lang=de", nil).body, "<bdi>Client’s name fehlt.</bdi>")
}

// A job whose process ends in the middle, and that two nodes take up, does each row once.
func TestAJobThatIsInterrupted(t *testing.T) { onBoth(t, interrupted) }

func interrupted(t *testing.T, x *world) {
	stop := x.runJobs()
	second := newJobs(x.w.DB, x.pages.Pipeline) // with the same leases: rows alone keep the two apart
	second.Serve(x.table)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = second.Run(ctx) }()
	defer func() { cancel(); <-done }()
	x.w.DB.OnCommit(second.Committed)
	me := x.login(x.token(admin))
	const n, bad = 120, 20
	var file strings.Builder
	file.WriteString("type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight\n")
	for i := range n {
		weight := "1"
		if i%(n/bad) == 0 {
			weight = "heavy"
		}
		file.WriteString(line(fmt.Sprint("K-", i), "Ada", "+14165550123", weight))
	}
	id := at(x.upload(me, "order", []byte(file.String())).json, "job", "job_id").(string)
	j := x.jobIn(me, id, "checked")
	require.EqualValues(t, n-bad, j["good"])
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, fmt.Sprintf(`{"digest":%q,"count":%d}`, j["digest"], n-bad))
	for range 3 { // ends after some rows
		before := x.made("GET", "/api/v1/jobs/"+id, me, "")["job"].(map[string]any)["succeeded"].(float64)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			now := x.made("GET", "/api/v1/jobs/"+id, me, "")["job"].(map[string]any)
			if now["succeeded"].(float64) > before || now["status"] == "completed" || time.Now().After(end) {
				break
			}
		}
		stop()
		stop = x.runJobs()
	}
	j = x.jobIn(me, id, "completed")
	require.EqualValues(t, n-bad, j["succeeded"])
	require.EqualValues(t, 0, j["failed"])
	require.Equal(t, n-bad, x.ordersLike("K-"))
}

// dying is a store whose process ends at one of its calls, before that is done or after:
// from then on none is answered.
type dying struct {
	job.Store
	left  *atomic.Int64
	after bool
	gone  context.CancelFunc
}

var errGone = errors.New("the process is gone")

func (d dying) call(fn func() error) error {
	switch left := d.left.Add(-1); {
	case left < 0:
		return errGone
	case left > 0:
		return fn()
	case d.after:
		_ = fn()
	}
	d.gone()
	return errGone
}

func (d dying) Decide(ctx context.Context, id cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	return d.call(func() error { return d.Store.Decide(context.WithoutCancel(ctx), id, fn) })
}

func (d dying) Look(ctx context.Context, fn func(cloud.View) error) error {
	return d.call(func() error { return d.Store.Look(context.WithoutCancel(ctx), fn) })
}

func (d dying) ListRowsToDo(ctx context.Context, job string, after, limit int) (out []cloud.JobRow, err error) {
	return out, d.call(func() (err error) { out, err = d.Store.ListRowsToDo(ctx, job, after, limit); return err })
}

func (d dying) ListRowsToCheck(ctx context.Context, job string, after, limit int) (out []cloud.JobRow, err error) {
	return out, d.call(func() (err error) { out, err = d.Store.ListRowsToCheck(ctx, job, after, limit); return err })
}

// A process that ends at any call that a job makes of its store leaves each row undone
// or done, and another one goes on.
func TestAProcessThatEndsAnywhere(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	me := x.login(x.token(admin))
	const rows = 2
	for at := int64(1); at <= 13; at += int64(ring.Count(3, 1)) {
		for _, after := range []bool{false, true} {
			ref := fmt.Sprint("D", at, after, "-")
			var file strings.Builder
			file.WriteString("type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight\n")
			for i := range rows {
				file.WriteString(line(fmt.Sprint(ref, i), "Ada", "+14165550123", "1"))
			}
			id := x.upload(me, "order", []byte(file.String())).json["job"].(map[string]any)["job_id"].(string)
			for _, state := range []string{"checked", "completed"} {
				ctx, cancel := context.WithCancel(context.Background())
				d := dying{Store: x.w.DB, left: new(atomic.Int64), after: after, gone: cancel}
				d.left.Store(at)
				s := newJobsOn(d, x.pages.Pipeline)
				s.Serve(x.table)
				over := time.AfterFunc(300*time.Millisecond, cancel) // there may be fewer calls
				_ = s.Run(ctx)
				over.Stop()
				cancel()
				stop := x.runJobs()
				j := x.jobIn(me, id, state)
				stop()
				if state == "checked" {
					require.EqualValues(t, rows, j["good"])
					x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`)
				} else {
					require.EqualValues(t, rows, j["succeeded"], "%d %v: %v", at, after, x.rowsOf(me, id, ""))
				}
			}
			require.Equal(t, rows, x.ordersLike(ref))
		}
	}
}

// How people matched the columns of a file is remembered for their business, once they
// start it; and a job that is cancelled runs no further row.
func TestColumnsAreRemembered(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	stop := x.runJobs()
	me := x.login(x.token(admin))
	file := func(n string) []byte {
		return []byte("Client,Courriel,Client\nNoor " + n + ",noor" + n + "@goods.example,again\n")
	}
	matched := func(token, n string) (id string, j map[string]any) {
		a := x.upload(token, "customer", file(n))
		require.Equal(t, 201, a.status, "%s", a.body)
		id = at(a.json, "job", "job_id").(string)
		return id, x.jobIn(token, id, "checked")
	}
	id, j := matched(me, "1")
	require.Equal(t, []any{"", "", ""}, j["columns"])
	for columns, code := range map[string]string{`["name","name"]`: "VALIDATION_FAILED", `["colour"]`: "VALIDATION_FAILED", `["","","","name"]`: "VALIDATION_FAILED"} {
		require.Equal(t, code, x.do("PUT", "/api/v1/jobs/"+id+"/columns", me, `{"columns":`+columns+`}`).code(), columns)
	}
	x.made("PUT", "/api/v1/jobs/"+id+"/columns", me, `{"columns":["name","email"]}`)
	j = x.jobIn(me, id, "checked")
	require.EqualValues(t, 1, j["good"], "%v", x.rowsOf(me, id, ""))
	_, before := matched(me, "2")
	require.Equal(t, []any{"", "", ""}, before["columns"], "it was not started")
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`)
	x.jobIn(me, id, "completed")
	id, j = matched(me, "3")
	require.Equal(t, []any{"name", "email", ""}, j["columns"])
	_, other := matched(x.w.OtherAdmin, "3")
	require.Equal(t, []any{"", "", ""}, other["columns"], "another business has its own")

	stop()
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`)
	x.made("POST", "/api/v1/jobs/"+id+"/cancel", me, "{}")
	x.runJobs()
	require.Equal(t, "JOB_STATE_CONFLICT", x.do("POST", "/api/v1/jobs/"+id+"/cancel", me, "{}").code())
	require.Equal(t, "open", x.rowsOf(me, id, "open")[0].(map[string]any)["row_state"])
	require.Equal(t, "VALIDATION_FAILED", x.do("POST", "/api/v1/jobs", me, `{"noun":"customer","operation":"customers.edit","ids":["5"],"input":{"password":"long enough to keep"}}`).code(), "a job keeps no secret")
}

// ordersLike counts the orders whose reference begins with a text.
func (x *world) ordersLike(prefix string) (n int) {
	var a cloud.Account
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(x.token(admin)))
	require.NoError(x.t, err)
	a = s.Account
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) error {
		for i := range 1000 {
			list, err := v.OrdersByRef(a.BusinessID, fmt.Sprint(prefix, i))
			if err != nil {
				return err
			}
			n += len(list)
		}
		return nil
	}))
	return n
}

// A whole file of twenty thousand lines, five hundred of them bad, is checked and
// imported once, though its process ends in the middle.
func TestTwentyThousandLines(t *testing.T) {
	ring.SkipUnlessFull(t, "twenty thousand lines take half a minute")
	x := newWorld(t)
	stop := x.runJobs()
	me := x.login(x.token(admin))
	const n, bad = 20_000, 500
	var file strings.Builder
	file.WriteString("type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight\n")
	for i := range n {
		weight := "1"
		if i%(n/bad) == 0 {
			weight = "heavy"
		}
		file.WriteString(line(fmt.Sprint("L-", i), "Ada", "+14165550123", weight))
	}
	began := time.Now()
	id := at(x.upload(me, "order", []byte(file.String())).json, "job", "job_id").(string)
	t.Log("stored after", time.Since(began))
	j := x.jobIn(me, id, "checked")
	t.Log("checked after", time.Since(began))
	require.EqualValues(t, n-bad, j["good"])
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, fmt.Sprintf(`{"digest":%q,"count":%d}`, j["digest"], n-bad))
	for x.made("GET", "/api/v1/jobs/"+id, me, "")["job"].(map[string]any)["succeeded"].(float64) < n/2 {
		time.Sleep(10 * jobPause)
	}
	t.Log("half after", time.Since(began))
	stop()
	t.Log("stopped after", time.Since(began))
	x.runJobs()
	j = x.jobIn(me, id, "completed")
	t.Log("imported after", time.Since(began))
	require.EqualValues(t, n-bad, j["succeeded"])
	require.EqualValues(t, 0, j["failed"])
}

// People do all of it by forms, without a script: choose rows of a list, look at what
// would be done, type the number, follow, take the result.
func TestJobsByForms(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	x.runJobs()
	d := newDesk(t, x)
	p := x.signIn("admin", x.token(admin))
	one, _ := x.order(cloud.OrderNew)
	two, _ := x.order(cloud.OrderNew)
	list := d.ask(p.session, "/console/orders", nil)
	require.Contains(t, list.body, `form="bulk" name="id" value="`+one+`"`)
	require.Contains(t, list.body, `href="/console/orders/import"`)
	path := "/console/orders/many?verb=cancel&id=" + one + "&id=" + two
	s := d.ask(p.session, path, nil)
	require.Equal(t, 200, s.status, mainPart.FindString(s.body))
	require.Contains(t, s.body, "Records: 2")
	s = d.ask(p.session, path, filled(formIn(t, s), "step", "next", "in:reason", "together"))
	require.Equal(t, 303, s.status, mainPart.FindString(s.body))
	page := s.to
	s = d.ask(p.session, page, nil)
	require.Equal(t, 200, s.status)
	require.Contains(t, s.body, "Can be done: 2. Refused: 0")
	require.Regexp(t, `Status: <bdi>New order</bdi> → <bdi>Cancelled</bdi>`, s.body)
	require.NotContains(t, s.body, `name="count"`, "two are few")
	require.NotRegexp(t, nothingIn, s.body)
	job := strings.TrimSuffix(page, "?wait=1") // address
	digest := regexp.MustCompile(`name="digest" value="([0-9a-f]+)"`).FindStringSubmatch(s.body)[1]
	require.Equal(t, 403, d.ask(p.session, job, url.Values{"do": {"start"}, "digest": {digest}, "form": {strings.Repeat("x", 32)}}).status, "of another site")
	require.Equal(t, 409, d.ask(p.session, job, url.Values{"do": {"start"}, "digest": {"older"}}).status)
	require.Equal(t, 303, d.ask(p.session, job, url.Values{"do": {"start"}, "digest": {digest}}).status)
	x.jobIn(p.session, strings.TrimPrefix(job, "/console/jobs/"), "completed")
	s = d.ask(p.session, job, nil)
	require.Contains(t, s.body, "Done: 2 of 2. Failed: 0")
	require.Contains(t, d.ask(p.session, "/console/jobs", nil).body, `href="`+job+`"`)
	s = d.ask(p.session, job+"/rows.csv", nil)
	require.Equal(t, 3, strings.Count(s.body, "\n"), s.body)
	other := x.signIn("other", x.w.OtherAdmin)
	for _, path := range []string{job, job + "/rows.csv"} {
		require.Equal(t, 404, d.ask(other.session, path, nil).status)
	}
	require.Equal(t, 404, d.ask(p.session, "/console/orders/many?verb=delete&id="+one, nil).status, "it is for one alone")
	reader := x.signIn("reader", x.token(cloud.ClientEmployee), "orders:read")
	require.Equal(t, 403, d.ask(reader.session, path, nil).status)
	require.NotContains(t, d.ask(reader.session, "/console/orders", nil).body, `id="bulk"`)

	// A file: the template's own headers are matched, in any language.
	p = x.signIn("admin", x.token(admin))
	for _, lang := range []string{"en", "de", "zh-Hant"} {
		s = d.ask(p.session, "/console/orders/template.csv?lang="+lang, nil)
		require.Equal(t, 200, s.status)
		id := at(x.upload(p.session, "order", []byte(s.body+strings.Repeat("x,", 3)+"\n")).json, "job", "job_id").(string)
		j := x.jobIn(p.session, id, "checked")
		require.Greater(t, len(j["columns"].([]any)), 50)
		require.NotContains(t, j["columns"], "", "%s: %v", lang, j["headers"])
	}
	id := at(x.upload(p.session, "order", []byte("type,order_ref,recipient.name\nD,=1+1,@name\n")).json, "job", "job_id").(string)
	x.jobIn(p.session, id, "checked")
	s = d.ask(p.session, "/console/jobs/"+id, nil)
	require.Contains(t, s.body, "Can be done: 0. Refused: 1")
	require.Contains(t, s.body, `name="cell" value="=1&#43;1"`)
	require.Contains(t, s.body, `<select id="c-0" name="column">`)
	s = d.ask(p.session, "/console/jobs/"+id+"/rows.csv?state=bad", nil)
	require.Contains(t, s.body, "D,'=1+1,'@name,")
	require.Equal(t, 303, d.ask(p.session, "/console/jobs/"+id, url.Values{"do": {"mend"}, "row": {"1"}, "cell": {"D", "R", "N"}}).status)
	require.Equal(t, 303, d.ask(p.session, "/console/jobs/"+id, url.Values{"do": {"columns"}, "column": {"type", "", "note"}}).status)
	require.Equal(t, []any{"type", "", "note"}, x.jobIn(p.session, id, "checked")["columns"])
	require.Equal(t, 303, d.ask(p.session, "/console/jobs/"+id, url.Values{"do": {"cancel"}}).status)
	x.jobIn(p.session, id, "cancelled")
}

// A file of people makes invitations: with the rights that it names, by mail, and neither
// an account nor a password. Where no mail is sent there is no such import.
func TestAFileInvitesPeople(t *testing.T) {
	t.Parallel()
	x := newWorldMailing(t, storetest.OpenSQLite(t), "https://cloud.test")
	x.runJobs()
	me := x.login(x.token(admin))
	file := []byte("Name,E-mail,Account type,Permissions,Password\nNoor Haddad,noor@acme.example,Employee,orders:read; orders:write,a long enough one\nBo Lee,bo@acme.example,driver,,\nCy Dean,cy@acme.example,client_employee,orders:all,\nDi,no address,driver,,\n")
	require.Equal(t, "JOB_NEEDS_PERSON", x.upload(x.made("POST", "/api/v1/user/api-keys", me, `{"name":"k"}`)["token"].(string), "invitation", file).code())
	require.Equal(t, 403, x.upload(x.login(x.token(cloud.ClientEmployee)), "invitation", file).status, "only administrators invite")
	require.Equal(t, "VALIDATION_FAILED", x.upload(me, "user", file).code(), "an account is made by its person")
	a := x.upload(me, "invitation", file)
	require.Equal(t, 201, a.status, "%s", a.body)
	id := at(a.json, "job", "job_id").(string)
	j := x.jobIn(me, id, "checked")
	require.Equal(t, []any{"name", "email", "account_type", "permissions", ""}, j["columns"])
	require.EqualValues(t, 2, j["good"], "%v", x.rowsOf(me, id, ""))
	list := func() []any { return x.made("GET", "/api/v1/invitations", me, "")["invitations"].([]any) }
	before, users := len(list()), x.made("GET", "/api/v1/users", me, "")["total"]
	x.made("POST", "/api/v1/jobs/"+id+"/start", me, `{"digest":"`+j["digest"].(string)+`"}`)
	x.jobIn(me, id, "completed")
	made := map[string]any{}
	for _, i := range list()[:2] {
		made[at(i, "email").(string)] = at(i, "permissions")
		require.Equal(t, "pending", at(i, "status"))
	}
	require.Len(t, list(), before+2)
	require.Equal(t, map[string]any{"noor@acme.example": []any{"orders:read", "orders:write"}, "bo@acme.example": []any{}}, made)
	require.Equal(t, users, x.made("GET", "/api/v1/users", me, "")["total"])
	mails, err := x.w.DB.ListNotifications(t.Context(), 42, 10)
	require.NoError(t, err)
	mails = slices.DeleteFunc(mails, func(m cloud.NotificationRow) bool { return m.DeliveryID != 0 })
	require.Len(t, mails, 2)
	for _, m := range mails {
		key := strings.SplitN(m.Link, "key=", 2)[1]
		require.NotContains(t, fmt.Sprint(x.rowsOf(me, id, "")), key, "the link is in the mail alone")
	}
	require.Len(t, x.rowsOf(me, id, "done"), 2)

	plain := newWorld(t)
	require.Equal(t, "VALIDATION_FAILED", plain.upload(plain.login(plain.token(admin)), "invitation", file).code())
}

// A line with a weight that is no number says what else is wrong with it too: mending one
// member never brings out another problem.
func TestALineSaysAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	x.runJobs()
	me := x.login(x.token(admin))
	file := "type,order_ref,recipient.name,recipient.phone,recipient.address_line1,recipient.city,recipient.province,recipient.postal_code,recipient.country,packages.weight\n" +
		"Z,A-1,Ada,nope,100 Queen St W,,ON,???,ZZ,heavy\n"
	id := at(x.upload(me, "order", []byte(file)).json, "job", "job_id").(string)
	require.EqualValues(t, 1, x.jobIn(me, id, "checked")["refused"])
	var paths []string
	for _, y := range x.made("GET", "/api/v1/jobs/"+id+"/problems", me, "")["problems"].([]any) {
		paths = append(paths, y.(map[string]any)["path"].(string))
	}
	require.ElementsMatch(t, []string{"type", "recipient.phone", "recipient.city", "recipient.postal_code", "recipient.country", "packages[0].weight"}, paths)
}
