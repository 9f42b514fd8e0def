// Looks at a list while a record changes, loses the server, and opens more pages than
// one session may have streams. Prints what it found as one JSON object. Usage: node
// live.mjs <base address> <email> <password> <chromium>. A GET to the address in CHANGE
// gives cabinet 88 another name, and person 1 with the path /person.
import { chromium } from "playwright-core";

const [base, email, password, executablePath] = process.argv.slice(2);
const found = { console: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
context.setDefaultTimeout(0); // the test bounds the whole
const page = await context.newPage();
page.on("pageerror", (e) => found.console.push(String(e)));
await page.goto(base + "/console/login");
await page.fill("#email", email);
await page.fill("#password", password);
await page.click("form.login button");
await page.waitForURL(base + "/console");

await page.goto(base + "/console/cabinets");
await page.waitForSelector(".live.on");
found.state = (await page.textContent(".live.on")).trim().replace(/\d\d:\d\d:\d\d/, "TIME");
await page.keyboard.press("j");
await page.evaluate(() => {
  const tall = new CSSStyleSheet();
  tall.replaceSync("tbody tr { height: 40rem }");
  document.adoptedStyleSheets = [tall];
  window.stays = document.querySelector("tr.chosen");
  const focus = document.activeElement;
  window.stays.parentElement.append(window.stays, document.createElement("tr")); // below where the server has it
  focus.focus();
});
await fetch(process.env.CHANGE);
await page.waitForFunction(() => document.querySelector("main").textContent.includes("Renamed Lobby"));
found.row = await page.evaluate(() => window.stays.isConnected && window.stays.classList.contains("chosen") && window.stays.contains(document.activeElement));
await page.waitForFunction(() => document.querySelector("[data-live-said]").textContent !== "");
found.said = await page.textContent("[data-live-said]");
found.sight = await page.evaluate(() => {
  const box = document.activeElement.getBoundingClientRect();
  return window.stays.rowIndex === 1 && box.bottom > 0 && box.top < innerHeight;
});

// A menu stays open when the sentence above it goes.
await page.goto(base + "/console/people/1");
await page.waitForSelector(".live.on");
await page.waitForFunction(() => /Live/.test(document.querySelector(".live.on").textContent));
await page.evaluate(() => document.querySelector(".head .verbs").insertAdjacentHTML("beforebegin", '<p class="says">It was so.</p>'));
await page.click(".head details.menu > summary");
await fetch(process.env.CHANGE + "person");
await page.waitForFunction(() => document.querySelector("h1").textContent.includes("Renamed Ann"));
found.menu = await page.evaluate(() => document.querySelector(".head details.menu").open && !document.querySelector(".says")?.textContent.includes("It was so"));

await context.setOffline(true);
await page.evaluate(() => window.dispatchEvent(new Event("pagehide"))); // an open stream is not cut by it
await page.waitForSelector(".verbs a[aria-disabled=true]");
found.lost = (await page.textContent(".live.off")).trim().replace(/\d\d:\d\d:\d\d/, "TIME");
const at = page.url();
await page.click(".verbs a", { force: true });
await page.waitForFunction(() => document.querySelector("[data-live-said]").textContent.includes("Not connected"));
found.off = page.url() === at;
await context.setOffline(false);
await page.evaluate(() => window.dispatchEvent(new Event("online")));
await page.waitForSelector(".verbs a:not([aria-disabled])");
await page.close();

const pages = [];
for (let i = 0; i < 6; i++) {
  const p = await context.newPage();
  await p.goto(base + "/console/cabinets");
  await p.waitForSelector(".live.on");
  await p.waitForFunction(() => /Live|Checked/.test(document.querySelector(".live.on").textContent));
  await p.waitForTimeout(300);
  pages.push((await p.textContent(".live.on")).trim().split(/[ ,]/)[0]);
}
found.pages = pages;
await browser.close();
process.stdout.write(JSON.stringify(found));
