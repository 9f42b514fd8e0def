package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/agent"
	"github.com/postern-io/postern/edge/board"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
	"github.com/postern-io/postern/protocol/wiring"
)

// firm is a business that is run by calls of the interface alone, with the cloud and
// its cabinets in this process.
type firm struct {
	t    *testing.T
	dir  string
	base string
	mail *notification.MailServer // nil: links are shown to who made them
}

// worker is a person of the business, with the second factor that they set up.
type worker struct {
	person
	email, secret string
	id            float64
}

// box is a cabinet: hardware that stays in its place, and the agent that runs it.
type box struct {
	f     *firm
	id    float64
	code  string
	sim   *simboard.Cabinet
	agent *agent.Agent
	halt  func()
}

// From an empty folder a business is made and run by calls alone: its people with
// second factors, a cabinet whose hardware is replaced with a parcel inside, one that
// is stolen, a pickup order up to its end. The audit trail names who did each of it.
func TestABusinessRunsByCallsAlone(t *testing.T) {
	ring.SkipUnlessCheck(t, "the calls one by one")
	if testing.Short() {
		t.Skip("runs in real time")
	}
	t.Parallel()
	f := &firm{t: t, dir: t.TempDir()}
	admin := f.begin()
	clerk := f.join(admin, "client_employee", "Ben Clerk", "lockers:read", "lockers:write", "orders:read", "orders:write", "routes:read", "routes:write")
	driver := f.join(admin, "driver", "Cleo Driver")
	customer := f.join(admin, "customer", "Dan Customer")
	f.join(admin, "broker", "Eve Contractor")

	// A parcel outlives the hardware of its cabinet.
	pier := f.newBox(clerk, "PIER-1", clerk)
	made := f.ok(admin, "POST", "/api/v1/providers", map[string]any{"code": "swift", "name": "Swift", "services": []string{"locker"}, "livemode_allowed": true})
	provider := person{base: f.base, language: "en"}
	provider.token = f.ok(admin, "POST", fmt.Sprintf("/api/v1/providers/%v/tokens", made.at("provider", "id")), map[string]any{"name": "first"}).at("token").(string)
	const deliveries = "/api/v1/third-party-delivery/deliveries"
	f.ok(worker{person: provider}, "POST", deliveries, map[string]any{"reference_number": "R-1", "device_id": pier.id,
		"recipient": map[string]any{"name": "Jane Smith", "phone": "+14165550123"}, "packages": []any{map[string]any{"tracking_number": "PK-1", "size": "S"}}})
	f.ok(worker{person: provider}, "POST", deliveries+"/ref:R-1/open-doors", map[string]any{})
	door := pier.openDoor()
	require.NoError(t, pier.sim.Put(door, "PK-1"))
	time.Sleep(time.Second) // a door that shuts at once is a bounce
	require.NoError(t, pier.sim.CloseDoor(door))
	parcel := func() answered { return provider.do(t, "GET", deliveries+"/ref:R-1", nil) }
	f.awaits("the parcel is delivered", func() bool { return parcel().at("delivery", "status") == "delivered" })
	code := parcel().at("delivery", "pickup_code").(string)
	f.ok(clerk, "POST", fmt.Sprintf("/api/v1/smart-lockers/devices/%.0f/replace-hardware", pier.id), map[string]any{"reason": "water"})
	f.awaits("the former hardware is cut off", func() bool { return !pier.agent.Link().Connected() })
	pier.halt()
	renewed := f.ok(admin, "POST", fmt.Sprintf("/api/v1/smart-lockers/devices/%.0f/enrolment-token", pier.id), map[string]any{})
	pier.start(renewed.at("enrolment", "token").(string), "second")
	f.awaits("the new hardware knows the parcel", func() bool { return len(pier.agent.Loop().State().Deliveries) == 1 })
	a, err := pier.agent.Codes().Type(t.Context(), code, nil)
	require.NoError(t, err)
	require.Equal(t, wire.CodeOK, a.Outcome)
	require.Equal(t, door, pier.openDoor())
	items, err := pier.sim.TakeOut(door)
	require.NoError(t, err)
	require.Equal(t, []string{"PK-1"}, items)
	time.Sleep(time.Second)
	require.NoError(t, pier.sim.CloseDoor(door))
	f.awaits("the parcel is collected", func() bool { return parcel().at("delivery", "status") == "picked_up" })

	// A stolen cabinet has no way in.
	quay := f.newBox(admin, "QUAY-2", clerk)
	f.ok(clerk, "POST", fmt.Sprintf("/api/v1/smart-lockers/devices/%.0f/report-stolen", quay.id), map[string]any{"reason": "police report 12"})
	f.awaits("the stolen cabinet is cut off", func() bool { return !quay.agent.Link().Connected() })
	tries := quay.agent.Link().Counters().Attempts
	f.awaits("it tries to come back", func() bool { return quay.agent.Link().Counters().Attempts > tries })
	require.False(t, quay.agent.Link().Connected())
	require.True(t, pier.agent.Link().Connected(), "the other one works on")

	// A customer calls for a pickup, which ends with the last scan.
	place := map[string]any{"name": "Dan", "phone": "+14165550123", "address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}
	order := f.ok(customer, "POST", "/api/v1/client/orderCreate", map[string]any{"type": "P", "order_ref": "CALL-1", "packages": []any{map[string]any{"weight": 1}, map[string]any{"weight": 2}}, "sender": place})
	id := order.at("order_id").(float64)
	f.ok(clerk, "POST", fmt.Sprintf("/api/v1/orders/%.0f/driver", id), map[string]any{"driver_id": driver.id})
	for _, step := range []string{"accept", "start-pickup"} {
		f.ok(driver, "POST", fmt.Sprintf("/api/v1/driver/orders/%.0f/%s", id, step), map[string]any{})
	}
	f.ok(driver, "POST", fmt.Sprintf("/api/v1/driver/orders/%.0f/pickup", id), map[string]any{"result": "success"})
	shown := func() answered {
		return f.ok(clerk, "GET", fmt.Sprintf("/api/v1/orders/detail?order_id=%.0f", id), nil)
	}
	for i, want := range []string{"PICKED_UP", "DELIVERED"} {
		f.ok(clerk, "POST", "/api/v1/warehouse/scan", map[string]any{"code": shown().at("order", "packages", i, "tracking_number"), "action": "receive"})
		require.Equal(t, want, shown().at("order", "order_status"))
	}

	// All of it is in the audit trail, by name.
	lines := map[string][]map[string]any{}
	for cursor := ""; ; {
		page := f.ok(admin, "GET", "/api/v1/audit?per_page=100"+cursor, nil)
		list, _ := page.at("lines").([]any)
		for _, x := range list {
			line := x.(map[string]any)
			lines[fmt.Sprint(line["operation"])] = append(lines[fmt.Sprint(line["operation"])], line)
			lines[fmt.Sprint(line["action"])] = append(lines[fmt.Sprint(line["action"])], line)
		}
		next, _ := page.at("next_cursor").(string)
		if next == "" {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
	for _, want := range []struct {
		did, who string
		times    int
	}{
		{"invitations.create", "Ada Moreau", 4}, {"providers.create", "Ada Moreau", 1},
		{"smart_lockers.devices.create", "Ben Clerk", 1}, {"smart_lockers.devices.create", "Ada Moreau", 1},
		{"smart_lockers.devices.replace_hardware", "Ben Clerk", 1}, {"smart_lockers.devices.renew_token", "Ada Moreau", 1},
		{"smart_lockers.devices.report_stolen", "Ben Clerk", 1}, {"orders.driver", "Ben Clerk", 1}, {"warehouse.scan", "Ben Clerk", 2},
		{"driver.orders.pickup", "Cleo Driver", 1}, {"orders.create", "Dan Customer", 1},
		{"user.second_factor.confirm", "Ben Clerk", 1}, {"user.second_factor.confirm", "Cleo Driver", 1}, {"user.second_factor.confirm", "Dan Customer", 1}, {"user.second_factor.confirm", "Eve Contractor", 1},
		{"logged_in", "Ada Moreau", 1}, {"logged_in", "Ben Clerk", 1}, {"logged_in", "Cleo Driver", 1}, {"logged_in", "Dan Customer", 1}, {"logged_in", "Eve Contractor", 1},
	} {
		n := 0
		for _, line := range lines[want.did] {
			if line["actor_name"] == want.who {
				n++
			}
		}
		require.GreaterOrEqual(t, n, want.times, "%s by %s: %v", want.did, want.who, lines[want.did])
	}
	enrolled := map[any]int{}
	for _, line := range lines["enrolled"] {
		enrolled[line["actor"]]++
	}
	require.Equal(t, map[any]int{"device:PIER-1": 2, "device:QUAY-2": 1}, enrolled)
	raw, err := json.Marshal(lines)
	require.NoError(t, err)
	for _, secret := range []string{code, beginnerPassword, clerk.secret, clerk.token, provider.token} {
		require.NotContains(t, string(raw), secret)
	}
}

// begin starts a cloud in the empty folder and goes through its set-up.
func (f *firm) begin() worker {
	t := f.t
	web, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	mqtt, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.base = "http://" + web.Addr().String()
	s, err := server.New(t.Context(), server.Config{Dir: filepath.Join(f.dir, "cloud"), Node: "one", BaseURL: f.base, Mail: f.mail, Brokers: []string{"tcp://" + mqtt.Addr().String()}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, server.Listeners{HTTP: web, MQTT: mqtt}) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	key, _, err := s.Setup.IssueToken(t.Context()) // as the program prints it
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &beginner{t: t, base: f.base, browser: &http.Client{Jar: jar, Timeout: 30 * time.Second}}
	_, status, text := b.open(f.base+"/setup?key="+key, nil)
	require.Equal(t, 200, status, text)
	form := hiddenForm.FindStringSubmatch(text)
	require.Len(t, form, 2, text)
	ada := worker{person: person{base: f.base, language: "en"}, email: "ada@harbour.example"}
	at, status, text := b.open(f.base+"/setup", url.Values{"form": {form[1]}, "business": {"Harbour Lockers"}, "name": {"Ada Moreau"}, "email": {ada.email},
		"password": {beginnerPassword}, "timezone": {"America/Toronto"}, "country": {"CA"}})
	require.Equal(t, 200, status, text)
	require.Equal(t, "/setup/cabinet", at.Path)
	b.browser.CloseIdleConnections()
	f.login(&ada, "")
	return ada
}

// ok makes a call that succeeds.
func (f *firm) ok(w worker, method, path string, in any) answered {
	f.t.Helper()
	a := w.do(f.t, method, path, in)
	require.Contains(f.t, []int{200, 201, 202}, a.status, "%s %s: %v", method, path, a.body)
	return a
}

// awaits waits for what happens by itself; people do not ask more than a few times a
// second.
func (f *firm) awaits(what string, ok func() bool) {
	f.t.Helper()
	ring.Await(f.t, func() bool {
		if ok() {
			return true
		}
		time.Sleep(200 * time.Millisecond)
		return false
	}, what)
}

func (f *firm) login(w *worker, otp string) {
	f.t.Helper()
	in := map[string]any{"email": w.email, "password": beginnerPassword}
	if otp != "" {
		in["otp"] = otp
	}
	w.token = f.ok(*w, "POST", "/api/v1/user/login", in).at("access_token").(string)
}

// join has a person come by an invitation, set up a second factor and log in with it.
func (f *firm) join(admin worker, kind, name string, scopes ...string) worker {
	t := f.t
	t.Helper()
	w := worker{person: person{base: f.base, language: "en"}, email: kind + "@harbour.example"}
	made := f.ok(admin, "POST", "/api/v1/invitations", map[string]any{"account_type": kind, "name": name, "email": w.email, "permissions": scopes})
	f.ok(w, "POST", "/api/v1/invitations/accept", map[string]any{"token": made.at("token"), "email": w.email, "password": beginnerPassword})
	f.login(&w, "")
	w.secret = f.ok(w, "POST", "/api/v1/user/second-factor", map[string]any{"password": beginnerPassword}).at("totp_secret").(string)
	code := func(step int) string {
		return must(totp.GenerateCode(w.secret, time.Now().Add(time.Duration(step)*30*time.Second)))
	}
	f.ok(w, "POST", "/api/v1/user/second-factor/confirm", map[string]any{"otp": code(0)})
	w.token = ""
	refused := w.do(t, "POST", "/api/v1/user/login", map[string]any{"email": w.email, "password": beginnerPassword})
	require.Equal(t, []any{401, "SECOND_FACTOR_REQUIRED"}, []any{refused.status, refused.at("error_code")}, refused.body)
	f.login(&w, code(1))
	w.id = f.ok(w, "GET", "/api/v1/user/me", nil).at("user", "id").(float64)
	return w
}

// newBox has a cabinet created by one person and seen on line by another.
func (f *firm) newBox(maker worker, code string, viewer worker) *box {
	t := f.t
	t.Helper()
	made := f.ok(maker, "POST", "/api/v1/smart-lockers/devices", map[string]any{"device_name": code, "device_code": code, "layout": "small", "address": "7 Pier Rd"})
	b := &box{f: f, code: code, id: made.at("device", "device_id").(float64)}
	cfg := simboard.Config{Boards: []simboard.Board{{Name: wiring.Board, Line: wiring.Line, Family: wiring.Family, NoItems: true}}, Seed: 1}
	for n := uint(1); n <= 8; n++ {
		cfg.Doors = append(cfg.Doors, simboard.Door{Number: n, Board: wiring.Board, Channel: n})
	}
	var err error
	b.sim, err = simboard.New(cfg)
	require.NoError(t, err)
	t.Cleanup(b.sim.Close)
	b.start(made.at("enrolment", "token").(string), "first")
	f.awaits("staff see it on line", func() bool {
		list, _ := f.ok(viewer, "GET", "/api/v1/smart-lockers/devices?keyword="+code, nil).at("devices").([]any)
		return len(list) == 1 && list[0].(map[string]any)["status"] == "online"
	})
	return b
}

// start enrols a cabinet and starts its agent over an empty store.
func (b *box) start(token, store string) {
	t := b.f.t
	t.Helper()
	seed, public := signed.NewSeed()
	a := b.f.ok(worker{person: person{base: b.f.base}}, "POST", "/api/v1/devices/enrol", map[string]any{"device_code": b.code, "token": token, "public_key": public})
	raw, err := json.Marshal(a.body)
	require.NoError(t, err)
	var secrets access.Secrets
	require.NoError(t, json.Unmarshal(raw, &secrets))
	secrets.DeviceKey = seed
	b.agent, err = agent.New(agent.Config{Dir: filepath.Join(b.f.dir, b.code+"-"+store), Secrets: secrets, Version: "test", Log: slog.New(slog.DiscardHandler),
		Lines: []board.LineConfig{{Name: wiring.Line, Port: wiring.Line, Boards: []board.BoardConfig{{Name: wiring.Board, Family: wiring.Family}}}},
		Open: func(_ context.Context, l board.LineConfig) (board.Port, error) {
			conn, err := b.sim.Dial(l.Port)
			if err != nil {
				return nil, err
			}
			return board.ConnPort(conn), nil
		}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	run := b.agent
	go func() { done <- run.Run(ctx) }()
	stopped := false
	b.halt = func() {
		if !stopped {
			stopped = true
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(b.halt)
	b.f.awaits("connected with its doors read", func() bool {
		s := b.agent.Loop().State()
		return b.agent.Link().Connected() && s.Config.Version > 0 && s.Doors[1].Known
	})
}

// openDoor waits for one door to stand open.
func (b *box) openDoor() (door uint) {
	b.f.t.Helper()
	b.f.awaits("a door opens", func() bool {
		for n := uint(1); n <= 8; n++ {
			if b.sim.OpenAt(n, time.Now()) {
				door = n
				return true
			}
		}
		return false
	})
	return door
}
