// A newcomer's path through the workplace in a real browser. A person who has never seen
// it has one sentence for each job, and what the sentence's words stand for; the way is
// found by what is on the screen alone: headings, links, buttons and labels of fields. No
// address is typed but the first. Prints the words that were pressed for each job and
// what the interface answered afterwards, as one JSON object.
// Usage: node newcomer.mjs <sandbox file> <chromium>.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";

const [file, executablePath, only] = process.argv.slice(2);
const box = JSON.parse(readFileSync(file));
const base = box.base_url;
const found = { jobs: [], console: [], failed: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en" })).newPage();
page.setDefaultTimeout(60_000); // the machine may be busy
page.on("console", (m) => { if (m.type() === "error" && !/status of 422|ERR_CONNECTION_REFUSED/.test(m.text())) found.console.push(m.text()); });
page.on("pageerror", (e) => found.console.push(String(e)));

async function up() {
  for (let i = 0; i < 300; i++) {
    if (await fetch(base + "/healthz").then((r) => r.ok, () => false)) return;
    await new Promise((next) => setTimeout(next, 200));
  }
}

async function api(path) {
  await up();
  return (await fetch(base + path, { headers: { Authorization: "Bearer " + box.admin.token } })).json();
}

async function eventually(ask, tries = 25) {
  for (let i = 0; ; i++) {
    const got = await ask();
    if (got || i === tries) return got;
    await new Promise((next) => setTimeout(next, 200));
  }
}

// Words that say nothing about where to go.
const idle = new Set("a an and are at be because by for from have i in is it its me my of on one or say so that the there this to up what which who will with you your".split(" "));

// stems are the words of a text, without endings, that say something.
function stems(text) {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((w) => !idle.has(w)).map((w) => w.replace(/ations?$/, "").replace(/(ies|y)$/, "i").replace(/(ing|ed|es|s|e)$/, ""));
}

// controls are what can be pressed on the screen, in its order, with the words on them.
const pressable = "a[href], button, summary";
async function controls() {
  const words = await page.$$eval(pressable, (all) => all.map((el) => {
    const box = el.getBoundingClientRect();
    const shut = el.closest("details:not([open])");
    const visible = box.width > 2 && box.height > 2 && getComputedStyle(el).visibility === "visible" && !el.disabled && !el.closest("[aria-hidden=true]") && (!shut || el.matches("summary") && el.parentElement === shut) && !el.closest("footer");
    const name = (el.getAttribute("aria-label") || el.innerText || el.textContent).replace(/\s+/g, " ").trim();
    const about = el.closest("tr, li, article, aside, dialog, [aria-labelledby], section, fieldset");
    return { name, visible, kind: el.localName, strong: el.localName === "button" && !el.classList.contains("quiet") && Boolean(el.closest("main")), download: el.hasAttribute("download"), main: Boolean(el.closest("main")), current: el.getAttribute("aria-current") === "page", near: about && el.closest("main") ? about.innerText.slice(0, 120).replace(/\s+/g, " ") : "" };
  }));
  return words.map((w, i) => ({ ...w, i })).filter((w) => w.visible && w.name);
}

// fieldsOf are the labelled fields of the forms of the page, by form.
async function forms() {
  return page.$$eval("main form", (all) => all.map((form, n) => ({
    n,
    fields: [...form.elements].map((el, k) => {
      const box = el.getBoundingClientRect();
      const labels = [...(el.labels ?? [])].map((l) => l.innerText).join(" ") || el.getAttribute("aria-label") || "";
      const group = el.type === "radio" ? el.closest("fieldset")?.querySelector("legend")?.innerText ?? "" : "";
      return { k, kind: el.localName, type: el.type, label: (group + " " + labels).replace(/\s+/g, " ").trim(), value: el.value, required: el.required, options: el.options ? [...el.options].map((o) => o.text.trim()) : [],
        visible: box.width > 2 && box.height > 2 && !el.disabled && !el.closest("details:not([open])") };
    }).filter((f) => f.visible && /input|select|textarea/.test(f.kind) && !/hidden|submit|search/.test(f.type) && f.label),
  })).filter((f) => f.fields.length));
}

// known is what the person knows of a field by its label; undefined: nothing.
function known(job, label) {
  const words = new Set(stems(label));
  let best, most = 0;
  for (const [name, value] of Object.entries(job.knows)) {
    const asked = stems(name), hits = asked.filter((w) => words.has(w)).length;
    if (hits === asked.length && hits > most) [best, most] = [value, hits];
  }
  return best;
}

// fill fills the form that asks most of what the person knows and presses its button.
async function fill(job, filled) {
  let best, most = 0;
  for (const form of await forms()) {
    const answers = form.fields.map((f) => [f, known(job, f.label)]).filter(([f, v]) => v !== undefined);
    if (answers.length > most && !filled.has(page.url() + form.n)) [best, most] = [{ form, answers }, answers.length];
  }
  if (!best) return false;
  filled.add(page.url() + best.form.n);
  const form = page.locator("main form").nth(best.form.n);
  for (const [f, value] of best.answers) {
    const el = (await form.evaluateHandle((form, k) => form.elements[k], f.k)).asElement();
    if (f.kind === "select") {
      const text = f.options.find((o) => o === value) ?? f.options.find((o) => o.includes(value));
      if (!text) continue;
      await el.selectOption({ label: text });
    } else if (f.type === "checkbox" || f.type === "radio") await el.check();
    else await el.fill(value);
    job.path.push(`${f.label} ← ${value}`);
  }
  const buttons = await form.locator("button:visible:not([aria-hidden])").all();
  let choice, score = -1;
  for (const b of buttons) {
    const name = (await b.innerText()).trim(), emphasis = await b.evaluate((el) => !el.classList.contains("quiet") && el.type === "submit");
    const s = overlap(stems(name), new Set(stems(job.say))) + (emphasis ? 2 : 0);
    if (s > score) [choice, score] = [b, s];
  }
  if (!choice) return false;
  job.path.push(`[${(await choice.innerText()).trim()}]`);
  await choice.click();
  return true;
}

const overlap = (words, said) => words.filter((w) => said.has(w)).length;

// tryAgain does what a page asks for whose form was not taken: look again at what changed
// meanwhile, or come back once the cabinet is connected, whose line the demo cuts for some
// seconds. What was filled in and pressed on that page may then be so again.
async function tryAgain(seen) {
  const said = (await page.locator("main [role=alert]").allInnerTexts()).join(" ");
  const offline = said.includes("The cabinet is offline");
  if (!offline && !said.includes("Something changed since")) return;
  log("again", said);
  if (offline) await eventually(async () => (await api("/api/v1/smart-lockers/devices")).devices.every((d) => d.status === "online" || !d.last_seen_at), 150);
  for (const what of [...seen]) if (what.startsWith(page.url())) seen.delete(what);
}

// step does the next thing that the sentence's words lead to; false: nothing does.
async function step(job, seen) {
  await page.waitForLoadState("load");
  await tryAgain(seen);
  if (await fill(job, seen)) return true;
  const said = new Set(stems(job.say)), list = await controls();
  const common = new Map();
  for (const c of list) for (const w of new Set(stems(c.name))) common.set(w, (common.get(w) ?? 0) + 1);
  let best, most = 0;
  for (const c of list) {
    const words = stems(c.name), hits = words.filter((w) => said.has(w));
    let score = hits.reduce((sum, w) => sum + 1 + 1 / common.get(w), 0) * hits.length / words.length; // what says nothing else is meant
    if (hits.length) score += 0.4 * overlap([...new Set(stems(c.near))], said) + (c.main ? 0.5 : 0) + (c.strong ? 3 : 0);
    if (!hits.length || c.current || c.download || seen.has(page.url() + c.name + c.near)) continue;
    if (score > most) [best, most] = [c, score];
  }
  // What has a number or a name is looked for when the screen does not show it.
  const sought = job.find && !job.searched && !list.some((c) => c.name.includes(job.find)) && !(await page.locator("main").innerText()).includes(job.find);
  if (sought) {
    job.searched = true;
    const field = page.getByRole("searchbox").first();
    job.path.push(`${await field.getAttribute("aria-label") ?? await field.getAttribute("placeholder")} ← ${job.find}`);
    await field.fill(job.find);
    await field.press("Enter");
    return true;
  }
  // What is folded away is looked into when nothing else leads on, or, once, when the screen
  // is about what is sought and does not show what is to be done with it.
  const here = (await page.locator("main h1").first().innerText({ timeout: 1000 }).catch(() => "")).includes(job.find ?? "\n");
  if (!best || here && !seen.has("folded at " + page.url()) && !list.some((c) => stems(c.name).includes(stems(job.say)[0]))) {
    seen.add("folded at " + page.url());
    const folded = list.find((c) => c.kind === "summary" && c.main && !seen.has(page.url() + c.name + c.near));
    best = folded ?? best;
    if (!best) return false;
  }
  seen.add(page.url() + best.name + best.near);
  job.path.push(best.name.slice(0, 60));
  log("press", best.name, "|", best.near);
  if (!await (await page.$$(pressable))[best.i].click({ timeout: 20_000 }).then(() => true, (e) => log(e))) job.path.push("(did not work)");
  return true;
}

// job does one: from Home, with at most twelve steps.
const log = (...what) => process.env.NEWCOMER_LOG && console.error(new Date().toISOString().slice(11, 19), ...what);
async function job(say, { find, knows = {}, judge }) {
  if (only && !say.includes(only)) return;
  const it = { say, find, knows, path: [], done: false };
  let lost = "";
  for (let tries = 0; tries < 3 && !it.done; tries++) {
    Object.assign(it, { path: [], searched: false });
    lost = "";
    await up();
    try {
      if (tries) await page.reload().catch(() => {});
      await page.getByRole("navigation").getByRole("link", { name: "Home" }).first().click();
      const seen = new Set();
      for (let n = 0; n < 12 && !it.done; n++) {
        if (!(await step(it, seen))) break;
        await page.waitForLoadState("load");
        it.done = Boolean(await eventually(judge, 2));
      }
      if (!it.done && page.url().startsWith("chrome-error")) throw new Error("the cloud went away: chrome-error");
      it.done ||= Boolean(await eventually(judge));
      break;
    } catch (e) {
      lost = String(e).slice(0, 300);
      if (!/ERR_CONNECTION|ERR_EMPTY|fetch failed|ECONN|chrome-error/.test(lost + page.url())) break;
    }
  }
  log(say, it.path.join(" → "), it.done, lost);
  found.jobs.push({ say, path: it.path, done: it.done });
  if (!it.done) found.failed.push(`${say} ${it.path.join(" → ")} ${lost} at ${page.url()}: ${(await page.locator("main").innerText({ timeout: 1000 }).catch(() => "")).slice(0, 500)}`);
}

for (let tries = 0; ; tries++) { // the demo kills its own cloud now and then
  await up();
  try {
    await page.goto(base + "/console");
    await page.getByLabel("Email").fill(box.admin.email);
    await page.getByLabel("Password", { exact: true }).fill(box.admin.password);
    await page.locator("main").getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation").getByRole("link", { name: "Home" }).first().waitFor({ timeout: 20_000 });
    break;
  } catch (e) {
    if (tries === 3) throw e;
  }
}
log("signed in");

const unique = Date.now().toString(36);
const screen = (text) => async () => (await page.locator("main").innerText({ timeout: 1000 }).catch(() => "")).includes(text);
const yard = (await api("/api/v1/smart-lockers/devices")).devices.find((d) => d.device_name === "Old Yard");
const grids = async () => (await api(`/api/v1/smart-lockers/devices/${yard.device_id}`)).device.grids;
const free = (await grids()).filter((g) => g.state === "free").reverse();
const audit = async (word) => JSON.stringify(await api("/api/v1/audit")).includes(word);
const parcel = (await api("/api/v1/smart-lockers/deliveries")).deliveries[0];
const orders = async (q) => (await api("/api/v1/orders?keyword=" + q)).orders ?? [];
const person = { Name: "Ann Bell", Street: "1 King St W", City: "Toronto", Province: "ON", "Postal code": "M5H 1A1", Country: "Canada", Telephone: "+14165550188" };

await job(`Create a new order for a parcel of 2 kg with the reference NEW-${unique}.`, { knows: { Weight: "2", "Your reference": `NEW-${unique}`, ...person }, judge: async () => (await orders(`NEW-${unique}`)).length === 1 });
const made = (await orders(`NEW-${unique}`))[0];
const order = async () => (await orders(`NEW-${unique}`))[0];
await job(`Put the order ${made?.tracking_number} on hold: its address is in doubt.`, { find: made?.tracking_number, knows: { Reason: "address" }, judge: async () => (await order())?.order_status_id === 3 });
await job(`Release the order ${made?.tracking_number}.`, { find: made?.tracking_number, knows: { Reason: "checked" }, judge: async () => (await order())?.order_status_id !== 3 });
await job(`Assign the order ${made?.tracking_number} to the driver Sam Lee.`, { find: made?.tracking_number, knows: { Driver: "Sam Lee" }, judge: async () => (await order())?.driver_id > 0 });
await job(`Block compartment ${free[0].pickup_locker_code} of the cabinet Old Yard: it is dirty.`, { find: "Old Yard", knows: { Reason: "dirty" }, judge: async () => (await grids()).some((g) => g.grid_id === free[0].grid_id && g.state === "blocked") });
await job(`Open the door of compartment ${free[1].pickup_locker_code} of the cabinet Old Yard to look inside; a person stands there.`, { find: "Old Yard", knows: { Reason: `look ${unique}`, "person at the doors": "Yes" }, judge: async () => JSON.stringify(await api(`/api/v1/smart-lockers/devices/${yard.device_id}/door-reports`)).includes(`look ${unique}`) });
await job(`See to an item of the work list.`, { judge: async () => /"owner_name":"[^"]/.test(JSON.stringify(await api("/api/v1/work-items"))) });
await job(`What happened to the parcel ${parcel.delivery_number}?`, { find: parcel.delivery_number, judge: screen("What happened") });
await job(`Add a cabinet Gate ${unique} with the code GATE-${unique.toUpperCase()}.`, { knows: { Name: `Gate ${unique}`, Code: `GATE-${unique.toUpperCase()}` }, judge: async () => JSON.stringify(await api("/api/v1/smart-lockers/devices")).includes(`Gate ${unique}`) });
await job(`Create an API key with the name key ${unique}.`, { knows: { Name: `key ${unique}` }, judge: async () => JSON.stringify(await api("/api/v1/user/api-keys")).includes(`key ${unique}`) });
await job(`Edit the settings: the correction window is 17 minutes.`, { knows: { "corrections minutes": "17" }, judge: async () => (await api("/api/v1/settings")).settings?.correction_window_minutes === 17 });
const asked = (await eventually(async () => (await api("/api/v1/order-chat/conversations")).conversations?.[0], 300)).tracking_number;
await job(`Write hello in the messages of the order ${asked}.`, { find: asked, knows: { Message: `hello ${unique}` }, judge: screen(`hello ${unique}`) });
await job(`Invite Ida Roth to the people of the business, as an employee.`, { knows: { Name: "Ida Roth", mail: `ida-${unique}@acme.example`, "Account type": "Employee" }, judge: async () => JSON.stringify(await api("/api/v1/invitations")).includes(`ida-${unique}`) });

await browser.close();
process.stdout.write(JSON.stringify(found, null, 1));
