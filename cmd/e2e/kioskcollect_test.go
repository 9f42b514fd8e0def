package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/kiosk"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// screenOf is the page of a cabinet.
func screenOf(c *cabinet) *kiosk.Kiosk {
	return kiosk.New(kiosk.Config{DeviceCode: c.code, Operator: kiosk.Operator{Name: "Acme Logistics", Phone: "+1 416 555 0100", Email: "help@acme.example"}, Codes: c.agent.Codes(),
		Loop: c.agent.Loop(), Link: c.agent.Link(), Now: c.agent.Now, Health: c.agent.Health, OnSite: c.agent.OnSite, CloudURL: "https://parcels.example", Learn: c.agent.Learn, KeepLearned: c.agent.KeepLearned,
		Store: func() kiosk.StoreState {
			return kiosk.StoreState{FilledPercent: c.agent.Store().Filled(), Waiting: c.agent.Store().Present().Backlog}
		}})
}

// staffPage is a member of the staff at the page of a cabinet.
type staffPage struct {
	t     *testing.T
	page  *kiosk.Kiosk
	token string
}

// ask asks the page, and reads its answer into out; nil: it is not read.
func (p *staffPage) ask(method, path, body string, out any) int {
	p.t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), method, "http://127.0.0.1:8091"+path, strings.NewReader(body))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	w := httptest.NewRecorder()
	p.page.Handler().ServeHTTP(w, r)
	if out != nil {
		require.NoError(p.t, json.Unmarshal(w.Body.Bytes(), out), w.Body.String())
	}
	return w.Code
}

func (p *staffPage) post(path, body string) (r kiosk.Result) {
	p.t.Helper()
	p.ask("POST", path, body, &r)
	return r
}

func (p *staffPage) session() *kiosk.SessionView {
	p.t.Helper()
	var v kiosk.View
	require.Equal(p.t, 200, p.ask("GET", "/api/staff", "", &v))
	return v.Session
}

func (p *staffPage) remove(of kiosk.Result, outcome, reason string) string {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"opening_id": of.OpeningID, "door": of.Doors[0].Door, "outcome": outcome, "removal_reason": reason})
	require.NoError(p.t, err)
	return p.post("/api/staff/remove", string(body)).Outcome
}

// A courier with a staff code empties a cabinet without a network: what was taken, was not
// there, and was left is right at the cabinet at once, after a power cut, and in the cloud once
// the record reaches it; and another parcel comes to what is free.
func TestACourierCollectsAtTheScreenWithoutANetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 7, 1) // with sensors of items
		defer w.close()
		c := w.cabinets[0]
		w.ready(c)
		doors, codes := map[string]uint{}, map[string]string{}
		bring := func(ref string) {
			out := w.begin(ref, "PK-"+ref)
			doors[ref], codes[ref] = out.Opening.Compartments[0].Door, *out.PickupCode
			require.NoError(t, c.sim.Put(doors[ref], "PK-"+ref))
			c.close(out)
			w.delivered(ref)
		}
		for _, ref := range []string{"R-1", "R-2", "R-3", "R-4"} {
			bring(ref)
		}
		for _, ref := range []string{"R-1", "R-2", "R-3"} {
			id := locker.DeliveryKey(strconv.FormatInt(int64(w.find(ref).DeliveryID), 10))
			_, err := w.cloud.Lockers.ExpireDelivery(t.Context(), w.box.AdminCaller, locker.EndInput{Delivery: id, Reason: "Too long"})
			require.NoError(t, err)
		}
		staff := w.drawStaffCodes(c)[0].Code
		w.listed(c)
		c.setCut(true)
		time.Sleep(20 * time.Second)

		p := &staffPage{t: t, page: screenOf(c)}
		p.token = p.post("/api/code", `{"code":"`+staff+`"}`).StaffToken
		require.NotEmpty(t, p.token)
		var listed []uint
		for _, x := range p.session().Collect {
			require.Equal(t, "overdue", x.Why)
			listed = append(listed, x.Door)
		}
		require.ElementsMatch(t, []uint{doors["R-1"], doors["R-2"], doors["R-3"]}, listed)
		body, err := json.Marshal(map[string]any{"code": staff, "doors": []uint{doors["R-1"], doors["R-2"], doors["R-3"]}, "queue": true})
		require.NoError(t, err)
		acted := func(path, body string) kiosk.Result {
			n := w.act(truth.Act{Cabinet: c.code, Kind: edge.ByStaff, Code: wire.CodeStaff})
			r := p.post(path, body)
			a := edgelocker.Answer{Outcome: r.Outcome}
			for _, d := range r.Doors {
				a.Doors = append(a.Doors, edge.DoorNumber(d.Door))
			}
			w.answered(n, a, nil)
			return r
		}
		visit := func(a kiosk.Result, ref string, take bool) kiosk.Result {
			t.Helper()
			require.Equal(t, wire.CodeOK, a.Outcome)
			require.Equal(t, doors[ref], a.Doors[0].Door)
			time.Sleep(5 * time.Second)
			require.Equal(t, wire.ReasonBusy, p.post("/api/staff/next", "{}").Outcome, "the door is open")
			if take {
				_, err := c.sim.TakeOut(doors[ref])
				require.NoError(t, err)
			}
			require.NoError(t, c.sim.CloseDoor(doors[ref]))
			time.Sleep(5 * time.Second)
			return a
		}
		a := visit(acted("/api/code", string(body)), "R-1", true)
		require.Equal(t, "ok", p.remove(a, wire.RemovalTaken, wire.RemovalCollected))
		a = visit(acted("/api/staff/next", "{}"), "R-2", true)
		require.Equal(t, "ok", p.remove(a, wire.RemovalNotFound, wire.RemovalCollected))
		a = visit(acted("/api/staff/next", "{}"), "R-3", false)
		require.Equal(t, "still_inside", p.remove(a, wire.RemovalTaken, wire.RemovalCollected))
		require.Equal(t, "ok", p.remove(a, wire.RemovalRefused, wire.RemovalCollected))
		require.Equal(t, "queue_done", p.post("/api/staff/next", "{}").Outcome)
		require.NotEqual(t, wire.CodeOK, c.try(codes["R-1"]).Outcome)

		body, err = json.Marshal(map[string]any{"code": staff, "doors": []uint{doors["R-4"]}})
		require.NoError(t, err)
		a = acted("/api/code", string(body))
		require.Equal(t, wire.CodeOK, a.Outcome)
		time.Sleep(5 * time.Second)
		_, err = c.sim.TakeOut(doors["R-4"])
		require.NoError(t, err)
		require.NoError(t, c.sim.CloseDoor(doors["R-4"]))
		time.Sleep(5 * time.Second)
		require.Equal(t, "ok", p.remove(a, wire.RemovalTaken, "pending_area"))
		require.Equal(t, 200, p.ask("POST", "/api/staff/leave", "{}", nil))
		require.Equal(t, 401, p.ask("POST", "/api/staff/next", "{}", nil))

		c.restart(time.Minute)
		time.Sleep(time.Minute)
		for _, ref := range []string{"R-1", "R-2", "R-4"} {
			require.Empty(t, c.doorOf(doors[ref]).Delivery, "%s after a power cut", ref)
		}
		require.Equal(t, w.find("R-3").DeliveryNumber, c.doorOf(doors["R-3"]).Delivery)
		c.setCut(false)
		w.ready(c)
		c.drained()
		w.awaits("the collection in the cloud", 5*time.Minute, func() bool { return w.find("R-4").Status == cloud.DeliveryFailed })
		d := w.find("R-1")
		require.Equal(t, cloud.DeliveryPickedUp, d.Status)
		require.Equal(t, cloud.DeliveryFailed, w.find("R-2").Status)
		require.Equal(t, cloud.DeliveryExpired, w.find("R-3").Status)
		open, err := w.cloud.Lockers.ListCabinetExceptions(t.Context(), w.box.AdminCaller, locker.CabinetExceptionsInput{})
		require.NoError(t, err)
		missing := 0
		for _, e := range open.Exceptions {
			if e.Type == wire.ExItemMissing {
				missing++
				require.Equal(t, w.find("R-2").DeliveryID, *e.DeliveryID)
			}
		}
		require.Equal(t, 1, missing)
		history, err := w.cloud.Lockers.ListDoorHistory(t.Context(), w.staff, locker.HistoryInput{Device: w.box.Devices[0].DeviceID})
		require.NoError(t, err)
		var stated []string
		for _, l := range history.Reports {
			for _, x := range l.Doors {
				for _, r := range x.Removals {
					stated = append(stated, r.Outcome+" "+r.Reason+" "+*l.ByName)
				}
			}
		}
		name := w.box.AdminCaller.Account.Name
		require.ElementsMatch(t, []string{"taken collected " + name, "not_found collected " + name, "refused collected " + name, "taken pending_area " + name}, stated)
		bring("R-5")
		require.Equal(t, doors["R-1"], doors["R-5"], "the first one is free again")
		require.Equal(t, wire.CodeOK, c.try(codes["R-3"]).Outcome, "what was left can be collected")
		time.Sleep(5 * time.Second)
		_, err = c.sim.TakeOut(doors["R-3"])
		require.NoError(t, err)
		require.NoError(t, c.sim.CloseDoor(doors["R-3"]))
		w.awaits("the rest is collected", time.Minute, func() bool { return w.find("R-3").Status == cloud.DeliveryPickedUp })
		time.Sleep(15 * time.Minute)
		require.Empty(t, w.faults(), "both sides agree on what lies where")
		outcomes, _ := kept[wire.CommandOutcome](w, wire.KindCommandOutcome)
		for _, o := range outcomes {
			require.Equal(t, wire.OutcomeDone, o.Outcome)
		}
		w.judge(t)
	})
}

// screenRemove has staff open compartments of a delivery at the cabinet's screen, overdue ones
// one after the other, and state what became of what lies there.
func (w *world) screenRemove(x *task, rnd *rand.Rand) {
	c := w.cabinets[x.cabinet]
	overdue, leave, stay := rnd.IntN(2) == 0, rnd.IntN(6) == 0, time.Duration(2+rnd.IntN(15))*time.Second
	reason := wire.RemovalReasons()[rnd.IntN(len(wire.RemovalReasons()))]
	boxes := w.boxes(x)
	if len(boxes) == 0 {
		return
	}
	out, err := w.server().Lockers.FindStaffCodes(context.Background(), w.box.AdminCaller, locker.StaffCodesInput{})
	if err == nil && len(out.Codes) == 0 {
		out, err = w.server().Lockers.DrawStaffCodes(context.Background(), w.box.AdminCaller, locker.StaffCodesInput{})
	}
	if err == nil && overdue {
		_, err = w.server().Lockers.ExpireDelivery(context.Background(), w.box.AdminCaller, locker.EndInput{Delivery: locker.DeliveryKey(strconv.FormatInt(int64(x.id), 10)), Reason: "Too long"})
	}
	if err != nil {
		w.effect("screen", err)
		return
	}
	time.Sleep(5 * time.Second)
	var doors []edge.DoorNumber
	for _, n := range slices.Sorted(maps.Keys(boxes)) {
		doors = append(doors, edge.DoorNumber(n))
	}
	if !overdue {
		doors = doors[:1]
	}
	opens := func(ask func(context.Context) (edgelocker.Answer, error)) (edgelocker.Answer, bool) {
		n := w.act(truth.Act{Cabinet: c.code, Kind: edge.ByStaff, Code: wire.CodeStaff})
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		a, err := ask(ctx)
		w.answered(n, a, err)
		if err != nil {
			a.Outcome = "no answer"
		}
		w.count("screen opens " + a.Outcome)
		return a, err == nil && a.Outcome == wire.CodeOK
	}
	a, opened := opens(func(ctx context.Context) (edgelocker.Answer, error) {
		if overdue {
			return c.running().Codes().Enter(ctx, access.Entered{Code: out.Codes[0].Code, Doors: doors, Queue: true})
		}
		return c.running().Codes().Type(ctx, out.Codes[0].Code, doors)
	})
	session := a.Session
	for opened {
		w.screenState(c, boxes[uint(a.Doors[0])], session, a, removalWish{overdue: overdue, leave: leave, reason: reason, stay: stay})
		if !overdue {
			return
		}
		a, opened = opens(func(ctx context.Context) (edgelocker.Answer, error) {
			return c.running().Loop().Do(ctx, edgelocker.OpenNext{Session: session})
		})
	}
}

// removalWish is what a member of the staff is about to do behind a door.
type removalWish struct {
	overdue, leave bool
	reason         string
	stay           time.Duration
}

// screenState has staff at an open door take out what lies there, unless they leave it, shut the
// door, and state what they did.
func (w *world) screenState(c *cabinet, packages []string, session string, a edgelocker.Answer, wish removalWish) {
	door := uint(a.Doors[0])
	time.Sleep(2 * time.Second)
	if !c.pulsedFor(a.OpeningID) || !c.isOpen(door) {
		return
	}
	in := edgelocker.Remove{Session: session, OpeningID: a.OpeningID, Door: a.Doors[0], Outcome: wire.RemovalTaken, Reason: wish.reason}
	if wish.overdue {
		in.Reason = wire.RemovalCollected
	}
	var taken []string
	switch {
	case !slices.ContainsFunc(c.sim.ItemsAt(door, time.Now()), func(item string) bool { return slices.Contains(packages, item) }):
		in.Outcome = wire.RemovalNotFound
	case wish.leave:
		in.Outcome = wire.RemovalRefused
	default:
		taken, _ = c.sim.TakeOut(door)
	}
	time.Sleep(wish.stay)
	_ = c.sim.CloseDoor(door)
	if len(taken) > 0 {
		w.noteEmpty(c, door)
	}
	if !wish.overdue && in.Outcome != wire.RemovalTaken {
		return // it is not there any more, or stays
	}
	outcome := ""
	for range 4 { // until the cabinet knows that the door is shut
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		got, err := c.running().Loop().Do(ctx, in)
		cancel()
		if outcome = got.Outcome; err == nil && outcome != edgelocker.RemovalDoorOpen && outcome != wire.ReasonBoard {
			break
		}
	}
	w.count("screen " + in.Outcome + " " + outcome)
	if len(taken) > 0 && outcome != wire.CodeOK { // the parcel is gone, and no word of it is taken
		c.disturb("forgot", door, 30*time.Second)
	}
}

// count counts what was seen to happen.
func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[what]++
}

// isOpen reports whether a door stands open.
func (c *cabinet) isOpen(door uint) bool {
	for _, d := range c.sim.View().Doors {
		if d.Number == door {
			return d.Open
		}
	}
	return false
}

// Senders bring parcels, and staff collect, remove a parcel and walk away, at the screen of a
// cabinet in a real browser, with the link cut, at both sizes.
func TestStaffCollectAtTheScreenOfACabinet(t *testing.T) {
	ring.SkipUnlessFull(t, "minutes of a browser; what staff do at the screen is tried by requests in a shorter ring")
	w := newWorld(t, 7, 1) // with sensors of items
	defer w.close()
	found := w.useScreen(t, w.cabinets[0], "kioskcollect.mjs")
	for _, kind := range found.kinds() {
		require.EqualValues(t, 3, found.Screens[kind+"-listed"])
		require.EqualValues(t, 3, found.Screens[kind+"-summed"])
		require.NotEmpty(t, found.Screens[kind+"-asked-twice"], "the first press removes nothing")
		require.Nil(t, found.Screens[kind+"-removed"])
		require.NotEmpty(t, found.Screens[kind+"-walked-away"], "what was not answered stays")
		require.Equal(t, touches{Taps: 3, Digits: 7}, found.Taps[kind+"-send"])
		require.Equal(t, touches{Taps: 3, Digits: 7}, found.Taps[kind+"-return"])
		require.Equal(t, touches{Taps: 9, Digits: 16}, found.Taps[kind+"-collect"], "of three doors, one of them asked twice")
	}
}
