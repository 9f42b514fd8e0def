// Has people use the screen of a cabinet who use it otherwise than most, at a portrait and a
// landscape kiosk: by keys alone, with spoken words, without motion, with the largest text in
// high contrast. EMPTY is the address of a screen of a cabinet that has no compartments yet.
import { Cabinet, sizes } from "./cabinet.mjs";

const cabinet = await Cabinet.open("kioskaccess", process.argv.slice(2)), { found } = cabinet, act = (path) => cabinet.act(path);
Object.assign(found, { focus: [], walked: {} });

// focused is what has the focus: its name, and what is wrong with how that is seen. The mark of
// focus is a line around it of 3 px at least, which no edge cuts off and whose colour has a
// contrast of 3:1 with what is around it.
const focused = (s) => s.page.evaluate(() => {
  const e = document.activeElement, wrong = [];
  if (!e || e === document.body || e.id === "headline") return { id: e?.id ?? "", wrong };
  const css = getComputedStyle(e), wide = parseFloat(css.outlineWidth), far = parseFloat(css.outlineOffset) + 2, b = e.getBoundingClientRect();
  if (css.outlineStyle === "none" || wide < 3) wrong.push("has no mark of focus");
  let [left, top, right, bottom] = [0, 0, innerWidth, innerHeight], ground = null;
  for (let p = e.parentElement; p; p = p.parentElement) {
    const c = getComputedStyle(p), r = p.getBoundingClientRect();
    if (c.overflow !== "visible") [left, top, right, bottom] = [Math.max(left, r.left), Math.max(top, r.top), Math.min(right, r.right), Math.min(bottom, r.bottom)];
    if (!ground && !/^rgba\(.*, 0\)$|transparent/.test(c.backgroundColor)) ground = c.backgroundColor;
  }
  if (b.left - far < left || b.top - far < top || b.right + far > right || b.bottom + far > bottom) wrong.push("has a mark of focus that is cut off");
  const light = (color) => { const [r, g, l] = color.match(/[\d.]+/g).map((v) => (v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4)); return .2126 * r + .7152 * g + .0722 * l; };
  const [x, y] = [light(css.outlineColor), light(ground ?? "rgb(255, 255, 255)")].sort((p, q) => q - p);
  if ((x + .05) / (y + .05) < 3) wrong.push(`has a mark of focus with a contrast of ${((x + .05) / (y + .05)).toFixed(1)}:1`);
  return { id: e.id || e.textContent, wrong };
});

// walk goes through a screen by the tabulator: all that can be touched is reached, in the order
// in which it is read, and nothing else.
async function walk(s, what) {
  const name = s.name(what), want = await s.page.evaluate(() => [...document.querySelectorAll("button, input, a[href]")].filter((e) => e.checkVisibility() && !e.disabled).map((e) => e.id || e.textContent));
  await s.page.evaluate(() => document.querySelector("#headline").focus());
  const got = [];
  for (let i = 0; i < want.length; i++) {
    await s.page.keyboard.press("Tab");
    const f = await focused(s);
    got.push(f.id);
    found.focus.push(...f.wrong.map((w) => `${name}: ${f.id} ${w}`));
  }
  if (got.join() !== want.join()) found.focus.push(`${name}: the order of focus is ${got.join(" ")} instead of ${want.join(" ")}`);
  found.walked[name] = want.length;
}

// go moves the focus to something by the tabulator, and presses a key there.
async function go(s, id, key = "Enter") {
  for (let i = 0; i < 60; i++) {
    if ((await s.page.evaluate(() => document.activeElement?.id)) === id) return s.page.keyboard.press(key);
    await s.page.keyboard.press("Tab");
  }
  throw new Error(`${s.kind}: the focus does not reach ${id} on the screen ${await s.now()}`);
}
const types = async (s, code) => { await s.page.keyboard.type(code); await s.page.keyboard.press("Enter"); };
const focusIs = (s, id) => s.page.waitForFunction((id) => document.activeElement?.id === id, id);
const escape = async (s) => { await s.page.keyboard.press("Escape"); await s.at("start"); };
const open = async (s) => { await s.at("flow"); await s.opened(); };
const shut = async (s, door, what) => { await act(`/${what}?door=${door}`); await act("/close?door=" + door); await s.at("finished"); };

for (const kind of Object.keys(sizes)) {
  { // By keys alone: each screen, and each way through them.
    const waits = await act("/deposit"), s = await cabinet.visit(kind, { hasTouch: false });
    await walk(s, "start");
    await go(s, "contrast", "Space");
    await walk(s, "start in high contrast");
    await go(s, "contrast", "Space");
    for (const [id, screen] of [["send", "send"], ["return", "return"], ["dropoff", "dropoff"], ["help", "help"], ["language", "languages"], ["staff", "staffcode"]]) {
      await go(s, id, screen === "help" ? "Space" : "Enter");
      await s.at(screen);
      await walk(s, screen);
      await escape(s);
    }
    await go(s, "language");
    await go(s, "language-fr");
    await s.at("start");
    s.note("language by keys", await s.text("#lead"));
    await go(s, "language");
    await go(s, "language-en");
    // A recipient mistypes, is asked whether they are there, types the right code, and finishes.
    await go(s, "pickup");
    await s.at("pickup");
    await focusIs(s, "code");
    await walk(s, "pickup");
    await go(s, "key-1");
    await go(s, "key-clear");
    await types(s, "999999");
    await s.message("Tries left");
    await focusIs(s, "code");
    await s.wait(31);
    await s.page.waitForFunction(() => document.querySelector("#still").open);
    await focusIs(s, "stay");
    found.focus.push(...(await focused(s)).wrong.map((w) => `${s.name("still")}: ${w}`));
    await s.page.keyboard.press("Escape");
    await s.page.waitForFunction(() => !document.querySelector("#still").open);
    s.note("escape of the question stays", await s.now());
    await s.wait(31);
    await s.page.waitForFunction(() => document.querySelector("#still").open);
    await s.page.keyboard.press("Enter");
    await s.page.waitForFunction(() => !document.querySelector("#still").open);
    s.note("enter of the question stays", await s.now());
    await focusIs(s, "code");
    await types(s, waits.code);
    await open(s);
    await walk(s, "flow");
    await shut(s, waits.door, "take");
    await walk(s, "finished");
    await go(s, "finish");
    await s.at("start");
    // A courier brings a parcel that does not fit, and the next one.
    let p = await act("/bring?parcel=1");
    await go(s, "dropoff");
    await types(s, p.code);
    await open(s);
    let doors = await act("/doors");
    await s.page.waitForSelector("[id^=trouble-]");
    await walk(s, "flow of a courier");
    await go(s, "trouble-" + doors.open[0]);
    await s.at("trouble");
    await walk(s, "trouble");
    await go(s, "wrong-dirty");
    await s.at("flow");
    await s.opened(2);
    doors = await act("/doors");
    await act("/close?door=" + doors.left[0]);
    await shut(s, doors.open[0], "put");
    await go(s, "next");
    await s.at("dropoff");
    await escape(s);
    await act("/arrived");
    await act("/over");
    await s.at("finished");
    await go(s, "finish");
    await act("/clean");
    for (const purpose of ["send", "return"]) {
      p = await act("/" + purpose);
      await s.at("start");
      await go(s, purpose);
      await types(s, p.code);
      await open(s);
      await shut(s, (await act("/opened")).door, "put");
      await go(s, "finish");
      await act("/delivered");
    }
    await act("/listed");
    // Staff collect the two, and look at a door.
    const staff = await act("/staff");
    await go(s, "staff");
    await types(s, staff.code);
    await s.at("staff");
    await s.page.waitForSelector("#collect:not([disabled])");
    await walk(s, "staff");
    await go(s, "door-1", "Space");
    await s.page.waitForSelector("#door-1[aria-pressed=true]");
    await focusIs(s, "door-1");
    await s.page.waitForTimeout(1200); // the staff's view comes twice a second
    await focusIs(s, "door-1");
    await go(s, "learn");
    await s.at("learn");
    await walk(s, "learn");
    await go(s, "learned-done");
    await s.at("staff");
    await go(s, "openchosen");
    await s.at("staffopen");
    await walk(s, "staffopen");
    await escape(s);
    await go(s, "staff");
    await types(s, staff.code);
    await s.page.waitForSelector("#collect:not([disabled])");
    await go(s, "collect");
    await s.at("collect");
    await walk(s, "collect");
    await go(s, "openall");
    await types(s, staff.code);
    for (let i = 0; i < 2; i++) {
      await s.at("collecting");
      await s.lead("close it");
      const { door } = await act("/opened");
      await act("/take?door=" + door);
      await act("/close?door=" + door);
      await s.page.waitForSelector("#taken:not([disabled])");
      if (i === 0) await walk(s, "collecting");
      const headline = await s.text("#headline");
      await go(s, "taken");
      await s.page.waitForFunction((d) => document.body.dataset.screen === "collected" || document.querySelector("#headline").textContent !== d, headline);
    }
    await s.at("collected");
    await walk(s, "collected");
    await go(s, "leave");
    await s.at("start");
    found.taps[s.name("by keys")] = await s.page.evaluate(() => window.touches);
    await s.close();
  }

  // Spoken words: in the language that is chosen, and none in a language without a voice.
  const speech = (context) => context.addInitScript(() => {
    window.spoken = [];
    const voices = [{ lang: "en-CA" }, { lang: "fr_CA" }];
    window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
    const engine = Object.assign(new EventTarget(), { getVoices: () => voices, cancel() {}, speak(u) { window.spoken.push(`${u.lang}: ${u.text}`); } });
    Object.defineProperty(window, "speechSynthesis", { value: engine });
  });
  const spoken = (s) => s.page.evaluate(() => window.spoken.splice(0));
  const says = (s, part) => s.page.waitForFunction((p) => window.spoken.some((x) => x.includes(p)), part);
  {
    const p = await act("/deposit"), s = await cabinet.visit(kind, {}, speech);
    await s.press("#help");
    await s.home();
    s.note("silent at first", (await spoken(s)).length);
    await s.press("#voice");
    await says(s, "en-CA: What would you like to do?");
    await s.press("#language");
    await s.press("#language-fr");
    await says(s, "fr_CA: Que souhaitez-vous faire");
    await s.press("#pickup");
    await says(s, "fr_CA: Retirer. Saisissez");
    await s.enter("999998");
    await says(s, "fr_CA: Code inconnu");
    await s.wait(31);
    await says(s, "fr_CA: Êtes-vous");
    await s.press("#stay");
    await s.enter(p.code);
    await says(s, `fr_CA: Porte ${p.door}`);
    await says(s, "fr_CA: Prenez votre colis et fermez la porte " + p.door);
    await shut(s, p.door, "take");
    await says(s, "fr_CA: Merci");
    const all = await spoken(s);
    s.note("other languages", all.filter((x) => !x.startsWith("fr_CA: ") && !x.startsWith("en-CA: What") && !x.startsWith("en-CA: Language")).length);
    s.note("code is said", all.filter((x) => x.includes(p.code) || x.includes("999998")).length);
    await s.press("#language");
    await spoken(s);
    await s.press("#language-de"); // there is no voice for it
    await s.at("finished");
    await s.home(); // the same person stays
    await s.press("#pickup");
    await s.enter("999997");
    await s.page.waitForSelector("#message:not(:empty)");
    s.note("without a voice", (await spoken(s)).length);
    await s.wait(31);
    await s.wait(16);
    await s.at("start");
    await spoken(s);
    await s.press("#pickup");
    s.note("silent for the next", (await spoken(s)).length);
    await s.close();
  }
  { // No voice at all, at a browser in German: nothing is offered.
    const s = await cabinet.visit(kind, { locale: "de-DE" }, speech);
    s.note("voice is offered", await s.page.locator("#voice").count());
    await s.close();
  }

  // Motion: a door that opens glows, unless motion is not wanted; then nothing moves.
  for (const reducedMotion of ["no-preference", "reduce"]) {
    const s = await cabinet.visit(kind, { reducedMotion });
    s.note("moves " + reducedMotion, await s.page.evaluate(() => {
      document.querySelector(".leaf").classList.add("lit", "opening");
      const moving = [...document.querySelectorAll("*")].filter((e) => { const c = getComputedStyle(e); return c.animationName !== "none" || parseFloat(c.transitionDuration) > 0; });
      return document.getAnimations().length + moving.length;
    }));
    await s.close();
  }

  // The largest text in high contrast, through a whole pickup, and gone for the next person.
  {
    const p = await act("/deposit"), s = await cabinet.visit(kind);
    const chosen = () => s.page.evaluate(() => `${document.documentElement.dataset.size} ${document.documentElement.dataset.contrast}`);
    s.languages = ["de", "fr", "es"];
    for (const b of ["size", "size", "contrast"]) await s.press("#" + b);
    await s.look("large start");
    s.languages = ["de"];
    await s.count("pickup after a wrong code", 4, async () => {
      await s.press("#pickup");
      await s.look("large pickup");
      await s.enter("999996");
      await s.message("Tries left");
      await s.look("large wrong code");
      await s.page.waitForSelector("#enter:not([disabled])");
      await s.enter(p.code);
      await open(s);
      await s.look("large flow");
      await shut(s, p.door, "take");
      await s.look("large finished");
      s.note("chosen to the end", await chosen());
      await s.finish();
    });
    s.note("chosen for the next", await chosen());
    for (const [id, screen] of [["help", "help"], ["language", "languages"], ["staff", "staffcode"]]) {
      for (const b of ["size", "size", "contrast"]) await s.press("#" + b);
      await s.press("#" + id);
      await s.at(screen);
      await s.look("large " + screen);
      await s.wait(31);
      await s.wait(16);
      await s.at("start");
    }
    await s.close();
  }
}

// What the operator has to say, two doors that stand open and the code for people before the
// cabinet are all on the start, also in the largest text.
const more = { notice: "From Monday to Wednesday the doors on the left stay shut: they are being repaired. Call us for help.", on_site: "K7QM42", left_open: [{ door: 2, label: "2" }, { door: 3, label: "3" }] };
for (const kind of Object.keys(sizes)) {
  const s = await cabinet.visit(kind, {}, (context) => context.addInitScript((more) => {
    window.EventSource = class extends EventSource {
      addEventListener(type, f) { super.addEventListener(type, type === "state" ? (e) => f({ data: JSON.stringify({ ...JSON.parse(e.data), ...more }) }) : f); }
    };
  }, more));
  await s.page.waitForSelector("#onsite");
  s.languages = ["de", "fr", "es"];
  for (const what of ["full start", "full start in large", "full start in largest"]) {
    await s.look(what);
    await s.press("#size");
  }
  await s.close();
}

for (const kind of Object.keys(sizes)) { // a cabinet that has no compartments yet
  const base = cabinet.base;
  cabinet.base = process.env.EMPTY;
  const s = await cabinet.visit(kind);
  await s.look("empty");
  s.note("empty", await s.page.evaluate(() => document.querySelector(".standing").textContent));
  s.note("drawings", await s.page.locator(".cabinet").count());
  await s.press("#pickup");
  await s.look("empty pickup");
  await s.close();
  cabinet.base = base;
}
await cabinet.end();
