package kiosk

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// screenSizes are windows in which each screen of a cabinet is looked at.
var screenSizes = [][2]int{{360, 640}, {390, 844}, {600, 1024}, {720, 1280}, {768, 1024}, {800, 1280}, {900, 1600}, {1080, 1920}, {1024, 600}, {1024, 768}, {1280, 720}, {1280, 800}, {1366, 768}, {1920, 1080}}

// largeTargets are the sizes whose controls are 96 px wide and high at least; those of others, 48.
var largeTargets = [][2]int{{1080, 1920}, {1280, 800}}

// findFaults is a function of the page: it gives what of a screen two controls share, what lies
// over the middle of a control or a text, what no scrolling by hand brings into view, what is
// smaller than it may be, and words that are cut off.
const findFaults = `async (width, height, text, least) => {
  text ? document.documentElement.dataset.size = text : delete document.documentElement.dataset.size;
  await new Promise((done) => requestAnimationFrame(done));
  document.dispatchEvent(new Event("pointerdown")); // a person stands there
  const faults = [], says = (e) => e.id || e.className?.baseVal || e.className || e.tagName;
  if (innerWidth !== width || innerHeight !== height) faults.push("the window is " + innerWidth + "x" + innerHeight);
  const root = document.documentElement, hides = (e) => (e === root ? [root, document.body] : [e]).some((x) => getComputedStyle(x).overflowY === "hidden");
  const over = (e) => { const list = []; for (let p = e.parentElement; p; p = p.parentElement) if (p !== document.body) list.push(p); return list; };
  const clips = (p) => p !== root && getComputedStyle(p).overflowY !== "visible";
  const cut = (e) => { let { left, top, right, bottom } = e.getBoundingClientRect(); for (const p of over(e).filter(clips)) { const r = p.getBoundingClientRect(); left = Math.max(left, r.left); top = Math.max(top, r.top); right = Math.min(right, r.right); bottom = Math.min(bottom, r.bottom); } return { left, top, right, bottom }; };
  const share = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const controls = [...document.querySelectorAll("body > :not(dialog) button, body > :not(dialog) input")].filter((e) => e.checkVisibility());
  const texts = [...document.querySelectorAll("#operator, #status, #headline, #lead, #message, #picture > *, .steps li, .queued")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height > 0);
  const all = [...controls, ...texts];
  if (root.scrollWidth > innerWidth) faults.push("the page is " + root.scrollWidth + " wide");
  all.forEach((a, i) => all.slice(i + 1).forEach((b) => {
    if (a.contains(b) || b.contains(a)) return;
    const one = over(a).find(clips) === over(b).find(clips) ? (e) => e.getBoundingClientRect() : cut;
    if (share(one(a), one(b))) faults.push(says(a) + " and " + says(b) + " overlap");
  }));
  const still = document.getElementById("still");
  const reach = (e, whole) => {
    e.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const r = e.getBoundingClientRect();
    for (const [x, y] of whole ? [[.5, .5], [.25, .25], [.75, .25], [.25, .75], [.75, .75]] : [[.5, .5]]) {
      const hit = document.elementFromPoint(r.left + r.width * x, r.top + r.height * y);
      if (!hit || !e.contains(hit) && !hit.contains(e) || hit === root || hit === document.body) return faults.push(says(e) + " at " + Math.round(r.top) + " high " + Math.round(r.height) + " is covered by " + (hit ? says(hit) : "the edge"));
      if (whole && !e.contains(hit)) return faults.push(says(e) + " is covered by " + says(hit));
    }
    for (const p of over(e)) if (p.scrollTop > 0 && hides(p)) { faults.push(says(e) + " is out of reach below"); p.scrollTop = 0; }
  };
  for (const e of controls) {
    const r = e.getBoundingClientRect();
    if (r.width < least - .5 || r.height < least - .5) faults.push(says(e) + " is " + Math.round(r.width) + "x" + Math.round(r.height));
    if (e.tagName === "BUTTON" && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) faults.push("the words of " + says(e) + " are cut off");
    reach(e, true);
  }
  for (const e of texts) reach(e, false);
  still.showModal();
  const stay = document.getElementById("stay");
  reach(stay, true);
  const frame = still.getBoundingClientRect();
  if (frame.top < 0 || frame.left < 0 || frame.bottom > innerHeight || frame.right > innerWidth) faults.push("the question is larger than the window");
  still.close();
  for (const e of document.querySelectorAll("*")) if (e.scrollTop) e.scrollTop = 0;
  return faults;
}`

// crowded is a cabinet with as many doors as large ones have, parcels and a notice.
func crowded() locker.State {
	s := newState()
	s.Config.Layout = nil
	for n := uint(1); n <= 24; n++ {
		s.Config.Layout = append(s.Config.Layout, wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: []string{"S", "M", "L", "XL"}[n%4], Label: "A-" + strconv.Itoa(int(n))})
		s.Doors[edge.DoorNumber(n)] = locker.Door{Number: edge.DoorNumber(n), Known: true}
	}
	held := withParcels()
	for _, n := range []edge.DoorNumber{7, 8} {
		s.Doors[n] = held.Doors[n]
	}
	s.Deliveries, s.Staff = held.Deliveries, held.Staff
	s.Staff.Seen[9] = locker.SeenDoor{OpeningID: "op_9", At: moment.Mono}
	s.Config.Texts = map[string]string{wire.TextNotice: "On 1 January this locker is closed from 8 am to 6 pm. Parcels wait until the day after."}
	return s
}

// Each screen of a cabinet is used whole in windows of many sizes, with the largest text, too, and
// in the language of the longest words.
func TestEachScreenIsReachableInWindowsOfAllSizes(t *testing.T) {
	ring.SkipUnlessCheck(t, "a browser")
	browser := browsertest.Start(t)
	if browser == nil {
		return
	}
	f := &fake{state: crowded(), online: true}
	k := newKiosk(f, io.Discard)
	k.cfg.Operator = Operator{Name: "Acme Logistics of the Harbour", Phone: "+1 416 555 0100", Email: "help@parcels.acme.example"}
	k.cfg.OnSite = func() string { return "ABC234" }
	k.cfg.Learn = func(door edge.DoorNumber, since time.Time) (edge.Learned, bool) {
		return edge.Learned{Door: door, At: since, Layout: edge.Wiring{Board: "A", Channel: 1}, Moves: []edge.LearnedMove{}, Result: edge.LearnWaiting}, true
	}
	k.cfg.KeepLearned = func(edge.Learned) error { return nil }
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, ln) }()
	defer func() { stop(); require.NoError(t, <-done) }()
	x := browser.Open("http://" + ln.Addr().String() + "/")
	answer := func(a locker.Answer) { f.mu.Lock(); defer f.mu.Unlock(); f.answer = a }
	at := func(screen string) { x.Await(fmt.Sprintf(`document.body.dataset.screen === %q`, screen)) }
	enter := func(code string) {
		for _, c := range code {
			x.Eval(fmt.Sprintf(`document.getElementById("key-%c").click()`, c), nil)
		}
		x.Eval(`document.getElementById("enter").click()`, nil)
	}
	press := func(id, screen string) {
		x.Eval(fmt.Sprintf(`document.getElementById(%q).click()`, id), nil)
		at(screen)
	}
	faults := map[string][]string{}
	look := func(name string) {
		for _, lang := range []string{"en", "de"} {
			x.Eval(fmt.Sprintf(`import("/words.js").then((w) => { w.setLanguage(%q); window.speechSynthesis?.dispatchEvent(new Event("voiceschanged")); return 0 })`, lang), nil)
			for _, size := range screenSizes {
				x.Window(size[0], size[1], "light")
				least := 48
				if slices.Contains(largeTargets, size) {
					least = 96
				}
				for _, text := range []string{"", "3"} {
					if lang == "en" && text != "" {
						continue
					}
					var found []string
					x.Eval(fmt.Sprintf(`(%s)(%d, %d, %q, %d)`, findFaults, size[0], size[1], text, least), &found)
					where := fmt.Sprintf("%s %dx%d %s%s", name, size[0], size[1], lang, text)
					if len(found) > 0 {
						faults[where] = found
					}
					x.Picture("kiosk-" + where)
				}
			}
		}
		x.Eval(`import("/words.js").then((w) => { w.setLanguage("en"); delete document.documentElement.dataset.size; return 0 })`, nil)
		x.Window(1280, 800, "light")
	}
	at("start")
	x.Eval(`(() => { speechSynthesis.getVoices = () => ["en-US", "de-DE"].map((lang) => ({ lang, name: lang, localService: true })); return 0; })()`, nil) // its button is there, too
	look("start")
	for _, id := range []string{"pickup", "send", "return", "dropoff", "help", "language"} {
		screen := id
		if id == "language" {
			screen = "languages"
		}
		press(id, screen)
		look(screen)
		press("home", "start")
	}
	press("pickup", "pickup")
	answer(locker.Answer{Outcome: wire.CodeLockedOut, Budget: locker.BudgetTyped, Until: moment.Mono + int64(90*time.Second)})
	enter("481516")
	x.Await(`document.getElementById("message").textContent !== ""`)
	look("pickup locked")
	press("home", "start")

	press("dropoff", "dropoff")
	answer(locker.Answer{Outcome: locker.ChooseSize, Choice: "ch_1", Size: "M", Free: []locker.FreeSize{{Size: "XS", Free: 1}, {Size: "S", Free: 2}, {Size: "M", Free: 1}, {Size: "L", Free: 4}, {Size: "XL", Free: 3}}})
	enter("4815162")
	at("sizes")
	look("sizes")
	press("home", "start")

	f.set(func(s *locker.State) {
		s.Openings = map[string]locker.Opening{"op_5": {ID: "op_5", Kind: wire.OpenDeposit, CommandID: wire.LocalCommand, DeliveryRef: "LD-5", Ends: locker.Instant{Boot: 1, Mono: moment.Mono + int64(time.Hour)},
			Doors: []locker.OpeningDoor{{Door: 1, Phase: locker.Opened}, {Door: 2, Phase: locker.Opened}, {Door: 3, Phase: locker.Closed}, {Door: 4, Phase: locker.OpenFailed}}}}
		for _, n := range []edge.DoorNumber{1, 2} {
			s.Doors[n] = locker.Door{Number: n, Known: true, Open: true}
		}
	})
	at("flow")
	look("flow")
	press("trouble", "trouble")
	look("trouble which")
	press("which-1", "trouble")
	x.Await(`document.getElementById("wrong-dirty") !== null`)
	look("trouble")
	press("back", "flow")
	f.set(func(s *locker.State) {
		s.Openings = map[string]locker.Opening{}
		s.Ended["op_5"] = locker.EndedOpening{ID: "op_5", Kind: wire.OpenDeposit, Settled: true, Delivery: "LD-5", Doors: []edge.DoorNumber{1}, At: locker.Instant{Boot: 1, Mono: moment.Mono}}
		s.Deliveries["LD-5"] = locker.Delivery{Ref: "LD-5", Doors: map[edge.DoorNumber][]string{1: {"PK-1"}}}
		for _, n := range []edge.DoorNumber{1, 2} {
			s.Doors[n] = locker.Door{Number: n, Known: true}
		}
	})
	at("finished")
	x.Await(`document.getElementById("receipt") !== null`)
	look("finished")
	press("finish", "start")

	press("staff", "staffcode")
	look("staffcode")
	answer(locker.Answer{Outcome: wire.CodeOK, Session: "ss_1"})
	enter("48151623")
	at("staff")
	x.Await(`document.getElementById("door-24") !== null`)
	look("staff")
	press("door-3", "staff")
	x.Await(`document.getElementById("learn") !== null`)
	look("staff chosen")
	press("openchosen", "staffopen")
	look("staffopen")
	x.Eval(`document.getElementById("language").click()`, nil)
	at("languages")
	press("language-en", "staffopen")
	press("home", "start")
	session := func() {
		answer(locker.Answer{Outcome: wire.CodeOK, Session: "ss_1"})
		press("staff", "staffcode")
		enter("48151623")
		at("staff")
		x.Await(`document.getElementById("door-24") !== null`)
	}
	session()
	press("door-3", "staff")
	x.Await(`document.getElementById("learn") !== null`)
	press("learn", "learn")
	look("learn")
	x.Eval(`document.getElementById("begin").click()`, nil)
	x.Await(`document.getElementById("byLock") !== null`)
	look("learn begun")
	press("home", "start")

	session()
	press("remove", "remove")
	look("remove")
	press("from-7", "reason")
	look("reason")
	press("why-destroyed", "confirm")
	look("confirm")
	press("home", "start")

	session()
	press("collect", "collect")
	look("collect")
	press("openall", "collectcode")
	look("collectcode")
	answer(locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_1", Doors: []edge.DoorNumber{7}, Session: "ss_1"})
	enter("48151623")
	at("collecting")
	x.Await(`document.getElementById("taken") !== null`)
	look("collecting")
	answer(locker.Answer{Outcome: locker.QueueDone})
	x.Eval(`document.getElementById("refused").click()`, nil)
	x.Await(`document.getElementById("message").textContent !== ""`)
	look("collecting refused")

	names := slices.Sorted(maps.Keys(faults))
	for i, name := range names {
		if i < 400 {
			t.Logf("%s: %q", name, faults[name])
		}
	}
	require.Empty(t, names, "screens that cannot be used whole")
}
