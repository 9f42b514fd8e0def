package rest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	post := func(body, key string) got {
		return r.do("POST", base+"/deliveries", r.provider(), body, "Idempotency-Key", key)
	}
	body := bodies["third_party.deliveries.create"]
	first := post(body, "k1")
	require.Equal(t, 201, first.status)
	again := post(body, "k1")
	require.Equal(t, 201, again.status, "the first answer, not that of the reference")
	require.Equal(t, "true", again.header("Idempotent-Replayed"))
	require.Empty(t, first.header("Idempotent-Replayed"))
	require.Equal(t, first.body, again.body)
	require.Equal(t, first.header("Content-Type"), again.header("Content-Type"))
	require.NotEqual(t, first.header("X-Request-Id"), again.header("X-Request-Id"))
	r.refused(post(strings.Replace(body, "NEW1", "NEW9", 1), "k1"), 409, "IDEMPOTENCY_KEY_REUSED")
	for _, bad := range []string{strings.Repeat("k", 129), "a b"} {
		g := post(body, bad)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], "Idempotency-Key")
	}
	foreign := strings.NewReplacer("88", "987654", "R-1", "R-2", "NEW1", "NEW2").Replace(body)
	r.refused(post(foreign, "k2"), 404, "DEVICE_NOT_FOUND")
	bad := r.do("POST", base+"/deliveries", r.provider(), foreign, "Idempotency-Key", "k2", "Accept-Language", "de")
	require.Equal(t, "true", bad.header("Idempotent-Replayed"), "a final refusal is an answer too")
	require.Equal(t, "de", bad.header("Content-Language"), "in the language of who asks again")
	r.refused(post(`{`, "k3"), 400, "MALFORMED_JSON")
	require.Equal(t, 201, post(strings.NewReplacer("R-1", "R-3", "NEW1", "NEW3").Replace(body), "k3").status, "what cannot be read uses up no key")
	g := r.do("POST", base+"/deliveries", r.w.Stranger, strings.Replace(body, "88", "90", 1), "Idempotency-Key", "k1")
	require.NotEqual(t, "true", g.header("Idempotent-Replayed"), "keys belong to their caller")
}

// worlds are those that both databases keep.
func worlds(t *testing.T, test func(*testing.T, *webtest.World)) {
	for name, open := range map[string]func(testing.TB) *store.DB{"SQLite": storetest.OpenSQLite, "PostgreSQL": storetest.OpenSecondPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, webtest.NewOn(t, open(t)))
		})
	}
}

func orderBody(ref string) string {
	return fmt.Sprintf(`{"type":"D","order_ref":%q,"recipient":{"name":"Ada Moreau","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":2.5}]}`, ref)
}

// deaf is a database whose process ends whenever a call is over: what a call's
// transactions wrote is all that there is.
type deaf struct{ *store.DB }

func (deaf) AnswerCall(context.Context, *cloud.Once, []byte) error { return errors.New("gone") }
func (deaf) DropCall(context.Context, *cloud.Once) error           { return errors.New("gone") }

// Every operation that takes a key has an answer in the commit that does it:
// another process gives the same one, whether or not the first lived to store
// what it answered.
func TestARepeatIsAnsweredByAnotherProcess(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *webtest.World) {
		short := func(o *options) { o.Timeout = 3 * time.Second }
		dies := rigOn(t, w, func(o *options) { short(o); o.Calls = deaf{w.DB} })
		lives := rigOn(t, w, short)
		admin := w.Tokens[cloud.ClientAdmin]
		fresh := w.Delivery
		fresh.DepositedAt = time.Now().UTC() // it can still be corrected
		w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{fresh}}})
		id := func(ref string) int64 {
			g := lives.do("POST", "/api/v1/client/orderCreate", admin, orderBody(ref))
			require.Equal(t, 201, g.status, "%s", g.body)
			return number(g.json["order_id"])
		}
		require.Equal(t, 200, lives.do("PUT", "/api/v1/features/order_chat", admin, `{"enabled":true}`).status)
		g := lives.do("PUT", "/api/v1/webhook-settings", admin, `{"order_create_webhook_url":"https://mine.example/orders"}`)
		require.Equal(t, 200, g.status, "%s", g.body)
		id("HK") // has a delivery that can be replayed
		newest := func(path, token, list string) string {
			g := lives.do("GET", path, token, "")
			rows, _ := g.json[list].([]any)
			require.NotEmpty(t, rows, "%s", g.body)
			return fmt.Sprintf("%s/%d", path, number(rows[0].(map[string]any)["id"]))
		}
		w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: 9300, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "once", Type: "door_left_open",
			Severity: "medium", Status: "open", OpenedAt: time.Now().Add(-time.Hour)}}}}) // of a door that is shut
		review := cloud.Review{Kind: cloud.ReviewDispute, Status: cloud.ReviewOpen, TrackingNumber: "ONCE", EventID: "once", EndsAt: time.Now().Add(time.Hour)}
		review.Begin(9100, 42, time.Now().UTC())
		w.Write(t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{review}}})
		type call struct {
			token, path, body string
			waits             bool // for a cabinet, which says nothing here
		}
		aliased := lives.do("GET", fmt.Sprintf("/api/v1/orders/%d", id("AL")), admin, "").json["order"].(map[string]any)["tracking_number"].(string)
		calls := map[string]call{
			"otep.aliases.add":                         {token: admin, path: "/api/v1/otep/trackings/" + aliased + "/aliases", body: `{"kind":"carrier","value":"ONCE"}`},
			"otep.containers.create":                   {token: admin, path: "/api/v1/otep/containers", body: `{"kind":"pallet","scheme":"own","identity":"ONCE"}`},
			"otep.reviews.decide":                      {token: admin, path: "/api/v1/otep/reviews/9100/decide", body: `{"action":"dismiss"}`},
			"orders.create":                            {token: admin, path: "/api/v1/client/orderCreate", body: orderBody("ONCE")},
			"users.create":                             {token: admin, path: "/api/v1/users", body: `{"account_type":"client_employee","name":"Ada","email":"once@acme.example","password":"long enough to keep"}`},
			"customers.create":                         {token: admin, path: "/api/v1/customers", body: `{"name":"Books","email":"books-once@acme.example","password":"long enough to keep"}`},
			"providers.create":                         {token: admin, path: "/api/v1/providers", body: `{"code":"swift-once","name":"Swift","services":["locker"]}`},
			"order_chat.send":                          {token: admin, path: fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", id("CH")), body: `{"text":"Hello"}`},
			"order_chat.attach":                        {token: admin, path: "/api/v1/order-chat/attachments", body: fmt.Sprintf(chatForm, id("CA"))},
			"webhook_logs.replay":                      {token: admin, path: newest("/api/v1/webhook-delivery-logs", admin, "logs") + "/replay", body: `{}`},
			"third_party.webhook_deliveries.redeliver": {token: lives.provider(), path: newest(base+"/webhook-deliveries", lives.provider(), "deliveries") + "/redeliver", body: `{}`},
			"webhook_logs.replay_many":                 {token: admin, path: "/api/v1/webhook-delivery-logs/replay", body: `{"event":"order.created"}`},
			"routes.create":                            {token: admin, path: "/api/v1/routes", body: `{"date":"2026-12-01","name":"Once"}`},
			"orders.batch_async":                       {token: admin, path: "/api/v1/client/batchOrderCreateAsync", body: `{"orders":[` + orderBody("B-1") + `]}`},
			"orders.tracking_number":                   {token: admin, path: fmt.Sprintf("/api/v1/orders/%d/tracking-number", id("TN")), body: `{}`},
			"orders.reroute": {token: admin, path: fmt.Sprintf("/api/v1/orders/%d/reroute", id("RE")),
				body: `{"new_address":{"name":"A","address_line1":"1 King St","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`},
			"jobs.create":                            {token: admin, path: "/api/v1/jobs", body: `{"noun":"order","operation":"orders.ready","ids":["1"]}`},
			"jobs.import":                            {token: admin, path: "/api/v1/jobs/import", body: importForm},
			"orders.intercept":                       {token: admin, path: fmt.Sprintf("/api/v1/orders/%d/interceptions", pickedUp(t, w, id("IN"))), body: `{"outcome":"return_to_sender"}`},
			"orders.proof_files.add":                 {token: admin, path: fmt.Sprintf("/api/v1/orders/%d/proof-files", id("PF")), body: proofForm},
			"driver.orders.proof_files":              {token: w.Tokens[cloud.DriverAccount], path: fmt.Sprintf("/api/v1/driver/orders/%d/proof-files", driven(t, w, id("DF"))), body: proofForm},
			"third_party.assignments.create":         {token: admin, path: base + "/assignments", body: fmt.Sprintf(`{"order_id":%d,"provider_id":17}`, id("TP"))},
			"third_party.assignments.set_leg":        {token: lives.provider(), path: base + "/assignments/" + entrusted(t, lives, id("LEG")) + "/legs", body: `{"external_order_id":"SW-1"}`},
			"third_party.deliveries.create":          {token: lives.provider(), path: base + "/deliveries", body: bodies["third_party.deliveries.create"]},
			"smart_lockers.devices.set_layout":       {token: admin, path: fmt.Sprintf("/api/v1/smart-lockers/devices/%d/layout", cabinet(t, w, 701)), body: `{"shelves":[{"shelf_code":"A","grids":[{"compartment_number":1,"column":1,"row":1,"size":"S"}]}]}`},
			"smart_lockers.devices.replace_hardware": {token: admin, path: fmt.Sprintf("/api/v1/smart-lockers/devices/%d/replace-hardware", cabinet(t, w, 702)), body: `{"reason":"broken"}`},
			"smart_lockers.devices.retire":           {token: admin, path: fmt.Sprintf("/api/v1/smart-lockers/devices/%d/retire", cabinet(t, w, 703)), body: `{"reason":"the lease has ended"}`},
			"smart_lockers.grids.clear":              {token: admin, path: fmt.Sprintf("/api/v1/smart-lockers/devices/88/grids/%d/clear", disputed(t, w, 8812)), body: `{"reason":"Found empty"}`},
			"smart_lockers.rollouts.create":          {token: admin, path: "/api/v1/smart-lockers/rollouts", body: `{"version":"1.4.0","device_ids":[88]}`},
			"smart_lockers.profiles.create":          {token: admin, path: "/api/v1/smart-lockers/profiles", body: `{"name":"Once"}`},
			"smart_lockers.devices.diagnose":         {token: admin, path: "/api/v1/smart-lockers/devices/88/diagnoses", body: `{"type":"board_view","reason":"Doors do not answer"}`},
			"smart_lockers.devices.test_channel":     {token: admin, path: "/api/v1/smart-lockers/devices/88/channel-tests", body: `{"grid_id":8804,"reason":"The lock is stuck","attended":true}`},
			"sites.create":                           {token: admin, path: "/api/v1/sites", body: `{"name":"Once","address":"1 King St"}`},
			"third_party.announced_packages.create":  {token: lives.provider(), path: base + "/announced-packages", body: `{"packages":[{"carrier_reference":"ONCE","recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}]}`},
			"device_orders.extend":                   {token: admin, path: "/api/v1/device-orders/8301/extend", body: `{"hours":24}`},
			"device_orders.remove":                   {token: admin, path: fmt.Sprintf("/api/v1/device-orders/%d/remove", w.Stored(t, 83001, "STORED-1")), body: `{"removal_reason":"handover"}`},
			"device_order_exceptions.resolve":        {token: admin, path: "/api/v1/device-order-exceptions/9300/resolve", body: `{"resolution_action":"no_action","note":"Seen"}`},
			"smart_lockers.devices.open":             {token: admin, path: "/api/v1/smart-lockers/devices/88/open", body: `{"grid_ids":[8801],"reason":"Clean a spill","attended":true,"wait_seconds":0}`},
			"third_party.deliveries.correct":         {token: lives.provider(), path: base + "/deliveries/64021/correction", body: `{"reason":"wrong parcel"}`, waits: true},
			"third_party.deliveries.retrieve":        {token: lives.provider(), path: base + "/deliveries/64021/retrieve", body: `{"reason":"recall"}`, waits: true},
			"third_party.deliveries.open_doors":      {token: lives.provider(), path: base + "/deliveries/%d/open-doors", body: `{"wait_seconds":0}`},
			"third_party.deliveries.reassign":        {token: lives.provider(), path: base + "/deliveries/%d/reassign", body: `{"size":"L"}`, waits: true},
		}
		for _, op := range lives.s.cfg.Catalog.Operations() {
			c, ok := calls[op.Name]
			if !ok && isRow(lives.s.cfg.Catalog, op.Name) {
				c, ok = call{token: admin, path: op.Path, body: op.Example}, true
			}
			require.Equal(t, op.Idempotent, ok, "%s: say here how it is called", op.Name)
			if !ok {
				continue
			}
			if strings.Contains(c.path, "%d") {
				ref := "D-" + op.Name[len(op.Name)-4:]
				g := lives.do("POST", base+"/deliveries", c.token, strings.NewReplacer("R-1", ref, "NEW1", ref).Replace(bodies["third_party.deliveries.create"]))
				require.Equal(t, 201, g.status, "%s", g.body)
				c.path = fmt.Sprintf(c.path, number(dig(g.json, "delivery", "delivery_id")))
			}
			first := dies.do("POST", c.path, c.token, c.body, "Idempotency-Key", "key")
			if c.waits { // until its time was over
				lives.refused(first, 503, "MODULE_UNAVAILABLE")
			} else {
				require.Less(t, first.status, 300, "%s: %s", op.Name, first.body)
			}
			again := lives.do("POST", c.path, c.token, c.body, "Idempotency-Key", "key")
			for again.code() == "IDEMPOTENCY_IN_PROGRESS" {
				require.Equal(t, "1", again.header("Retry-After"))
				time.Sleep(100 * time.Millisecond)
				again = lives.do("POST", c.path, c.token, c.body, "Idempotency-Key", "key")
			}
			require.Equal(t, "true", again.header("Idempotent-Replayed"), "%s: %s", op.Name, again.body)
			if c.waits {
				require.Equal(t, 202, again.status, "%s", again.body)
				require.NotNil(t, again.json["opening"])
			} else {
				require.Equal(t, first.status, again.status)
				require.Equal(t, string(first.body), string(again.body), op.Name)
			}
			other := strings.Replace(cmp.Or(c.body, "{}"), "{", `{"x":1,`, 1)
			other = strings.Replace(other, ",}", "}", 1)
			if op.Upload() != nil {
				other = strings.Replace(c.body, "signature", "photo", 1)
			}
			lives.refused(lives.do("POST", c.path, c.token, other, "Idempotency-Key", "key"), 409, "IDEMPOTENCY_KEY_REUSED")
		}
	})
}

// pickedUp moves an order to where it can be stopped.
func pickedUp(t *testing.T, w *webtest.World, id int64) int64 {
	var o cloud.Order
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { o, err = v.Order(42, cloud.OrderID(id)); return err }))
	o.Status = cloud.OrderPickedUp
	w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	return id
}

// driven gives an order to the driver.
func driven(t *testing.T, w *webtest.World, id int64) int64 {
	var o cloud.Order
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { o, err = v.Order(42, cloud.OrderID(id)); return err }))
	o.Status, o.DriverID = cloud.OrderOutForDelivery, 4
	w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	return id
}

// entrusted gives an order to the provider, and gives the assignment's number.
func entrusted(t *testing.T, r *rig, id int64) string {
	g := r.do("POST", base+"/assignments", r.w.Tokens[cloud.ClientAdmin], fmt.Sprintf(`{"order_id":%d,"provider_id":17}`, id))
	require.Equal(t, 201, g.status, "%s", g.body)
	return dig(g.json, "assignment", "assignment_number").(string)
}

// cabinet adds one without compartments, and gives its id.
func cabinet(t *testing.T, w *webtest.World, id cloud.DeviceID) cloud.DeviceID {
	d := w.Spare
	d.ID, d.Code = id, fmt.Sprint("PIER-", id)
	w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	return id
}

// disputed lets a cabinet hold a parcel in a compartment that the cloud knows nothing of.
func disputed(t *testing.T, w *webtest.World, id cloud.GridID) cloud.GridID {
	var c cloud.Compartment
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) error {
		cells, err := v.Compartments(w.Device.ID)
		c = cells[slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.GridID == id })]
		return err
	}))
	c.Dispute = &cloud.Dispute{Cabinet: "LD-000000009"}
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}})
	return id
}

// importForm is a file of one customer.
const importForm = "--cut\r\nContent-Disposition: form-data; name=\"noun\"\r\n\r\ncustomer\r\n--cut\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nsignature.csv\r\n--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n" +
	"name,email\nNoor,noor@goods.example\r\n--cut--\r\n"

// proofForm is an upload: the header of a picture is enough.
const proofForm = "--cut\r\nContent-Disposition: form-data; name=\"type\"\r\n\r\nsignature\r\n--cut\r\nContent-Disposition: form-data; name=\"service_type\"\r\n\r\n1\r\n" +
	"--cut\r\nContent-Disposition: form-data; name=\"service_status\"\r\n\r\n1\r\n--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n" +
	"RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\r\n--cut--\r\n"

// chatForm is an upload to the chat about an order.
const chatForm = "--cut\r\nContent-Disposition: form-data; name=\"order_id\"\r\n\r\n%d\r\n--cut\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nsignature\r\n" +
	"--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n%%PDF-1.4\n\r\n--cut--\r\n"

// A refusal that says to come again is not the answer for good.
func TestARefusalToComeAgainIsNotKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *options) { o.Limits = catalog.Limits{Doors: 1} })
	path := base + "/deliveries/64021/correction"
	r.refused(r.do("POST", path, r.provider(), `{"reason":"spends the one call"}`), 409, "CORRECTION_WINDOW_CLOSED")
	g := r.do("POST", path, r.provider(), `{"reason":"x"}`, "Idempotency-Key", "k")
	r.refused(g, 429, "RATE_LIMITED")
	g = r.do("POST", path, r.provider(), `{"reason":"x"}`, "Idempotency-Key", "k")
	r.refused(g, 429, "RATE_LIMITED")
	require.Empty(t, g.header("Idempotent-Replayed"))
}

// The same call fifty times at once is done once, whatever the database.
func TestTheSameCallAtOnce(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *webtest.World) {
		nodes := []*rig{rigOn(t, w, nil), rigOn(t, w, nil)}
		admin := w.Tokens[cloud.ClientAdmin]
		for round := range 4 {
			body := orderBody(fmt.Sprintf("SO-%d", round))
			if round%2 == 0 { // with nothing else that keeps it from being made twice
				body = orderBody("")
			}
			var wg sync.WaitGroup
			answers := make([]got, 50)
			for i := range answers {
				wg.Go(func() {
					answers[i] = nodes[i%2].do("POST", "/api/v1/client/orderCreate", admin, body, "Idempotency-Key", fmt.Sprint("key-", round))
				})
			}
			wg.Wait()
			first, made := 0, map[int64]bool{}
			for _, g := range answers {
				switch {
				case g.status == 201:
					made[number(g.json["order_id"])] = true
					if g.header("Idempotent-Replayed") == "" {
						first++
					}
				default:
					require.Equal(t, "IDEMPOTENCY_IN_PROGRESS", g.code(), "%s", g.body)
				}
			}
			require.Equal(t, 1, first)
			require.Len(t, made, 1)
		}
		g := nodes[0].do("GET", "/api/v1/orders?per_page=200", admin, "")
		require.Equal(t, 4.0, g.json["total"])
	})
}

// A client that is killed at any byte of its request and sends it again has
// each order once, also when the server went in between.
func TestAClientKilledAtAnyByte(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	nodes := []*rig{rigOn(t, w, nil), rigOn(t, w, nil)}
	admin := w.Tokens[cloud.ClientAdmin]
	service := order.New(order.Config{Store: w.DB})
	w.DB.OnCommit(func(*cloud.Changes) { service.Wake() })
	rows := make([]string, 100)
	for i := range rows {
		rows[i] = orderBody("") // references would keep them apart by themselves
	}
	body := `{"orders":[` + strings.Join(rows, ",") + `]}`
	head := fmt.Sprintf("POST /api/v1/client/batchOrderCreateAsync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: batch\r\nContent-Length: %d\r\n\r\n", admin, len(body))
	whole := head + body
	cut := func(r *rig, n int) {
		c, err := r.ln.Dial()
		require.NoError(t, err)
		_, _ = io.WriteString(c, whole[:n])
		require.NoError(t, c.Close())
	}
	tried := 0
	for n := 0; n < len(whole); n += 97 {
		cut(nodes[tried%2], n)
		tried++
	}
	require.Greater(t, tried, 200)
	cut(nodes[0], len(whole)-1)
	cut(nodes[1], len(whole)) // the request is complete; no client reads the answer
	ids := map[string]bool{}
	for i := range 4 {
		c, err := nodes[i%2].ln.Dial()
		require.NoError(t, err)
		_, err = io.WriteString(c, whole)
		require.NoError(t, err)
		var resp fasthttp.Response
		require.NoError(t, resp.Read(bufio.NewReader(c)))
		require.Equal(t, 202, resp.StatusCode(), "%s", resp.Body())
		var out order.AsyncOutput
		require.NoError(t, json.Unmarshal(resp.Body(), &out))
		ids[out.AsyncID] = true
		require.NoError(t, c.Close())
	}
	require.Len(t, ids, 1, "one job, however often it was asked for")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx, nodes[0].s.log) }()
	var job string
	for id := range ids {
		job = id
	}
	ring.Await(t, func() bool {
		return nodes[0].do("GET", "/api/v1/client/async/"+job, admin, "").json["status"] == "completed"
	})
	stop()
	require.NoError(t, <-done)
	require.Equal(t, 100.0, nodes[1].do("GET", "/api/v1/orders", admin, "").json["total"])
}

// isRow reports whether an operation creates a row of a simple family
// (cloud/collection): its example makes one.
func isRow(table *catalog.Catalog, operation string) bool {
	family, create := strings.CutSuffix(operation, ".create")
	find := table.Find(family + ".find")
	if !create || find == nil {
		return false
	}
	_, named := reflect.New(find.In()).Elem().Interface().(interface{ Key() int64 })
	return named
}
