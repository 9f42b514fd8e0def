package server

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
	"github.com/postern-io/postern/protocol/wire"
)

var updateRehearsal = flag.Bool("update-rehearsal", false, "write the collection of requests anew")

// rehearsalFile is the collection of requests for partners, as Postman and Newman read it.
var rehearsalFile = filepath.Join("..", "..", "docs", "rehearsal.postman_collection.json")

// request is one step of a rehearsal. Path and body may name variables as {{name}}.
type request struct {
	folder, name string
	method, path string
	body         string
	status       int
	// want are values that the answer has at paths; in a path, * stands for each element of a
	// list.
	want [][2]string
	// save are the variables that take the first value at a path.
	save [][2]string
	// limited: it is sent until so many in a minute are too many, where the account has a limit.
	limited bool
}

// A step that is limited is sent so often at most; limits fill up meanwhile.
const openings = 120

// rehearsal is the list of requests, by folders.
type rehearsal struct {
	folder string
	steps  []request
}

func (r *rehearsal) add(name, method, path, body string, status int, want ...[2]string) *request {
	r.steps = append(r.steps, request{folder: r.folder, name: name, method: method, path: path, body: body, status: status, want: want})
	return &r.steps[len(r.steps)-1]
}

func (r *rehearsal) create(ref, size string) {
	s := r.add("Create a delivery", "POST", "/deliveries", r.delivery(ref, size, "{{locker}}"), 201, [2]string{"delivery.status", "created"})
	s.save = [][2]string{{ref, "delivery.delivery_id"}, {ref + "_grid", "delivery.packages.*.grid_id"}, {ref + "_code", "delivery.delivery_code"}}
}

func (r *rehearsal) delivery(ref, size, locker string) string {
	return fmt.Sprintf(`{"reference_number":"{{run}}-%[1]s","device_id":%[3]s,"packages":[{"tracking_number":"{{run}}-%[1]s-1","size":"%[2]s"}],"recipient":{"name":"Ada Lovelace","phone":"+14165550123"}}`, ref, size, locker)
}

func (r *rehearsal) post(name, ref, what, body string, status int, want ...[2]string) *request {
	return r.add(name, "POST", "/deliveries/{{"+ref+"}}/"+what, body, status, want...)
}

func (r *rehearsal) open(ref string) {
	r.post("Open its door", ref, "open-doors", `{}`, 200)
	r.is(ref, "doors_opened")
}

func (r *rehearsal) door(name, grid, action string, more string) {
	r.add(name, "POST", "/mock/lockers/{{locker}}/doors", fmt.Sprintf(`{"grid_id":{{%s}},"action":"%s"%s}`, grid, action, more), 200)
}

func (r *rehearsal) close(ref string) { r.door("Close the door", ref+"_grid", "close", "") }

func (r *rehearsal) faults(name, body string, want ...[2]string) *request {
	return r.add(name, "POST", "/mock/lockers/{{locker}}/faults", body, 200, want...)
}

func (r *rehearsal) ahead(name string, seconds int, want ...[2]string) {
	r.faults(name, fmt.Sprintf(`{"advance_seconds":%d}`, seconds), want...)
}

func (r *rehearsal) settle(ref string) {
	r.close(ref)
	r.ahead("The cabinet waits a moment", 3)
}

func (r *rehearsal) deposit(ref, size string) {
	r.create(ref, size)
	r.open(ref)
	r.settle(ref)
	r.is(ref, "delivered")
}

func (r *rehearsal) pickUp(ref string) {
	r.add("The recipient enters the code", "POST", "/mock/lockers/{{locker}}/pickup", fmt.Sprintf(`{"delivery_id":{{%s}}}`, ref), 200)
	r.settle(ref)
	r.is(ref, "picked_up")
}

func (r *rehearsal) is(ref, status string, want ...[2]string) {
	r.add("It is "+status, "GET", "/deliveries/{{"+ref+"}}", "", 200, append([][2]string{{"delivery.status", status}}, want...)...)
}

func (r *rehearsal) event(ref string, names ...string) {
	var want [][2]string
	for _, n := range names {
		want = append(want, [2]string{"events.*.event", "locker_delivery." + n})
	}
	r.add("Its events", "GET", "/deliveries/{{"+ref+"}}/events", "", 200, want...)
}

// clear empties the locker and ends all that is wrong with it.
func (r *rehearsal) clear() {
	r.faults("Reset the locker", `{"clear":true}`, [2]string{"locker.doors.*.state", "free"})
}

// mend ends what is wrong with the locker, and leaves what lies inside.
func (r *rehearsal) mend() {
	r.faults("Put the locker in order", `{"offline":false,"timeout_next_open":false,"drop_close_reports":false,"disabled":false}`)
}

func refused(code string) [2]string { return [2]string{"error_code", code} }

// newRehearsal is every outcome that a partner can rehearse.
func newRehearsal() []request {
	r := &rehearsal{}
	confirmed := func(by string) [2]string { return [2]string{"delivery.confirmed_by", by} }

	r.folder = "The locker"
	r.add("Your account", "GET", "/me", "", 200).save = [][2]string{{"openings", "provider.limits.door_openings_per_minute"}}
	r.add("Your mock locker", "GET", "/lockers?keyword=MOCK-", "", 200).save = [][2]string{{"locker", "lockers.*.device_id"}}
	r.clear()

	r.folder = "A deposit and its pickup"
	r.deposit("a", "S")
	r.is("a", "delivered", confirmed("door_close"))
	r.pickUp("a")
	r.event("a", "doors_opened", "delivered", "picked_up")

	r.folder = "The report of the closed door is lost"
	r.create("b", "S")
	r.open("b")
	r.faults("Lose the reports of closed doors", `{"drop_close_reports":true}`)
	r.close("b")
	r.ahead("The door session of ten minutes ends", 603)
	r.is("b", "delivered", confirmed("timeout_door_closed"))
	r.mend()

	r.folder = "The courier at the screen"
	r.create("c", "S")
	r.add("The courier types the delivery code", "POST", "/mock/lockers/{{locker}}/pickup", `{"pickup_code":"{{c_code}}"}`, 200)
	r.door("The courier presses done", "c_grid", "done", "")
	r.settle("c")
	r.is("c", "delivered", confirmed("courier_terminal"))

	r.folder = "You confirm"
	r.create("d", "S")
	r.open("d")
	r.faults("Lose the reports of closed doors", `{"drop_close_reports":true}`)
	r.close("d")
	r.post("A package of another delivery", "d", "confirm", `{"packages":[{"tracking_number":"{{run}}-x"}]}`, 409, refused("PACKAGE_NOT_IN_DELIVERY"))
	r.post("Confirm the deposit", "d", "confirm", `{}`, 200, confirmed("partner_api"))
	r.mend()

	r.folder = "The operator's staff confirm"
	r.create("e", "M")
	r.open("e")
	r.faults("Lose the reports of closed doors", `{"drop_close_reports":true}`)
	r.close("e")
	r.door("Staff confirm the deposit", "e_grid", "staff_confirm", "")
	r.is("e", "delivered", confirmed("console"))
	r.mend()

	r.folder = "Corrections"
	for range 3 {
		r.post("Open it once more", "e", "correction", `{"reason":"Wrong parcel"}`, 200)
		r.is("e", "correcting")
		r.settle("e")
		r.is("e", "delivered")
	}
	r.post("A fourth time", "e", "correction", `{"reason":"Wrong parcel"}`, 409, refused("CORRECTION_LIMIT"))
	r.event("e", "correction_reopened", "delivered")
	r.ahead("A quarter of an hour passes", 901)
	r.post("Too late", "d", "correction", `{"reason":"Wrong parcel"}`, 409, refused("CORRECTION_WINDOW_CLOSED"))
	r.pickUp("e")

	r.folder = "The code is replaced"
	r.post("Rotate the pickup code", "d", "pickup-code/rotate", `{"reason":"recipient_request"}`, 200)
	r.event("d", "pickup_code_changed")
	r.add("A wrong code", "POST", "/mock/lockers/{{locker}}/pickup", `{"pickup_code":"000001"}`, 409, refused("CODE_REFUSED"))
	r.pickUp("d")

	r.folder = "It fails, it is cancelled, it is not brought"
	r.create("f", "M")
	r.post("Report a failure", "f", "fail", `{"failure_code":"COURIER_ABORTED"}`, 200, [2]string{"delivery.status", "failed"})
	r.event("f", "delivery_failed")
	r.create("g", "M")
	r.post("Cancel it", "g", "cancel", `{"reason":"Not needed"}`, 200, [2]string{"delivery.status", "cancelled"})
	r.event("g", "cancelled")
	r.post("A cancelled one opens no door", "g", "open-doors", `{}`, 409, refused("DELIVERY_STATE_CONFLICT"))
	r.create("h", "M")
	r.ahead("Three days pass", 3*24*3600+60, [2]string{"locker.exceptions.*.type", "overdue"}, [2]string{"locker.device_orders.*.status", "overdue"})
	r.is("h", "expired")
	r.event("h", "expired")

	r.folder = "It is not collected"
	r.is("b", "expired")
	r.event("b", "expired")
	r.pickUp("b")
	r.post("Take the parcel back", "c", "retrieve", `{"reason":"overdue"}`, 200)
	r.settle("c")
	r.post("It was taken", "c", "retrieve/confirm", `{}`, 200, [2]string{"delivery.status", "picked_up"})
	r.faults("The rows of the locker", `{}`, [2]string{"locker.device_orders.*.removal_reason", "overdue_return"})

	r.folder = "What people have to look at"
	r.create("i", "L")
	r.open("i")
	r.ahead("The door session ends with an open door", 601, [2]string{"locker.exceptions.*.type", "door_left_open"})
	r.settle("i")
	r.is("i", "delivered")
	r.door("The sensor sees the parcel", "i_grid", "close", `,"occupied":true`)
	r.door("It sees nothing any more", "i_grid", "close", `,"occupied":false`)
	r.ahead("The cabinet waits a moment", 60, [2]string{"locker.exceptions.*.type", "item_missing"})
	r.create("j", "L")
	r.open("j")
	r.door("Close it with nothing inside", "j_grid", "close", `,"occupied":false`)
	r.ahead("The cabinet waits a moment", 3, [2]string{"locker.exceptions.*.type", "deposit_unverified"}, [2]string{"locker.device_orders.*.status", "unverified"})
	r.clear()
	r.is("j", "failed")

	r.folder = "What is refused"
	r.create("k", "XL")
	r.add("The same reference for another delivery", "POST", "/deliveries", r.delivery("k", "S", "{{locker}}"), 409, refused("DUPLICATE_REFERENCE"))
	r.add("No room", "POST", "/deliveries", r.delivery("l", "XL", "{{locker}}"), 409, refused("NO_COMPARTMENT"))
	r.add("A size that there is not", "POST", "/deliveries", r.delivery("l", "XXL", "{{locker}}"), 422, refused("VALIDATION_FAILED"))
	r.add("No such locker", "POST", "/deliveries", r.delivery("l", "S", "999999999"), 404, refused("DEVICE_NOT_FOUND"))
	r.add("No such delivery", "GET", "/deliveries/ref:{{run}}-none", "", 404, refused("DELIVERY_NOT_FOUND"))
	r.deposit("m", "S")
	r.open("k")
	r.post("Another compartment that is taken", "k", "reassign", `{"grid_id":{{m_grid}},"reason":"Does not fit"}`, 409, refused("GRID_NOT_FREE"))
	r.post("One that there is not", "k", "reassign", `{"grid_id":999999999,"reason":"Does not fit"}`, 404, refused("GRID_NOT_FOUND"))
	r.faults("A free small one", `{}`).save = [][2]string{{"small", "locker.doors.3.grid_id"}}
	r.post("One that is too small", "k", "reassign", `{"grid_id":{{small}},"reason":"Does not fit"}`, 422, refused("PARCEL_TOO_LARGE"))
	r.settle("k")
	r.faults("Put the locker out of service", `{"disabled":true}`, [2]string{"locker.disabled", "true"})
	r.add("It takes nothing", "POST", "/deliveries", r.delivery("n", "S", "{{locker}}"), 409, refused("DEVICE_DISABLED"))
	r.mend()
	r.create("n", "M")
	r.faults("Take it offline", `{"offline":true}`, [2]string{"locker.online", "false"})
	r.post("It cannot be reached", "n", "open-doors", `{}`, 409, refused("DEVICE_OFFLINE"))
	r.mend()
	r.faults("Let an order go without an answer", `{"timeout_next_open":true}`)
	r.post("It does not answer", "n", "open-doors", `{"wait_seconds":20}`, 504, refused("DEVICE_TIMEOUT"))
	r.door("Jam its lock", "n_grid", "jam", "")
	r.post("No door opens", "n", "open-doors", `{}`, 409, refused("DELIVERY_STATE_CONFLICT"))
	r.clear()
	r.add("A real locker, where the business has one", "POST", "/mock/lockers/{{real_locker}}/faults", `{}`, 422, refused("NOT_A_TEST_LOCKER"))
	r.add("Another partner's locker", "POST", "/mock/lockers/{{other_locker}}/faults", `{}`, 403, refused("DEVICE_NOT_SHARED"))

	r.folder = "Too many door openings"
	r.create("o", "M")
	r.post("Open its door until it is one too many", "o", "open-doors", `{}`, 429, refused("RATE_LIMITED")).limited = true

	r.folder = "The locker is empty again"
	r.clear()
	return r.steps
}

// valuesAt are the values at a path of an answer.
func valuesAt(in any, path string) []any {
	at := []any{in}
	for key := range strings.SplitSeq(path, ".") {
		var next []any
		for _, x := range at {
			switch x := x.(type) {
			case map[string]any:
				if v, is := x[key]; is {
					next = append(next, v)
				}
			case []any:
				var n int
				if key == "*" {
					next = append(next, x...)
				} else if _, err := fmt.Sscan(key, &n); err == nil && n < len(x) {
					next = append(next, x[n])
				}
			}
		}
		at = next
	}
	return at
}

func text(v any) string {
	if n, is := v.(float64); is {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(v)
}

// reached are the outcomes that the answers of a rehearsal have shown, each "kind value".
type reached map[string]bool

// note takes what an answer says of outcomes.
func (r reached) note(answer any) {
	for kind, path := range map[string]string{"status": "delivery.status", "confirmed_by": "delivery.confirmed_by", "event": "events.*.event", "error": "error_code",
		"exception": "locker.exceptions.*.type", "device order": "locker.device_orders.*.status", "package": "delivery.packages.*.status", "expired": "events.*.data.expired_kind"} {
		for _, v := range valuesAt(answer, path) {
			if v != nil {
				r[kind+" "+text(v)] = true
			}
		}
	}
}

// outcomes are those that the interface declares: lockers-devices 4, 4.1, 8 and 13, webhooks 5.
func outcomes() (out []string) {
	add := func(kind string, of ...string) {
		for _, x := range of {
			out = append(out, kind+" "+x)
		}
	}
	for _, s := range []cloud.DeliveryStatus{cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryDelivered, cloud.DeliveryCorrecting, cloud.DeliveryPickedUp, cloud.DeliveryFailed, cloud.DeliveryExpired, cloud.DeliveryCancelled} {
		add("status", string(s))
	}
	for _, b := range []wire.ConfirmedBy{wire.ByDoorClose, wire.ByTimeoutDoorClosed, wire.ByCourierTerminal, wire.ByPartnerAPI, wire.ByConsole} {
		add("confirmed_by", string(b))
	}
	for _, e := range []string{"doors_opened", "delivered", "delivery_failed", "correction_reopened", "picked_up", "expired", "cancelled", "pickup_code_changed"} {
		add("event", "locker_delivery."+e)
	}
	add("expired", "delivery_code_expired", "pickup_overdue")
	add("exception", wire.ExDoorLeftOpen, wire.ExDepositUnverified, wire.ExItemMissing, "overdue")
	add("device order", "unverified", "stored", "overdue", "picked_up", "removed")
	add("error", "NO_COMPARTMENT", "DEVICE_OFFLINE", "DEVICE_DISABLED", "DELIVERY_STATE_CONFLICT", "CORRECTION_WINDOW_CLOSED", "CORRECTION_LIMIT", "DUPLICATE_REFERENCE", "PACKAGE_NOT_IN_DELIVERY", "GRID_NOT_FREE",
		"DEVICE_NOT_FOUND", "DELIVERY_NOT_FOUND", "GRID_NOT_FOUND", "DEVICE_NOT_SHARED", "NOT_A_TEST_LOCKER", "PARCEL_TOO_LARGE", "RATE_LIMITED", "DEVICE_TIMEOUT", "CODE_REFUSED", "VALIDATION_FAILED")
	return out
}

// newRehearsalWorld is a cloud with a partner, a real locker, and another partner's mock locker.
// A cabinet opens so many doors in a minute; 0 as many as usual, -1 any number.
func newRehearsalWorld(t *testing.T, doors int) (w *hookWorld, vars map[string]string) {
	w = newHookWorldOf(t, "", SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Devices: []SandboxDevice{{Code: "CAB-1", Name: "One", Type: "smart_locker",
		Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}, Unsigned: true}}}, func(c *Config) { c.Limits.Doors = doors })
	status, out := w.call("POST", "/api/v1/providers", w.box.Admin.Token, map[string]any{"code": "other", "name": "Other", "services": []string{"locker"}})
	require.Equal(t, 201, status, "%v", out)
	vars = map[string]string{"base": w.base, "token": w.box.Provider.Token, "run": "GO", "real_locker": fmt.Sprint(w.box.Devices[0].DeviceID)}
	require.NoError(t, w.s.Store.Look(t.Context(), func(v cloud.View) error {
		d, err := v.MockOf(cloud.ProviderID(valuesAt(out, "provider.id")[0].(float64)))
		vars["other_locker"] = fmt.Sprint(d.ID)
		return err
	}))
	return w, vars
}

// A partner reaches every declared outcome with nothing but its own operations.
func TestPartnersRehearseEveryOutcome(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestMockCabinet")
	t.Parallel()
	w, vars := newRehearsalWorld(t, 0)
	named := regexp.MustCompile(`\{\{(\w+)\}\}`)
	fill := func(s string) string {
		return named.ReplaceAllStringFunc(s, func(name string) string {
			v, is := vars[strings.Trim(name, "{}")]
			require.True(t, is, name)
			return v
		})
	}
	got := reached{}
	for i, s := range newRehearsal() {
		var body any
		if s.body != "" {
			body = json.RawMessage(fill(s.body))
		}
		status, out := w.call(s.method, partnerPath+fill(s.path), vars["token"], body)
		for times := 1; s.limited && status == 200 && times < openings; times++ {
			status, out = w.call(s.method, partnerPath+fill(s.path), vars["token"], body)
		}
		at := fmt.Sprintf("step %d: %s: %s\n%s %s %s\n%v", i, s.folder, s.name, s.method, fill(s.path), fill(s.body), out)
		if s.status != 0 {
			require.Equal(t, s.status, status, at)
		}
		for _, x := range s.want {
			var values []string
			for _, v := range valuesAt(out, x[0]) {
				values = append(values, text(v))
			}
			require.Contains(t, values, x[1], "%s in %s", x[0], at)
		}
		for _, x := range s.save {
			values := valuesAt(out, x[1])
			require.NotEmpty(t, values, at)
			vars[x[0]] = text(values[0])
		}
		got.note(out)
	}
	var missed []string
	for _, x := range outcomes() {
		if !got[x] {
			missed = append(missed, x)
		}
	}
	require.Empty(t, missed, "reached: %v", slices.Sorted(maps.Keys(got)))
}

// collection is the rehearsal in the form of Postman's collections, version 2.1.
func collection(steps []request) []byte {
	type object = map[string]any
	var folders []any
	var items []any
	name := ""
	flush := func() {
		if len(items) > 0 {
			folders = append(folders, object{"name": name, "item": items})
		}
		items = nil
	}
	quoted := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	for _, s := range steps {
		if s.folder != name {
			flush()
			name = s.folder
		}
		exec := []string{}
		if s.status != 0 {
			exec = append(exec, "const body = pm.response.json();",
				"const pick = (x, key) => key === '*' ? x : x[key] === undefined ? [] : [x[key]];",
				"const at = path => path.split('.').reduce((all, key) => all.flatMap(x => x == null ? [] : pick(x, key)), [body]);")
			if s.status != 429 { // another run may have used up what the account may do in a minute
				exec = append(exec, "if (pm.response.code === 429) {", "  setTimeout(() => {}, 1000 * Number(pm.response.headers.get('Retry-After') || 1));",
					"  return pm.execution.setNextRequest(pm.info.requestId);", "}")
			}
			if s.limited {
				exec = append(exec, "const openings = Number(pm.collectionVariables.get('openings'));", fmt.Sprintf("if (openings < 0 || openings > %d) return;", openings/2), "const times = Number(pm.collectionVariables.get('times') || 0) + 1;",
					fmt.Sprintf("pm.collectionVariables.set('times', pm.response.code === 200 && times < %d ? times : 0);", openings),
					fmt.Sprintf("if (pm.response.code === 200 && times < %d) return pm.execution.setNextRequest(pm.info.requestId);", openings))
			}
			exec = append(exec, fmt.Sprintf("pm.test(%s, () => {", quoted(s.name)), fmt.Sprintf("  pm.response.to.have.status(%d);", s.status))
			for _, x := range s.want {
				exec = append(exec, fmt.Sprintf("  pm.expect(at(%s).map(String)).to.include(%s);", quoted(x[0]), quoted(x[1])))
			}
			exec = append(exec, "});")
			for _, x := range s.save {
				exec = append(exec, fmt.Sprintf("pm.collectionVariables.set(%s, at(%s)[0]);", quoted(x[0]), quoted(x[1])))
			}
		}
		r := object{"method": s.method, "url": "{{base}}" + partnerPath + s.path, "header": []any{}}
		if s.body != "" {
			r["header"] = []any{object{"key": "Content-Type", "value": "application/json"}}
			r["body"] = object{"mode": "raw", "raw": s.body}
		}
		items = append(items, object{"name": s.name, "request": r, "event": []any{object{"listen": "test", "script": object{"type": "text/javascript", "exec": exec}}}})
	}
	flush()
	first := object{"listen": "prerequest", "script": object{"type": "text/javascript", "exec": []string{"if (!pm.collectionVariables.get('run')) pm.collectionVariables.set('run', 'R' + Date.now());"}}}
	variable := func(key, value, description string) any {
		return object{"key": key, "value": value, "description": description}
	}
	b, err := json.MarshalIndent(object{
		"info": object{"name": "Postern: rehearsal of locker deliveries", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
			"description": "Every state, event and refusal of a locker delivery, at the mock locker of your account. Set the variables base and token, and run the folders in their order. The run takes about a minute."},
		"auth":  object{"type": "bearer", "bearer": []any{object{"key": "token", "value": "{{token}}", "type": "string"}}},
		"event": []any{first},
		"variable": []any{variable("base", "https://postern.example", "Address of the cloud"), variable("token", "", "Key of your partner account"), variable("run", "", "Start of the reference numbers; drawn at the first request"),
			variable("real_locker", "", "device_id of a locker with livemode true; without one, its request is not answered as expected"), variable("other_locker", "", "device_id of the mock locker of another partner of the business; likewise")},
		"item": folders}, "", " ")
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// The collection of requests that partners take is the rehearsal, and Newman plays it.
func TestTheCollectionIsTheRehearsal(t *testing.T) {
	t.Parallel()
	b := collection(newRehearsal())
	if *updateRehearsal {
		require.NoError(t, os.WriteFile(rehearsalFile, b, 0o600))
	}
	kept, err := os.ReadFile(rehearsalFile)
	require.NoError(t, err)
	require.Equal(t, string(b), string(kept), "write it anew: go test ./cloud/server -run TestTheCollectionIsTheRehearsal -update-rehearsal")
}

func TestNewmanPlaysTheCollection(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestMockCabinet")
	t.Parallel()
	program, err := exec.LookPath("node")
	ring.Needs(t, ring.EnvBrowsers, "node", err == nil)
	newman := filepath.Join("..", "mock", "rehearsal", "node_modules", "newman", "bin", "newman.js")
	_, err = os.Stat(newman)
	ring.Needs(t, ring.EnvBrowsers, "node_modules/newman (npm ci in cloud/mock/rehearsal)", err == nil)
	verdict.RecordTest(t, "newman", "collection of the partner interface against the mock cabinet")
	_, vars := newRehearsalWorld(t, -1)
	play := func(vars map[string]string, more ...string) ([]byte, error) {
		args := append([]string{newman, "run", rehearsalFile, "--bail", "--color", "off"}, more...)
		for _, name := range []string{"base", "token", "real_locker", "other_locker"} {
			args = append(args, "--env-var", name+"="+vars[name])
		}
		return exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	}
	wrong := maps.Clone(vars)
	wrong["token"] = "wrong"
	_, err = play(wrong)
	require.Error(t, err, "it finds what is not as expected")
	plays := func(vars map[string]string, more ...string) {
		out, err := play(vars, more...)
		require.NoError(t, err, "%s", out[max(0, len(out)-4000):])
		require.Contains(t, string(out), "assertions", "%s", out)
	}
	plays(vars)
	// An account is played with again, also after a run that was broken off.
	plays(vars, "--folder", "The locker", "--folder", "What is refused")
	plays(vars)
	if ring.Full() { // an account with a limit is refused by it, and waits for its end: a minute each time
		_, vars = newRehearsalWorld(t, 0)
		plays(vars)
		plays(vars)
	}
}
