// Drives the pages in a real browser and prints what it found as one JSON
// object. Usage: node drive.mjs <base address> <email> <password> <chromium>
// [folder for pictures]. The server is told to change a door by a GET to the
// address given in CHANGE; HOOKS are ids of webhook deliveries, the first of which
// is sent again; APPROVALS are ids of approvals that wait, the second of
// which is approved and the first rejected.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, email, password, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], live: false, refreshed: false, stale: false, noscript: {}, motion: null, overflow: [], decided: {}, hooks: {} };
const [long, first] = process.env.APPROVALS.split(" ").map((id) => "/mcp-approvals/" + id);
const hooks = process.env.HOOKS.split(" ").map((id) => "/console/webhooks/" + id);
const paths = ["/console/webhooks", ...hooks, "/mcp-approvals", long, first, "/", "/track/SWP100200300", "/track/SWP100200301", "/track/NOTHING", "/nothing", "/console/login", "/account", "/console"];

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/status of 404|ERR_INTERNET_DISCONNECTED|Failed to load resource/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

async function signIn(page) {
  await page.goto(base + "/console/login");
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.click("form.login button");
  await page.waitForURL(base + "/console");
}

const check = (page, name) => audit(page, name, found);

const picture = async (page, name) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true }); };
const fileName = (path) => path.replaceAll("/", "_") || "home";

// The quick ring looks at every page in one way; the full one in three.
const full = process.env.POSTERN_RING === "full";

for (const colorScheme of full ? ["light", "dark"] : ["light"]) {
  const { context, page } = await open({ colorScheme });
  await signIn(page);
  for (const path of paths) {
    await page.goto(base + path);
    await page.waitForTimeout(path === "/console" ? 800 : 100);
    await check(page, `${path} ${colorScheme}`);
    await picture(page, `${colorScheme}${fileName(path)}`);
  }
  await context.close();
}

{ // a telephone, in German and in Chinese
  const { context, page } = await open({ viewport: { width: 360, height: 740 }, locale: "de-DE" });
  await signIn(page);
  for (const path of full ? paths : ["/console"]) {
    await page.goto(base + path);
    await page.waitForTimeout(path === "/console" ? 800 : 100);
    await check(page, `${path} phone`);
    await picture(page, `phone${fileName(path)}`);
  }
  await page.goto(base + "/track/SWP100200300?lang=zh-Hant");
  await check(page, "/track zh-Hant");
  await picture(page, "phone_zh");
  await context.close();
}

{ // the console follows a change
  const { context, page } = await open({});
  await signIn(page);
  await page.waitForSelector(".live.on");
  const door = page.locator("#cabinets li.door", { hasText: "A-7" }).first();
  const before = await door.getAttribute("class");
  await fetch(process.env.CHANGE);
  await page.waitForFunction((was) => {
    const d = [...document.querySelectorAll("#cabinets li.door")].find((x) => x.textContent.includes("A-7"));
    return d && d.className !== was;
  }, before);
  found.live = true;
  await context.close();
}

{ // a tracking page that cannot be refreshed says so, and recovers
  const { context, page } = await open({});
  await page.goto(base + "/track/SWP100200300");
  await page.waitForSelector(".live.on");
  const cdp = await context.newCDPSession(page); // an open stream is cut too
  await cdp.send("Network.enable");
  await context.setOffline(true);
  await page.evaluate(() => window.dispatchEvent(new Event("pagehide")));
  await page.waitForSelector(".live.off");
  found.stale = (await page.textContent(".live.off")).includes("Not connected since");
  await check(page, "/track lost");
  await picture(page, "stale");
  await context.setOffline(false);
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await page.waitForSelector(".live.on");
  found.refreshed = true;
  await context.close();
}

{ // a recipient shows who they are, with wrong digits and right ones
  const { context, page } = await open({ viewport: { width: 390, height: 844 } });
  await page.goto(base + "/track/SWP100200300");
  for (const digits of ["9999", "0123"]) {
    await page.fill("#digits", digits);
    await page.click("form.proof button");
    await page.waitForSelector(digits === "0123" ? ".place .label" : "#proof-problem");
    await check(page, `/track digits ${digits}`);
    await picture(page, `proof_${digits}`);
  }
  await context.close();
}

{ // a decision by keyboard: from the note to both buttons, which are seen
  const { context, page } = await open({});
  await signIn(page);
  await page.goto(base + first);
  await page.focus("#note");
  const at = [];
  for (let i = 0; i < 3; i++) {
    at.push(await page.evaluate(() => document.activeElement.value && document.activeElement.tagName === "BUTTON" ? document.activeElement.value : document.activeElement.id));
    await page.keyboard.press("Tab");
  }
  found.decided.keyboard = at.join(" ");
  await context.close();
}

{ // without script
  const { context, page } = await open({ javaScriptEnabled: false });
  await page.goto(base + "/");
  await page.fill("#number", "SWP100200300");
  await page.click("form.search button");
  await page.waitForURL(base + "/track/SWP100200300");
  found.noscript.track = await page.textContent("h1");
  await page.click('a[hreflang="de"]');
  found.noscript.language = await page.textContent("h1");
  await page.goto(base + "/console?lang=en");
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.click("form.login button");
  await page.waitForURL(base + "/console");
  found.noscript.doors = await page.locator("#cabinets li.door").count();
  found.noscript.hint = await page.locator("noscript .notice").isVisible();
  await page.goto(base + first + "?lang=en");
  await page.fill("#note", "Called the customer");
  await page.click("button[value=approve]");
  found.decided.noscript = await page.textContent("#h-outcome");
  found.decided.next = await page.textContent(".outcome .button");
  await page.click(".outcome .button");
  await page.click("button[value=reject]");
  found.decided.rejected = await page.textContent("#h-outcome");
  await page.goto(base + "/console");
  await page.click("form[action='/console/logout'] button");
  await page.waitForURL(base + "/console/login");
  found.noscript.out = true;
  await context.close();
}

{ // webhooks without script: from the console to a delivery, by a filter, and again
  const { context, page } = await open({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  await signIn(page);
  await page.click('#webhooks a[href="/console/webhooks"]');
  await page.selectOption("#state", "success");
  await page.fill("#event", "order.status_change");
  await page.click(".sieve button");
  await page.waitForURL((u) => u.searchParams.get("event") === "order.status_change");
  found.hooks.filtered = await page.locator("#log tbody tr").count();
  await page.click("#log tbody a");
  found.hooks.event = await page.textContent("h1");
  await page.click("form.decide button");
  found.hooks.again = await page.textContent(".notice.good");
  await page.click(".notice.good a");
  found.hooks.repeat = await page.locator(`a[href="${hooks[0]}"]`).count();
  await context.close();
}

{ // webhooks by keyboard: what was sent opens, and the button to send it again is reached
  const { context, page } = await open({});
  await signIn(page);
  await page.goto(base + hooks[0]);
  await page.focus("summary");
  await page.keyboard.press("Enter");
  found.hooks.opened = await page.evaluate(() => document.querySelector("details").open);
  for (const d of await page.locator("summary").all()) if (!(await d.evaluate((x) => x.parentElement.open))) await d.click();
  await check(page, "/console/webhooks opened");
  await picture(page, "hook_opened");
  await page.focus("form.decide button");
  found.hooks.reached = await page.evaluate(() => document.activeElement.type);
  await context.close();
}

{ // what was decided, and how many still wait
  const { context, page } = await open({});
  await signIn(page);
  found.decided.waiting = await page.evaluate(() => document.querySelector("[data-live=n-approvals]").textContent);
  for (const [name, path] of [["approved", first], ["rejected", long]]) {
    await page.goto(base + path);
    await check(page, name);
    await picture(page, name);
  }
  await context.close();
}

{ // keyboard: the first stop skips to the content, and is seen
  const { context, page } = await open({ reducedMotion: "reduce" });
  await page.goto(base + "/track/SWP100200300");
  found.motion = await page.evaluate(() => document.getAnimations().length);
  await page.keyboard.press("Tab");
  found.skip = await page.evaluate(() => document.activeElement.className + " " + (document.activeElement.getBoundingClientRect().top >= 0));
  await context.close();
}

await browser.close();
process.stdout.write(JSON.stringify(found));
