// Weighs the pages of a demo in a real browser with an empty cache, drawn and generated
// ones: bytes as they are sent, requests, and the first paint, and those of a tracking
// page with the speed of a slow mobile network too. Prints one JSON object.
// Usage: node budgets.mjs <sandbox file> <chromium>.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { patient as retried } from "./demo.mjs";

const [file, executablePath] = process.argv.slice(2);
const box = JSON.parse(readFileSync(file));
const base = box.base_url;
const found = { pages: [], failed: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

const patient = (what) => retried(base, what);

// weigh loads a page with an empty cache.
async function weigh(path, state, slow) {
  const context = await browser.newContext({ storageState: state, viewport: slow ? { width: 390, height: 844 } : { width: 1440, height: 900 } });
  try {
    const page = await context.newPage();
    let requests = 0;
    page.on("request", () => requests++);
    if (slow) {
      const cdp = await context.newCDPSession(page);
      await cdp.send("Network.enable");
      await cdp.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 });
    }
    const answer = await page.goto(base + path, { waitUntil: "load" });
    const seen = await page.evaluate(() => new Promise((done) => {
      let largest = 0;
      new PerformanceObserver((list) => { for (const e of list.getEntries()) largest = e.startTime; }).observe({ type: "largest-contentful-paint", buffered: true });
      setTimeout(() => {
        const nav = performance.getEntriesByType("navigation")[0], rest = performance.getEntriesByType("resource");
        done({ html: nav.encodedBodySize, assets: rest.reduce((sum, r) => sum + r.encodedBodySize, 0), first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, largest });
      }, 300);
    }));
    return { path, status: answer.status(), requests, ...seen };
  } finally {
    await context.close();
  }
}

const links = (page, where) => page.$$eval(where, (all) => all.map((a) => a.getAttribute("href")));
const { state, paths } = await patient(async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(base + "/console/login?lang=en");
  await page.fill("#email", box.admin.email);
  await page.fill("#password", box.admin.password);
  await page.click("form.login button");
  await page.waitForURL(base + "/console");
  const paths = new Set(["/account", "/console/search?q=Old+Yard"]);
  const rail = (await links(page, ".rail a[href]")).filter((p) => p.startsWith("/console"));
  for (const p of rail) {
    paths.add(p);
    await patient(() => page.goto(base + p));
    for (const more of [(await links(page, "main .rows tbody a[href^='/console/']"))[0], (await links(page, "main a[data-key=n]"))[0], (await links(page, "main a[href$='/import']"))[0]]) if (more) paths.add(more.split("#")[0]);
  }
  const state = await context.storageState();
  await context.close();
  return { state, paths };
});
for (const path of paths) found.pages.push(await patient(() => weigh(path, state)));
const parcel = await patient(async () => (await (await fetch(base + "/api/v1/smart-lockers/deliveries", { headers: { Authorization: "Bearer " + box.admin.token } })).json()).deliveries[0].packages[0].tracking_number);
for (let i = 0; i < 3; i++) found.pages.push(await patient(() => weigh("/track/" + encodeURIComponent(parcel), undefined, true)));
await browser.close();
process.stdout.write(JSON.stringify(found, null, 1));
