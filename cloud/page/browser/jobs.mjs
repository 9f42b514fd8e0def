// Does the jobs of the workplace in a real browser, from the home page and by its own
// controls, and prints for each how many presses it took and what the interface answered
// afterwards, as one JSON object. Usage: node jobs.mjs <sandbox file> <chromium> [mode].
// mode is keys, for a person who has a keyboard alone, or plain, for a browser without
// script; presses are counted without one.
// A press is a click, a choice or a key outside of a field; typing is none, and Enter or
// Ctrl+Enter that ends it belongs to it.
import { chromium } from "playwright-core";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { patient, up as answers } from "./demo.mjs";

const [file, executablePath, mode = "mouse"] = process.argv.slice(2);
const keys = mode === "keys", plain = mode === "plain";
const box = JSON.parse(readFileSync(file));
const base = box.base_url;
const found = { jobs: [], console: [], failed: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, javaScriptEnabled: !plain });
const page = await context.newPage();
await patient(base, async () => {
  await page.goto(base + "/console/login?lang=en");
  await page.fill("#email", box.admin.email);
  await page.fill("#password", box.admin.password);
  await page.click("form.login button");
  await page.waitForURL(base + "/console");
});
page.setDefaultTimeout(60_000); // a busy machine takes its time
page.on("console", (m) => { if (m.type() === "error" && !/status of 4|ERR_CONNECTION_REFUSED/.test(m.text())) found.console.push(m.text()); });
page.on("response", (r) => { if (r.status() === 404) found.console.push("404 " + r.url()); });
page.on("pageerror", (e) => found.console.push(String(e)));

let presses = 0, made10;
const click = async (what) => { presses++; if (keys) await pressFocused(what); else await what.first().click(); };

const key = async (name) => { presses++; for (const k of name.split(" ")) await page.keyboard.press(k); };
// type writes into a field. Ctrl+Enter sends a form by script; without it Enter in a
// field of one line does, and else the form's button.
const type = async (what, text, end) => {
  if (keys) await reach(what);
  await what.first().fill(text);
  if (!end) return;
  if (!plain || end === "Enter") await settled(() => what.first().press(end));
  else await settled(() => what.first().locator("xpath=ancestor::form").locator("button[type=submit]:not(.quiet):not([aria-hidden])").last().click());
};
// reach moves the focus to a control by Tab: over the skip link to what is on the page
// itself, in sight at each stop, and never out of the page.
async function reach(what) {
  const el = what.first();
  await el.waitFor({ state: "visible" });
  let rounds = 0;
  const look = () => el.evaluate((e) => {
    const a = document.activeElement, box = a.getBoundingClientRect(), ringed = (x) => getComputedStyle(x).outlineStyle !== "none" || getComputedStyle(x).boxShadow !== "none";
    return { here: a === e, out: a === document.body, skip: a.matches(".skip") && Boolean(e.closest("main")), name: a.innerText?.trim().slice(0, 40) || a.name || a.id,
      seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth, ring: ringed(a) || ringed(a.parentElement) };
  });
  for (let n = 0; n < 800; n++) {
    const at = await look();
    if (!at.out && n && (!at.seen || !at.ring)) found.failed.push(`the focus ${at.seen ? "has no ring" : "is out of sight"} on ${at.name} at ${page.url()}`);
    if (at.here) return;
    if (at.out && n && ++rounds > 2) break;
    await page.keyboard.press(at.skip ? "Enter" : "Tab");
    if (at.skip) await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not reach ${what}`);
}
async function pressFocused(what) {
  await reach(what);
  await page.evaluate(() => { window.before = true; });
  const stays = await what.first().evaluate((e) => e.localName === "summary" || Boolean(e.getAttribute("href")?.includes("#")) || e.hasAttribute("download"));
  await Promise.all([stays ? page.waitForTimeout(100) : page.waitForEvent("framenavigated", { timeout: 5000 }).catch(() => {}), page.keyboard.press("Enter")]);
  await page.waitForLoadState("load");
  const lost = await page.evaluate(() => window.before && !location.hash.startsWith("#door") && document.activeElement === document.body).catch(() => false);
  if (lost) found.failed.push(`the focus is lost after a press at ${page.url()}`);
}
const settled = (act) => Promise.all([page.waitForLoadState("load"), act()]);
const main = page.locator("main");
const rail = (name) => page.locator(".rail").getByRole("link", { name });
const link = (name) => main.getByRole("link", { name });
const button = (name) => main.getByRole("button", { name });
const field = (name) => main.locator(`[name="in:${name}"]:visible`);
// confirm presses the button of a preview, which names what is done.
const confirm = () => click(main.locator("form [name=step][value=do]"));
// A page that follows by itself may take a while: the form that was sent is gone by then.
const confirmIfAsked = async () => {
  await eventually(async () => await main.locator("form [name=step][value=next]").count() === 0);
  if (await main.locator("form [name=step][value=do]").count()) await confirm();
};
const go = () => click(main.locator("form [name=step][value=next]"));
const pick = async (what, value) => {
  presses++;
  if (!keys) return what.selectOption(value);
  await reach(what);
  const wanted = (v) => typeof value === "string" ? v === value : Boolean(v);
  for (let n = 0; n < 260 && !wanted(await what.inputValue()); n++) await page.keyboard.press("ArrowDown");
};
const search = async (text) => { if (plain) await click(page.locator("#find")); else await key("/"); await type(page.locator("#find"), text, "Enter"); };

async function api(path) {
  await up();
  const answer = await fetch(base + path, { headers: { Authorization: "Bearer " + box.admin.token } });
  return answer.json();
}

// seen is what the page shows now. One that did not load, because the demo killed its
// cloud, is no page to wait for.
async function seen() {
  if (page.url().startsWith("chrome-error")) throw new Error("chrome-error");
  return main.innerText({ timeout: 1000 }).catch(() => "");
}

// eventually waits for the interface to answer what a job was for.
async function eventually(ask) {
  for (let i = 0; ; i++) {
    const got = await ask();
    if (got || i === 100) return got;
    await new Promise((next) => setTimeout(next, 200));
  }
}

const up = () => answers(base);

// connected waits until every cabinet that has ever been online is so again.
const connected = () => eventually(async () => (await api("/api/v1/smart-lockers/devices")).devices.every((d) => d.status === "online" || !d.last_seen_at));

async function job(number, limit, words, act, judge) {
  for (let tries = 0; ; tries++) {
    await up();
    presses = 0;
    let lost = "";
    const answer = await (async () => {
      await page.goto(base + "/console?lang=en");
      await act();
      // The demo changes the same cabinet now and then between a preview and its button.
      let got;
      for (let again = 0; again < 5; again++) {
        got = await eventually(async () => (await seen()).includes("Something changed since") ? "changed" : judge());
        if (got !== "changed") break;
        await confirm();
        presses--;
      }
      return got === "changed" ? eventually(judge) : got;
    })().catch((e) => { lost = String(e).slice(0, 300); });
    if (!answer && tries < 2 && /ERR_CONNECTION|ERR_EMPTY|fetch failed|ECONN|chrome-error|interrupted by another/.test(lost + page.url())) continue;
    if (!answer && tries < 2 && (await seen().catch(() => "")).includes("The cabinet is offline")) { // the demo cuts its line for some seconds
      await connected();
      continue;
    }
    found.jobs.push({ number, limit, words, presses, done: Boolean(answer) });
    if (!answer) found.failed.push(`${number} ${words}: ${lost || "the interface does not know of it"} at ${page.url()}: ${(await seen().catch(String)).slice(0, 400)}`);
    return;
  }
}

const text = (what) => async () => (await main.innerText()).includes(what);
const unique = Date.now().toString(36);
const minutes = { mouse: "17", keys: "18", plain: "19" }[mode];
const devices = (await api("/api/v1/smart-lockers/devices")).devices;
const yard = devices.find((d) => d.device_name === "Old Yard");
const grids = async () => (await api(`/api/v1/smart-lockers/devices/${yard.device_id}`)).device.grids;
const free = (await grids()).filter((g) => g.state === "free").map((g) => g.grid_code).reverse();
const door = (code) => main.locator(`a[href="/console/cabinets/${yard.device_id}#door-${code}"]`);

await job(1, 1, "see the cabinets live", () => click(rail("Cabinets")), text("Old Yard"));
await job(2, 1 + 1, "look behind a door", () => click(door(free[0])), async () => main.locator(`#door-${free[0]}`).isVisible());
await job(3, 5, "open a door with a reason", async () => {
  await click(door(free[0]));
  await click(main.locator(`#door-${free[0]}`).getByRole("link", { name: "Open doors" }));
  await pick(field("attended"), "true");
  await type(field("reason"), `look ${unique}`, "Enter");
  await confirm();
}, async () => JSON.stringify(await api(`/api/v1/smart-lockers/devices/${yard.device_id}/door-reports`)).includes(`look ${unique}`));
await job(4, 4, "block a compartment", async () => {
  await click(door(free[1]));
  await click(main.locator(`#door-${free[1]}`).getByRole("link", { name: "Block" }));
  await type(field("reason"), "dirty", "Enter");
  await confirm();
}, async () => (await grids()).some((g) => g.grid_code === free[1] && g.state === "blocked"));
await job(4, 4, "take a block away", async () => {
  const cell = (await grids()).find((g) => g.grid_code === free[1]);
  if (cell.state === "free") { // the demo's staff was quicker
    await fetch(`${base}/api/v1/smart-lockers/devices/${yard.device_id}/grids/${cell.grid_id}/block`, { method: "POST", headers: { Authorization: "Bearer " + box.admin.token, "Content-Type": "application/json" }, body: JSON.stringify({ reason: "dirty" }) });
    await page.reload();
  }
  await click(door(free[1]));
  await click(main.locator(`#door-${free[1]}`).getByRole("link", { name: "Unblock" }));
  await type(field("reason"), "clean", "Enter");
  await confirmIfAsked();
}, async () => (await grids()).some((g) => g.grid_code === free[1] && g.state === "free"));
const items = async () => Object.values(await api("/api/v1/work-items")).find(Array.isArray) ?? [];
for (const x of await items()) // that an earlier run took
  if (x.owner_id) await fetch(`${base}/api/v1/work-items/${x.item_id}/release`, { method: "POST", headers: { Authorization: "Bearer " + box.admin.token, "Content-Type": "application/json" }, body: "{}" });
await job(5, 3, "take an item of work", async () => {
  await click(rail("Work"));
  const free = main.locator("li.todo").filter({ has: page.locator("button", { hasText: /^(I see to it|Take over)/ }) });
  await click(free.locator("summary"));
  await click(free.first().getByRole("button", { name: /^(I see to it|Take over)/ }));
}, async () => JSON.stringify(await api("/api/v1/work-items")).includes(`"owner_name":"${box.name ?? ""}`));
await job(6, 5, "add a cabinet", async () => {
  await click(link("Add a cabinet"));
  await type(main.locator("[name=device_name]"), `Gate ${unique}`);
  await type(main.locator("[name=device_code]"), `GATE-${unique.toUpperCase()}`, "Enter");
}, async () => JSON.stringify(await api("/api/v1/smart-lockers/devices")).includes(`Gate ${unique}`));
await job(7, 5, "have a cabinet synchronise", async () => {
  await click(main.locator(`a[href="/console/cabinets/${yard.device_id}"]`));
  await click(link("Service"));
  await click(link("Synchronise"));
  await go();
  await confirmIfAsked();
}, async () => JSON.stringify(await api("/api/v1/audit")).includes("command"));
const parcels = (await api("/api/v1/smart-lockers/deliveries")).deliveries;
await job(8, 1, "find anything", () => search(parcels[0].delivery_number), async () => page.url().includes(`/console/parcels/${parcels[0].delivery_id}`));
await job(9, 1, "read the story of a parcel", () => search(parcels.findLast((p) => p.status !== "cancelled").delivery_number), async () => (await main.innerText()).includes("What happened"));
await job(10, 3, "cancel a parcel before its deposit", async () => {
  const send = { method: "POST", headers: { Authorization: "Bearer " + box.provider.token, "Content-Type": "application/json" }, body: JSON.stringify({ reference_number: `OFF-${unique}`, device_id: yard.device_id, packages: [{ tracking_number: `OFF-${unique}`, size: "S" }], recipient: { name: "Ann Bell", phone: "+14165550188" } }) };
  made10 ??= (await (await fetch(base + "/api/v1/third-party-delivery/deliveries", send)).json()).delivery;
  await search(made10.delivery_number);
  if (!await main.locator("a[href$='/cancel']").first().isVisible()) await click(main.locator("summary", { hasText: "More" }));
  await click(main.locator("a[href$='/cancel']"));
  await type(field("reason"), "the site is closed", "Enter");
  await confirmIfAsked();
}, async () => (await api(`/api/v1/smart-lockers/deliveries/${made10.delivery_id}`)).delivery?.status === "cancelled");
await job(11, 3, "see how a cabinet is", async () => { await click(main.locator(`a[href="/console/cabinets/${yard.device_id}"]`)); await click(link("Health")); }, text("Exceptions of this cabinet"));
await job(12, 1, "read the audit trail", () => click(rail("Audit")), text("Mina Roy"));
await job(13, 2, "have a list as CSV", async () => {
  await click(rail("Orders"));
  const [download] = await Promise.all([page.waitForEvent("download"), click(link("CSV"))]);
  presses += (readFileSync(await download.path(), "utf8").split("\n").length > 2) ? 0 : 100;
}, async () => true);
await job(14, 2, "create an order", async () => {
  await click(link("New order"));
  await type(field("packages[0].weight"), "2");
  await type(field("order_ref"), `NEW-${unique}`);
  for (const [name, value] of Object.entries({ name: "Ann Bell", address_line1: "1 King St W", city: "Toronto", province: "ON", postal_code: "M5H 1A1", phone: "+14165550188" })) await type(field("recipient." + name), value);
  await pick(field("recipient.country"), "CA");
  presses--; // a choice by its first letters is typing, as the rest of the address
  await type(field("order_ref"), `NEW-${unique}`, "Control+Enter");
  if (!/\/console\/orders\/\d+/.test(page.url())) await confirm();
}, async () => (await api(`/api/v1/orders?keyword=NEW-${unique}`)).orders?.length === 1);
const order = async () => (await api(`/api/v1/orders?keyword=NEW-${unique}`)).orders[0];
const made = await order().catch(() => null);
await job(15, 5, "import orders from a file", async () => {
  const file = `Type,Your reference,Packages: Weight,Recipient: Name,Recipient: Street and number,Recipient: City,Recipient: Province or state,Recipient: Postal code,Recipient: Country,Recipient: Telephone
D,IMP-${unique}-1,2,Ann Bell,1 King St W,Toronto,ON,M5H 1A1,CA,+14165550188
D,IMP-${unique}-2,2,"=Bo ""the"" Lee",2 King St W,Toronto,ON,M5H 1A1,CA,+14165550188
X,IMP-${unique}-3,2,Cy Dean,3 King St W,Toronto,ON,M5H 1A1,CA,+14165550188
`;
  await click(rail("Orders"));
  await click(link("Import"));
  presses++;
  await main.locator("#file").setInputFiles({ name: "orders.csv", mimeType: "text/csv", buffer: Buffer.from(file) });
  await click(button("Check"));
  await click(main.locator("#job").getByRole("button", { name: /^(Import|Start|Run|Do)/ }));
}, async () => (await api(`/api/v1/orders?keyword=IMP-${unique}`)).orders?.length === 2);
await job(16, 2, "list the orders of a status", async () => {
  await click(rail("Orders"));
  await click(main.locator(".chips").getByRole("link", { name: "New order", exact: true }));
}, text(made?.tracking_number ?? "none"));
await job(20, 4, "put an order on hold", async () => {
  await search(made.tracking_number);
  await click(link("Put on hold"));
  await type(field("reason"), "address", "Enter");
  await confirm();
}, async () => (await order()).order_status_id === 3);
await job(20, 4, "release an order", async () => {
  await search(made.tracking_number);
  await click(main.locator("summary", { hasText: "More" }));
  await click(main.locator("a[href$='/release']"));
  if (keys) await reach(main.locator("form [name=step][value=next]"));
  await settled(() => main.locator("form [name=step][value=next]").press("Enter"));
  await confirmIfAsked();
}, async () => (await order()).order_status_id !== 3);
await job(18, 3, "give an order to a driver", async () => {
  await search(made.tracking_number);
  await click(link("Assign driver"));
  presses--; // the choice belongs to what is typed
  await pick(field("driver_id"), { index: 1 });
  if (plain) await go();
  else await settled(() => field("driver_id").press("Control+Enter"));
  await confirm();
}, async () => (await order()).driver_id > 0);
await job(14, 3, "cancel an order", async () => {
  await search(made.tracking_number);
  await click(link("Cancel order"));
  await type(field("reason"), "twice", "Enter");
  await confirm();
}, async () => (await order()).order_status_id === 50);
await job(19, 1, "see the drivers of today", () => click(rail("Day board")), text("Sam Lee"));
await job(21, 2, "answer a message", async () => {
  await click(rail("Messages"));
  await click(main.locator("a[href^='/console/chats/']"));
  if (!plain) await main.locator(".chat[data-now]").waitFor(); // its script runs: only that knows Control and Enter
  await type(main.locator("[name=text]"), `hello ${unique}`, "Control+Enter");
}, async () => text(`hello ${unique}`)());
if (mode === "mouse" || (await api("/api/v1/mcp/approvals?status=pending")).approvals?.length) await job(22, 3, "decide about an agent's wish", async () => {
  await click(rail("Work"));
  await click(link("Look and decide"));
  await click(button("Approve"));
}, async () => (await api("/api/v1/mcp/approvals?status=executed")).approvals?.length > 0 || (await api("/api/v1/mcp/approvals?status=approved")).approvals?.length > 0);
await job(23, 4, "add a person", async () => {
  await click(rail("People"));
  await click(link("Add person"));
  await pick(field("account_type"), "client_employee");
  await type(field("name"), "Ida Roth");
  await type(field("email"), `ida-${unique}@acme.example`);
  await type(field("password"), "a long enough password", "Enter");
  await confirm();
}, async () => JSON.stringify(await api("/api/v1/users")).includes(`ida-${unique}`));
await job(24, 4, "create an API key", async () => {
  await click(rail("API keys"));
  await click(link("Create key"));
  await type(field("name"), `key ${unique}`, "Enter");
  await confirm();
}, async () => JSON.stringify(await api("/api/v1/user/api-keys")).includes(`key ${unique}`));
await job(25, 3, "change a setting", async () => {
  await click(rail(/^Settings/));
  await click(link("Edit settings"));
  await type(field("correction_window_minutes"), minutes, "Enter");
  await confirm();
}, async () => (await api("/api/v1/settings")).settings?.correction_window_minutes === Number(minutes));
await job(26, 4, "add a webhook endpoint", async () => {
  await click(rail("Webhook settings"));
  await click(link("Edit webhook settings"));
  await type(field("order_deleted_webhook_url"), `https://shop.example/${unique}`, "Enter");
  await confirm();
}, async () => JSON.stringify(await api("/api/v1/webhook-settings")).includes(unique));
await job(27, 5, "send a webhook again", async () => {
  await click(rail("Webhook deliveries"));
  await click(main.locator(".rows tbody a"));
  await click(link("Send again"));
  await go();
  await confirmIfAsked();
}, async () => JSON.stringify(await api("/api/v1/audit")).includes("replay"));

// A program that the person let act for the account, as a program asks for it.
async function connectProgram(name) {
  let code = "";
  const heard = createServer((req, res) => { code = new URL(req.url, base).searchParams.get("code") ?? code; res.end("done"); });
  await new Promise((next) => heard.listen(0, "127.0.0.1", next));
  const mine = `http://127.0.0.1:${heard.address().port}/cb`, resource = base + "/mcp", verifier = randomBytes(48).toString("base64url");
  const client = await (await fetch(base + "/oauth/register", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ client_name: name, redirect_uris: ["http://127.0.0.1/cb"] }) })).json();
  const other = await (await browser.newContext()).newPage();
  await other.goto(`${base}/oauth/authorize?${new URLSearchParams({ client_id: client.client_id, redirect_uri: mine, response_type: "code", state: "s", resource, code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256" })}`);
  await other.fill("#email", box.admin.email);
  await other.fill("#password", box.admin.password);
  await other.click("form.login button");
  await other.click("button[value=allow]");
  await eventually(() => code);
  await fetch(base + "/oauth/token", { method: "POST", body: new URLSearchParams({ grant_type: "authorization_code", client_id: client.client_id, code, redirect_uri: mine, code_verifier: verifier, resource }) });
  await other.context().close();
  heard.close();
}
const programs = async () => JSON.stringify(await api("/api/v1/user/agents"));
await job(28, 4, "end the access of a program", async () => {
  if (!(await programs()).includes(`agent ${unique}`)) await connectProgram(`agent ${unique}`);
  await click(rail("Programs"));
  await click(main.getByRole("link", { name: `agent ${unique}` }));
  await click(link("End access"));
  if (await main.locator("form [name=step][value=next]").count()) await main.locator("form [name=step][value=next]").press("Enter");
  await confirmIfAsked();
}, async () => !(await programs()).includes(`agent ${unique}`));

await browser.close();
process.stdout.write(JSON.stringify(found, null, 1));
