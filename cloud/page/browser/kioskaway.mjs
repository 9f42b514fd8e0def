// Has people walk away in the middle of each screen of a cabinet, and two people use one screen,
// at a portrait and a landscape kiosk.
import { Cabinet, sizes } from "./cabinet.mjs";

const cabinet = await Cabinet.open("kioskaway", process.argv.slice(2)), { found } = cabinet, act = (path) => cabinet.act(path);
found.idle = {};

// left leaves a screen alone: it asks, and the start comes back. What was chosen and typed is gone.
async function left(s, what, seconds = 30) {
  const name = s.name(what);
  await s.wait(seconds + 1);
  const asked = await s.page.waitForFunction(() => document.querySelector("#still").open).then(() => true, () => false);
  await s.wait(16);
  await s.at("start");
  found.idle[name] = asked && await s.page.evaluate(() => !document.querySelector("#still").open && document.querySelector("#code") === null);
}
const waits = (s, selector) => s.page.waitForSelector(selector);
const typed = async (s, code) => { await s.page.keyboard.type(code); await s.page.keyboard.press("Enter"); };
const steps = (s) => s.page.locator(".steps li").count();

for (const kind of Object.keys(sizes)) {
  const overdue = await act("/overdue"), parcel = await act("/deposit"), staff = await act("/staff"), s = await cabinet.visit(kind);

  // In the middle of a code: the next person finds nothing of it.
  for (const id of ["pickup", "send", "return", "dropoff", "staff"]) {
    await s.press("#" + id);
    await s.keys("123");
    if (id === "pickup") await s.press("#show");
    await left(s, "code of " + id);
    await s.press("#" + id);
    s.note(id + " is empty", (await s.page.inputValue("#code")) === "" && (await s.page.getAttribute("#code", "type")) === "password");
    await s.home();
  }
  for (const id of ["help", "language"]) {
    await s.press("#" + id);
    await left(s, id);
  }

  // Staff walk away: their session ends.
  const signIn = async (...presses) => {
    await s.press("#staff");
    await typed(s, staff.code);
    await waits(s, "#door-1");
    for (const p of presses) await s.press(p + ":not([disabled])");
  };
  for (const [screen, ...presses] of [["staff"], ["staffopen", "#door-1", "#openchosen"], ["learn", "#door-1", "#learn"], ["collect", "#collect"], ["collectcode", "#collect", "#openall"]]) {
    await signIn(...presses);
    await s.at(screen);
    await left(s, screen, 105);
    await s.press("#staff");
    s.note(screen + " asks for the code again", await s.now());
    await s.home();
  }
  const locked = (door) => s.page.waitForFunction((d) => /locked/.test(document.querySelector("#door-" + d + " small")?.textContent), door);
  const collecting = async () => {
    await signIn();
    await locked(overdue.door);
    for (const p of ["#collect:not([disabled])", "#openall:not([disabled])"]) await s.press(p);
    await typed(s, staff.code);
    await s.at("collecting");
    await s.lead("close it");
  };
  await collecting();
  await s.page.waitForTimeout(1500); // a door that still swings is a person's
  await left(s, "collecting", 105);
  await act("/close?door=" + overdue.door);
  await s.page.waitForFunction(async () => (await (await fetch("/api/state")).json()).openings.length === 0);
  s.note("a door of staff is not shown to the next", await s.now());
  await collecting();
  await act("/close?door=" + overdue.door);
  await s.press("#refused:not([disabled])");
  await s.at("collected");
  await left(s, "collected", 105);
  for (const [screen, ...presses] of [["remove"], ["reason", "#from-" + parcel.door], ["confirm", "#from-" + parcel.door, "#why-destroyed"]]) {
    await signIn();
    await locked(parcel.door);
    for (const p of ["#door-" + parcel.door, "#openchosen"]) await s.press(p);
    await typed(s, staff.code);
    await s.at("staff");
    await s.page.waitForFunction((d) => document.querySelector("#door-" + d + " small")?.textContent === "open", parcel.door);
    if (screen === "remove") await act("/take?door=" + parcel.door);
    await act("/close?door=" + parcel.door);
    for (const p of ["#remove", ...presses]) await s.press(p + ":not([disabled])");
    await s.at(screen);
    await left(s, screen, 105);
    await s.page.waitForTimeout(4000); // so long the coil rests
  }
  s.note("nothing was removed", (await act("/holds?door=" + parcel.door)).delivery ?? "");
  await act("/clear?door=" + parcel.door);

  // A courier walks away while they say what is wrong; a passer-by closes the door.
  let p = await act("/bring?parcel=1");
  await s.code("dropoff", p.code);
  await waits(s, "[id^=trouble-]");
  await s.press("[id^=trouble-]");
  await s.at("trouble");
  await s.wait(46);
  s.note("trouble stays while a courier is at the door", await s.now());
  const [brought] = (await act("/doors")).open;
  await left(s, "trouble", 14); // 60 s in all
  s.note("the open door is shown to the next", await s.text(".running"));
  await s.press("#pickup");
  await s.page.waitForTimeout(600);
  s.note("the next uses the screen", await s.now());
  await s.home();
  s.note("and its start", await s.now());
  await act("/put?door=" + brought);
  await act("/close?door=" + brought); // the courier is back
  await s.at("finished");
  await left(s, "finished of a courier");
  await act("/arrived");
  await act("/over");
  await s.at("finished");
  await left(s, "finished of a recipient");

  // A courier is asked for a size; courier.mjs has one choose.
  await s.page.route("**/api/code", (r) => r.fulfill({ json: { outcome: "choose_size", choice: "1", size: "M", sizes: [{ size: "M", free: 2 }, { size: "L", free: 1 }] } }));
  await s.code("dropoff", "1234567");
  await s.at("sizes");
  await left(s, "sizes");
  await s.page.unroute("**/api/code");

  // An opening that has ended before the screen sees it, as of a lock that must rest.
  await s.page.route("**/api/code", (r) => r.fulfill({ json: { outcome: "ok", opening_id: "ended", doors: [{ door: 1, label: "1" }] } }));
  await s.code("pickup", "123456");
  await s.at("flow");
  await s.at("finished");
  s.note("an opening that ended at once", await s.text("#headline"));
  await s.page.unroute("**/api/code");
  await s.finish();

  // Two people. One leaves a door open, the other comes with a code of their own.
  const one = await act("/deposit"), other = await act("/deposit");
  await s.at("finished");
  await s.home();
  await s.code("pickup", one.code);
  await s.at("flow");
  await s.opened();
  await s.code("pickup", other.code);
  await s.at("flow");
  await s.opened();
  s.note("the other sees their door alone", `${await steps(s)} ${await s.text(".steps b")}` === `1 ${other.door}`);
  await act("/take?door=" + one.door);
  await act("/close?door=" + one.door);
  await s.page.waitForFunction(async () => (await (await fetch("/api/state")).json()).openings.length === 1);
  await s.page.waitForTimeout(600);
  s.note("the end of the first changes nothing", await s.now());
  await act("/take?door=" + other.door);
  await act("/close?door=" + other.door);
  await s.at("finished");
  s.note("the other is thanked", await s.text("#lead"));
  await s.finish();

  // A recipient stands before a door that is open when its session is over.
  await s.page.addInitScript(() => {
    window.EventSource = class extends EventSource { constructor(...x) { super(...x); window.stream = this; } };
  });
  await s.page.reload();
  await s.at("start");
  const slow = await act("/deposit");
  await s.home();
  await s.code("pickup", slow.code);
  await s.at("flow");
  await s.opened();
  const over = (doors) => s.page.evaluate((left_open) => fetch("/api/state").then((r) => r.json()).then((state) => window.stream.dispatchEvent(new MessageEvent("state", { data: JSON.stringify({ ...state, openings: [], left_open }) }))), doors);
  await over([{ door: slow.door, label: String(slow.door) }]);
  await s.at("finished");
  s.note("the door of an opening that is over stands open", await s.text("#headline") + ": " + await s.text("#lead"));
  await s.look("over and open");
  await act("/take?door=" + slow.door);
  await act("/close?door=" + slow.door);
  await over([]);
  await s.lead("is closed");
  await s.finish();

  // One types while a door is opened from afar: what is typed stays, and so does the screen.
  await s.press("#pickup");
  await s.keys("123");
  const [first, second] = [await act("/deposit"), await act("/deposit")];
  s.note("typed meanwhile", `${await s.now()} ${await s.page.inputValue("#code")}`);
  await s.home();

  // One has a door open, and another holds their code to the scanner: both see their doors.
  await s.code("pickup", first.code);
  await s.at("flow");
  await s.opened();
  await act("/scan?text=" + encodeURIComponent(second.qr));
  await s.opened(2);
  await s.look("two people");
  s.note("both doors", await steps(s));
  for (const { door } of [first, second]) { await act("/take?door=" + door); await act("/close?door=" + door); }
  await s.at("finished");
  await left(s, "finished of two");
  await act("/clear?door=" + overdue.door);
  await s.close();
}
await cabinet.end();
