// Has people use the screen of a cabinet in a real browser, at a portrait and a landscape
// kiosk and once on a telephone, and prints what was found as one JSON object. Usage: node
// kiosk.mjs <address of the screen> <address of the hands> <chromium> [folder for pictures].
// KINDS names the kiosks, portrait and landscape; unset is both.
// A GET of the hands does what a person or a technician does at the cabinet and answers JSON.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, hands, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, overflow: [], console: [], foreign: [], small: [], high: [], idle: {}, taps: {}, leaks: [], screens: {} };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const sizes = { portrait: { width: 1080, height: 1920 }, landscape: { width: 1280, height: 800 } };
let current = null; // page
if (pictures) process.on("uncaughtException", async (e) => { // as a failing script left it
  console.error(e, await current?.evaluate(() => document.body.innerText));
  await current?.screenshot({ path: `${pictures}/kiosk-failed.png` });
  process.exit(1);
});
const act = async (path) => {
  const r = await fetch(hands + path);
  if (!r.ok) throw new Error(path + ": " + (await r.text()));
  return r.json();
};

async function open(size, options = {}) {
  const context = await browser.newContext({ viewport: size, ...options });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  page.on("console", (x) => { if (x.type() === "error" && !/Failed to load resource|ERR_/.test(x.text())) found.console.push(x.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base)) found.foreign.push(r.url()); });
  await page.clock.install();
  await page.goto(base);
  await page.waitForSelector("body[data-screen=start]");
  current = page;
  return { context, page };
}

// look checks a screen as it is and in high contrast, and measures what is touched.
async function look(page, name, kiosk = true) {
  for (const contrast of ["", "high"]) {
    await page.evaluate((c) => { c ? document.documentElement.dataset.contrast = c : delete document.documentElement.dataset.contrast; }, contrast);
    await audit(page, name + (contrast && " in high contrast"), found);
    if (pictures) await page.screenshot({ path: `${pictures}/kiosk-${name}-${contrast || "light"}.png` });
  }
  await page.evaluate(() => { delete document.documentElement.dataset.contrast; });
  if (!kiosk) return;
  const targets = await page.evaluate(() => [...document.querySelectorAll("button, input, a")].filter((e) => e.checkVisibility()).map((e) => {
    const b = e.getBoundingClientRect();
    return { id: e.id || e.textContent, w: b.width, h: b.height, top: b.top, bottom: b.bottom, right: b.right };
  }));
  const { width, height } = page.viewportSize();
  for (const x of targets) {
    const what = `${name}: ${x.id} ${Math.round(x.w)}x${Math.round(x.h)} at ${Math.round(x.top)}`;
    if (x.w < 96 || x.h < 96) found.small.push(what);
    if (x.bottom > height + 1 || x.right > width + 1 || x.top < (height > 1500 ? 1100 : 0)) found.high.push(what);
  }
}

const screen = (page) => page.getAttribute("body", "data-screen");
const at = (page, name) => page.waitForSelector(`body[data-screen=${name}]`);
const home = async (page) => { if ((await screen(page)) !== "start") await page.click("#home"); await at(page, "start"); };
const keys = async (page, code) => { for (const c of code) await page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).click(); };
const typed = async (page, from, code) => { await home(page); await page.click("#" + from); await keys(page, code); await page.click("#enter"); };
const message = (page, words) => page.waitForFunction((w) => document.querySelector("#message").textContent.includes(w), words);

// idles leaves a screen alone and says how the start came back.
async function idles(page, name) {
  await page.clock.fastForward(31000);
  const asked = await page.waitForFunction(() => document.querySelector("#still").open).then(() => true, () => false);
  if (asked && !found.axe["still " + page.viewportSize().width]) await look(page, "still " + page.viewportSize().width, false);
  await page.click("#stay");
  const stayed = (await screen(page)) !== "start";
  await page.clock.fastForward(50000);
  await at(page, "start");
  found.idle[name] = asked && stayed;
}

for (const [kind, size] of Object.entries(sizes).filter(([k]) => (process.env.KINDS ?? k).includes(k))) {
  const { context, page } = await open(size);
  const name = (s) => `${kind} ${s}`.replaceAll(" ", "-");
  await look(page, name("start"));
  for (const s of ["pickup", "dropoff", "help", "staff", "language"]) {
    await page.click("#" + s);
    await page.waitForFunction(() => document.body.dataset.screen !== "start");
    await look(page, name(s));
    await idles(page, name(s));
  }
  // the largest text still fits
  await page.click("#size");
  await page.click("#size");
  await look(page, name("start large"));
  await page.click("#pickup");
  await look(page, name("pickup large"));
  await page.clock.fastForward(50000);
  await page.clock.fastForward(50000);
  await at(page, "start");
  found.screens[name("choices are reset")] = await page.evaluate(() => !document.documentElement.dataset.size);

  // A recipient: two taps and the code. The parcel is forgotten at first.
  const [forgotten, offline, jammed] = [await act("/deposit"), await act("/deposit"), await act("/deposit")];
  let p = forgotten;
  await at(page, "finished"); // what is opened from afar shows here too
  await home(page);
  await page.click("#pickup");
  await keys(page, p.code);
  await page.click("#show");
  found.screens[name("shown")] = (await page.inputValue("#code")) === p.code && (await page.getAttribute("#code", "type")) === "text";
  await page.click("#enter");
  found.taps[name("pickup")] = 2;
  await at(page, "flow");
  await page.waitForFunction(() => document.querySelector(".steps b.open"));
  found.screens[name("door")] = await page.textContent("#headline");
  await look(page, name("flow"));
  await page.clock.fastForward(50000);
  await page.clock.fastForward(50000);
  found.screens[name("stays while open")] = await screen(page);
  await act("/close?door=" + p.door);
  await at(page, "finished");
  await page.waitForSelector("[id^=reopen-]");
  await look(page, name("finished"));
  await page.click("[id^=reopen-]");
  await at(page, "flow");
  await page.waitForFunction(() => document.querySelector(".steps b.open"));
  await page.click("#language"); // the door is closed before a language is chosen
  await act("/take?door=" + p.door);
  await act("/close?door=" + p.door);
  await page.waitForFunction(async () => (await (await fetch("/api/state")).json()).openings.length === 0);
  await page.click(".languages [lang=en]");
  await at(page, "finished");
  found.screens[name("thanks")] = await page.textContent("#headline");
  await idles(page, name("finished"));

  // The link is cut: a code works as before, typed by a scanner on the help screen.
  p = offline;
  await act("/cut");
  await page.waitForSelector(".standing.warn");
  await look(page, name("offline"));
  await page.click("#help");
  await page.keyboard.type(p.qr);
  await page.keyboard.press("Enter");
  await at(page, "flow");
  await page.waitForFunction(() => document.querySelector(".steps b.open"));
  // Another person comes to the keypad while the door stands open, and mistypes.
  await typed(page, "pickup", "999999");
  await message(page, "not known");
  await look(page, name("wrong code"));
  await act("/take?door=" + p.door);
  await act("/close?door=" + p.door);
  for (let i = 0; i < 4; i++) {
    await page.waitForSelector("#enter:not([disabled])");
    await typed(page, "pickup", "99999" + i);
    await message(page, i < 3 ? "Tries left: " + (3 - i) : "Tries left: 0");
  }
  await typed(page, "pickup", "999999");
  await message(page, "Too many wrong codes");
  await look(page, name("locked"));

  // Staff lift the lock, see the doors' states and open one.
  const staff = await act("/staff");
  await home(page);
  await page.click("#staff");
  await keys(page, staff.code);
  await page.click("#enter");
  await at(page, "staff");
  await page.waitForSelector("#door-1");
  await look(page, name("staffview"));
  await page.click("#door-4");
  await page.click("#language"); // the session goes on in another language
  await page.click(".languages [lang=fr]");
  await at(page, "staff");
  await page.click("#language");
  await page.click(".languages [lang=en]");
  await page.waitForSelector("#door-4[aria-pressed=true]");
  await page.click("#openchosen");
  await at(page, "staffopen");
  await look(page, name("staffopen"));
  await keys(page, staff.code);
  await page.click("#enter");
  await at(page, "staff");
  await page.waitForFunction(() => document.querySelector("#door-4 small").textContent === "open");
  await act("/close?door=4");
  await page.waitForFunction(() => /locked/.test(document.querySelector("#door-4 small").textContent));
  await page.clock.fastForward(106000);
  await page.waitForFunction(() => document.querySelector("#still").open);
  await page.clock.fastForward(16000);
  await at(page, "start");
  found.screens[name("staff left")] = await page.evaluate(() => document.querySelector("#door-1") === null);
  await act("/mend");
  await page.waitForSelector(".standing.good");

  // A courier drops off.
  p = await act("/create");
  await typed(page, "dropoff", p.code);
  await at(page, "flow");
  await page.waitForFunction(() => document.querySelector(".steps b.open"));
  p = await act("/opened");
  await act("/put?door=" + p.door);
  await act("/close?door=" + p.door);
  await at(page, "finished");
  await look(page, name("dropped off"));
  await page.click("#next");
  await at(page, "dropoff");
  await home(page);
  await act("/collected"); // the screen shows what was begun elsewhere
  await at(page, "finished");
  await page.click("#finish");
  await at(page, "start");

  // A parcel that does not fit, while the link is cut.
  p = await act("/create");
  await typed(page, "dropoff", p.code);
  await at(page, "flow");
  await page.waitForSelector("[id^=larger-]");
  await look(page, name("fits or not"));
  await act("/cut");
  await page.click("[id^=larger-]");
  await page.waitForFunction(() => document.querySelectorAll(".steps b.open").length === 2);
  await look(page, name("larger"));
  found.screens[name("larger lead")] = await page.textContent("#lead");
  p = await act("/larger");
  await act("/close?door=" + p.left);
  await page.clock.fastForward(61000);
  found.screens[name("larger stays while open")] = await screen(page);
  await act("/put?door=" + p.door);
  await act("/close?door=" + p.door);
  await at(page, "finished");
  found.screens[name("larger thanks")] = await page.textContent("#lead");
  await page.click("#finish");
  await at(page, "start");
  await act("/mend");
  await act("/delivered");
  await act("/collected");
  await at(page, "finished");
  await page.click("#finish");
  await at(page, "start");
  await page.waitForSelector(".standing.good");

  // A door that does not open.
  p = jammed;
  await act("/jam?door=" + p.door);
  await typed(page, "pickup", p.code);
  await at(page, "finished");
  found.screens[name("jammed")] = await page.textContent("#headline");
  await look(page, name("jammed"));
  await act("/free?door=" + p.door);
  await home(page); // a start that is left alone asks nothing
  await new Promise((done) => setTimeout(done, 31000)); // so long the coil rests
  await at(page, "start");
  await page.click("#help");
  await act("/scan?text=" + encodeURIComponent(p.qr)); // by a scanner of the cabinet's own
  await at(page, "flow");
  await page.waitForFunction(() => document.querySelector(".steps b.open"));
  await act("/take?door=" + p.door);
  await act("/close?door=" + p.door);
  await at(page, "finished");
  await page.click("#finish");
  await at(page, "start");
  if (await page.evaluate(() => /\d{6}/.test(document.body.innerText.replace(/\+?[\d ]{9,}/g, "")))) found.leaks.push(name("start"));
  await context.close();
}

{ // a telephone, in the longest language: nothing breaks
  const { context, page } = await open({ width: 390, height: 844 }, { locale: "de-DE" });
  for (const s of ["start", "pickup", "help", "language"]) {
    await home(page);
    if (s !== "start") await page.click("#" + s);
    await look(page, "phone-" + s, false);
  }
  await context.close();
}

await browser.close();
console.log(JSON.stringify(found));
