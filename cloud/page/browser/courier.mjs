// Has couriers use the screen of a cabinet in a real browser, at a portrait and a landscape
// kiosk, and prints what was found as one JSON object. Usage: node courier.mjs <address of the
// screen> <address of the hands> <chromium> [folder for pictures].
// A GET of the hands does what a person or a technician does at the cabinet and answers JSON.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, hands, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, overflow: [], console: [], foreign: [], small: [], high: [], repeated: [], screens: {} };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const sizes = { portrait: { width: 1080, height: 1920 }, landscape: { width: 1280, height: 800 } };
let page = null;
process.on("uncaughtException", async (e) => { // as a failing script left it
  console.error(e, await page?.evaluate(() => document.body.innerText));
  if (pictures) await page?.screenshot({ path: `${pictures}/courier-failed.png` });
  process.exit(1);
});
const act = async (path) => {
  const r = await fetch(hands + path);
  if (!r.ok) throw new Error(path + ": " + (await r.text()));
  return r.json();
};

// look checks a screen as it is and in high contrast, and measures what is touched.
async function look(name) {
  for (const contrast of ["", "high"]) {
    await page.evaluate((c) => { c ? document.documentElement.dataset.contrast = c : delete document.documentElement.dataset.contrast; }, contrast);
    await audit(page, name + (contrast && " in high contrast"), found);
    if (pictures) await page.screenshot({ path: `${pictures}/courier-${name}-${contrast || "light"}.png` });
  }
  await page.evaluate(() => { delete document.documentElement.dataset.contrast; });
  const { targets, ids } = await page.evaluate(() => ({
    targets: [...document.querySelectorAll("button, input, a")].filter((e) => e.checkVisibility()).map((e) => {
      const b = e.getBoundingClientRect();
      return { id: e.id || e.textContent, w: b.width, h: b.height, top: b.top, bottom: b.bottom, right: b.right };
    }),
    ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
  }));
  const { width, height } = page.viewportSize();
  for (const x of targets) {
    const what = `${name}: ${x.id} ${Math.round(x.w)}x${Math.round(x.h)} at ${Math.round(x.top)}`;
    if (x.w < 96 || x.h < 96) found.small.push(what);
    if (x.bottom > height + 1 || x.right > width + 1 || x.top < (height > 1500 ? 1100 : 0)) found.high.push(what);
  }
  found.repeated.push(...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `${name}: ${id}`));
}

const screen = () => page.getAttribute("body", "data-screen");
const at = (name) => page.waitForSelector(`body[data-screen=${name}]`);
const home = async () => { if ((await screen()) !== "start") await page.click("#home"); await at("start"); };
const typed = async (code) => {
  await home();
  await page.click("#dropoff");
  for (const c of code) await page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).click();
  await page.click("#enter");
};
const open = (n) => page.waitForFunction((n) => document.querySelectorAll(".steps b.open").length === n, n);
const message = (words) => page.waitForFunction((w) => document.querySelector("#message").textContent.includes(w), words);
const close = async (doors, put) => { for (const d of doors) { if (put) await act("/put?door=" + d); await act("/close?door=" + d); } };
const finish = async () => { await page.click("#finish"); await at("start"); };
const over = async () => {
  await act("/over");
  if (await page.waitForSelector("body[data-screen=finished]", { timeout: 8000 }).catch(() => null)) await finish();
};

for (const [kind, size] of Object.entries(sizes)) {
  const context = await browser.newContext({ viewport: size });
  context.setDefaultTimeout(20000);
  page = await context.newPage();
  page.on("console", (x) => { if (x.type() === "error" && !/Failed to load resource|ERR_/.test(x.text())) found.console.push(x.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base)) found.foreign.push(r.url()); });
  await page.clock.install();
  await page.goto(base);
  await at("start");
  const name = (s) => `${kind} ${s}`.replaceAll(" ", "-");

  // The compartment is dirty, while the link is cut.
  let p = await act("/bring?parcel=1");
  await typed(p.code);
  await at("flow");
  await page.waitForSelector("[id^=trouble-]");
  await look(name("put in"));
  await act("/cut");
  await page.click("[id^=trouble-]");
  await at("trouble");
  await look(name("what is wrong"));
  await page.clock.fastForward(61000);
  found.screens[name("stays")] = await screen();
  await page.click("#wrong-dirty");
  await at("flow");
  await open(2);
  await look(name("another"));
  let doors = await act("/doors");
  await close(doors.left);
  await close(doors.open, true);
  await at("finished");
  await page.waitForSelector("#receipt svg");
  await look(name("receipt"));
  await finish();
  await act("/mend");
  await act("/arrived");
  found.screens[name("dirty")] = (await act("/blocked"))[doors.left[0]];
  await over();
  await act("/clean");

  // One of two compartments is broken.
  p = await act("/bring?parcel=1&parcel=2");
  await typed(p.code);
  await at("flow");
  await page.waitForSelector("#trouble");
  await look(name("two parcels"));
  await page.click("#trouble");
  await at("trouble");
  await look(name("which"));
  await page.locator("[id^=which-]").first().click();
  await page.waitForSelector("#wrong-broken");
  await look(name("what is wrong with one"));
  await page.click("#wrong-broken");
  await at("flow");
  await open(3);
  await look(name("two parcels and another"));
  doors = await act("/doors");
  await close(doors.left);
  await close(doors.open, true);
  await at("finished");
  await finish();
  await act("/arrived");
  found.screens[name("several")] = (await act("/blocked"))[doors.left[0]];
  await over();
  await act("/clean");

  // Something lies in the only one.
  p = await act("/bring?parcel=1");
  await act("/full");
  await typed(p.code);
  await page.waitForSelector("[id^=trouble-]");
  await page.click("[id^=trouble-]");
  await page.click("#wrong-occupied");
  await message("No other compartment is free");
  await look(name("none free"));
  found.screens[name("none take back")] = await page.textContent("#lead");
  doors = await act("/doors");
  await close(doors.left);
  await at("finished");
  await look(name("none free at the end"));
  if (await page.$("#receipt")) found.screens[name("receipt of nothing")] = "shown";
  found.screens[name("none title")] = await page.textContent("#headline");
  found.screens[name("none lead")] = await page.textContent("#lead");
  await finish();
  for (let i = 0; i < 50 && !found.screens[name("none")]; i++) {
    found.screens[name("none")] = (await act("/blocked"))[doors.left[0]];
    await new Promise((done) => setTimeout(done, 200));
  }
  // It is brought again, to a compartment of which the courier chooses the size.
  await act("/clean");
  await typed(p.code);
  await at("sizes");
  await look(name("sizes"));
  await page.click("#size-L");
  await at("flow");
  await open(1);
  doors = await act("/doors");
  found.screens[name("chosen")] = doors.open[0] > 2 ? "large" : "small"; // doors 1 and 2 are of the other size
  await close(doors.open, true);
  await at("finished");
  await finish();
  await act("/arrived");
  await over();

  // The label comes first, by a keyboard scanner at the start.
  const scan = async (text) => { await page.keyboard.type(text); await page.keyboard.press("Enter"); };
  const other = await act("/bring?parcel=1");
  p = await act("/bring?parcel=1");
  await scan("NOT-KNOWN-1");
  await message("This label is not known here");
  await look(name("unknown label"));
  await scan(other.packages[0].toLowerCase());
  await at("dropoff");
  found.screens[name("known label")] = await screen();
  await page.waitForFunction((label) => document.querySelector("#lead").textContent.includes(label), other.packages[0].toLowerCase());
  await look(name("label"));
  for (const c of p.code) await page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).click();
  await page.click("#enter");
  await message("for another parcel");
  await look(name("another label"));
  await page.focus("#code");
  await scan(p.packages[0]);
  await page.waitForFunction((label) => document.querySelector("#lead").textContent.includes(label), p.packages[0]);
  for (const c of p.code) await page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).click();
  await page.click("#enter");
  await at("flow");
  await open(1);
  doors = await act("/doors");
  await close(doors.open, true);
  await at("finished");
  await finish();
  await act("/arrived");
  await over();
  await act("/over?ref=" + other.ref);

  // Staff learn how a door is wired, while the link is cut; the layout is wrong, and put right.
  const staff = await act("/staff");
  const code = async () => { for (const c of staff.code) await page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).click(); await page.click("#enter"); };
  const sees = (words) => page.waitForFunction((w) => document.querySelector("#lead").textContent.includes(w), words);
  const learns = async (what, words) => {
    await home();
    await page.click("#staff");
    await code();
    await page.waitForSelector("#door-1");
    await page.click("#door-1");
    await page.click("#learn");
    await at("learn");
    await look(name("learn " + what));
    const cut = kind === "portrait" && what === "right";
    if (cut) await act("/cut");
    await page.click("#begin");
    await sees(" now.");
    await act("/key?door=1");
    await sees(words);
    await look(name("learned " + what));
    found.screens[name("learned " + what)] = await page.textContent("#lead");
    await act("/close?door=1");
    await page.click("#learned-done");
    await at("staff");
    if (cut) await act("/mend");
  };
  await home();
  await learns("right", "wired as the layout says");
  await act("/polarity?door=1&inverted");
  await learns("wrong", "the other way round");
  await act("/polarity?door=1");
  await home();
  await context.close();
}

await browser.close();
console.log(JSON.stringify(found));
