// Has staff collect, and remove a parcel, at the screen of a cabinet in a real browser, at a
// portrait and a landscape kiosk, and prints what was found as one JSON object. Usage: node
// kioskcollect.mjs <address of the screen> <address of the hands> <chromium> [folder for pictures].
// A GET of the hands does what a person does at the cabinet and answers JSON.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, hands, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, overflow: [], console: [], small: [], clipped: [], screens: {} };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const sizes = { portrait: { width: 1080, height: 1920 }, landscape: { width: 1280, height: 800 } };
let current = null;
process.on("uncaughtException", async (e) => { // as a failing script left it
  console.error(e, await current?.evaluate(() => document.body.innerText));
  if (pictures) await current?.screenshot({ path: `${pictures}/kioskcollect-failed.png` });
  process.exit(1);
});
const act = async (path) => {
  const r = await fetch(hands + path);
  if (!r.ok) throw new Error(path + ": " + (await r.text()));
  return r.json();
};

// look checks a screen in English, and in German, whose words are the longest.
async function look(page, name) {
  for (const lang of ["de", "en"]) {
    await page.evaluate(async (l) => { (await import("/words.js")).setLanguage(l); }, lang);
    await page.waitForTimeout(700); // the staff's view comes twice a second
    await audit(page, `${name} ${lang}`, found);
    if (pictures) await page.screenshot({ path: `${pictures}/kioskcollect-${name}-${lang}.png` });
    const targets = await page.evaluate(() => [...document.querySelectorAll("button, input")].filter((e) => e.checkVisibility()).map((e) => {
      const b = e.getBoundingClientRect();
      return { id: e.id || e.textContent, w: b.width, h: b.height, right: b.right, bottom: b.bottom, clipped: e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1 };
    }));
    const { width, height } = page.viewportSize();
    for (const x of targets) {
      const what = `${name} ${lang}: ${x.id} ${Math.round(x.w)}x${Math.round(x.h)}`;
      if (x.w < 96 || x.h < 96) found.small.push(what);
      if (x.clipped || x.right > width + 1 || x.bottom > height + 1) found.clipped.push(what);
    }
  }
}

const at = (page, name) => page.waitForSelector(`body[data-screen=${name}]`);
const type = async (page, code) => {
  for (const c of code) await page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).click();
  await page.click("#enter");
};

for (const [kind, size] of Object.entries(sizes)) {
  const context = await browser.newContext({ viewport: size });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  current = page;
  page.on("console", (x) => { if (x.type() === "error" && !/Failed to load resource|ERR_/.test(x.text())) found.console.push(x.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  const staff = await act("/staff");
  const signIn = async () => { await at(page, "start"); await page.click("#staff"); await type(page, staff.code); await at(page, "staff"); };
  const doors = [];
  for (let i = 0; i < 3; i++) doors.push((await act("/overdue")).door);
  doors.sort((a, b) => a - b);
  const waits = (await act("/waiting")).door;
  await act("/cut");
  await page.clock.install();
  await page.goto(base);
  await signIn();
  await page.waitForSelector("#collect:not([disabled])");
  await look(page, kind + "-staff");
  await page.click("#collect");
  await at(page, "collect");
  found.screens[kind + " listed"] = await page.locator(".steps li").count();
  await look(page, kind + "-collect");
  await page.click("#openall");
  await at(page, "collectcode");
  await look(page, kind + "-collectcode");
  await type(page, staff.code);
  for (const [i, [button, take]] of [["taken", true], ["notfound", true], ["refused", false]].entries()) {
    await at(page, "collecting");
    const door = doors[i];
    await page.waitForFunction(() => /close it|Alles aus/.test(document.querySelector("#lead").textContent));
    if (i === 0) await look(page, kind + "-open");
    if (take) await act("/take?door=" + door);
    await act("/close?door=" + door);
    await page.waitForSelector("#" + button + ":not([disabled])");
    if (i === 0) await look(page, kind + "-asked");
    if (i === 2) { // the sensor sees it
      await page.click("#taken");
      await page.waitForFunction(() => /sensor/.test(document.querySelector("#message").textContent));
      await look(page, kind + "-inside");
    }
    await page.click("#" + button);
  }
  await at(page, "collected");
  found.screens[kind + " summed"] = await page.locator(".sums li").count();
  await look(page, kind + "-collected");
  await page.click("#more");
  await at(page, "staff");
  // A parcel that waits is removed, for a reason that is asked twice.
  await page.click("#door-" + waits);
  await page.click("#openchosen");
  await type(page, staff.code);
  await at(page, "staff");
  await page.waitForFunction((d) => document.querySelector("#door-" + d + " small")?.textContent === "open", waits);
  await act("/take?door=" + waits);
  await act("/close?door=" + waits);
  await page.waitForSelector("#remove:not([disabled])");
  await page.click("#remove");
  await at(page, "remove");
  await page.waitForSelector("#from-" + waits);
  await look(page, kind + "-remove");
  await page.click("#from-" + waits);
  await at(page, "reason");
  await look(page, kind + "-reason");
  await page.click("#why-destroyed");
  await at(page, "confirm");
  await look(page, kind + "-confirm");
  await page.click("#goback");
  await at(page, "reason");
  found.screens[kind + " asked twice"] = (await act("/holds?door=" + waits)).code;
  await page.click("#why-destroyed");
  await page.click("#confirmed");
  await at(page, "staff");
  await page.waitForFunction(() => /is free/.test(document.querySelector("#message").textContent));
  found.screens[kind + " removed"] = (await act("/holds?door=" + waits)).code;
  // Staff walk away from an open door: the session ends, and nothing else opens.
  await page.waitForSelector("#collect:not([disabled])");
  await page.click("#collect");
  await page.click("#openall");
  await type(page, staff.code);
  await at(page, "collecting");
  await page.waitForFunction(() => /close it/.test(document.querySelector("#lead").textContent));
  await page.clock.fastForward(106000);
  await page.waitForFunction(() => document.querySelector("#still").open);
  await page.clock.fastForward(16000);
  await at(page, "start");
  await act("/take?door=" + doors[2]);
  await act("/close?door=" + doors[2]);
  found.screens[kind + " walked away"] = (await act("/holds?door=" + doors[2])).code;
  await act("/mend");
  await act("/clear?door=" + doors[2]);
  await context.close();
}
console.log(JSON.stringify(found));
await browser.close();
