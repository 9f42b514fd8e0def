// Presses every key of the console in a real browser and prints those that did not do
// what they are for as one JSON object. Usage: node keymap.mjs <base address> <session>
// <chromium>. The list of orders and that of cabinets have two records and more, the
// first cabinet two doors.
import { chromium } from "playwright-core";

const [base, session, executablePath] = process.argv.slice(2);
const found = { failed: [], console: [], pressed: 0 };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
await context.addCookies([{ name: "postern_session", value: session, url: base }]);
const page = await context.newPage();
page.setDefaultTimeout(60_000);
page.on("console", (m) => { if (m.type() === "error" && !/favicon/.test(m.text())) found.console.push(m.text()); });
page.on("pageerror", (e) => found.console.push(String(e)));

const path = () => new URL(page.url()).pathname + new URL(page.url()).hash;
const press = async (...keys) => { for (const k of keys) { found.pressed++; await page.keyboard.press(k); } };
const open = async (at) => { await page.goto("about:blank"); await page.goto(base + at + (at.includes("#") ? "" : "?lang=en")); };
// holds waits until something is so.
async function holds(name, ask) {
  for (let i = 0; i < 100; i++) {
    if (await Promise.resolve(ask()).catch(() => false)) return;
    await page.waitForTimeout(100);
  }
  found.failed.push(`${name}: at ${path()}, focus on ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 90))}`);
}
const leads = (name, to) => holds(name, () => to.test(path()));
const on = (selector) => () => page.evaluate((s) => document.activeElement.matches(s), selector);

// g and a letter lead to a page, e and m to what waits.
const pages = { "g g": "/console", "g w": "/console/work", "g c": "/console/cabinets", "g p": "/console/parcels", "g o": "/console/orders", "g b": "/console/day", "g d": "/console/drivers", "g m": "/console/chats", "g h": "/console/webhook-urls", "g e": "/console/reports", "g a": "/console/audit", "g s": "/console/settings", e: "/console/work", m: "/console/chats" };
for (const [keys, to] of Object.entries(pages)) {
  await open(to === "/console/reports" ? "/console/orders" : "/console/reports");
  await press(...keys.split(" "));
  await leads(keys, new RegExp(`^${to}$`));
}

// Rows: j, k and the arrow keys move, x chooses, Enter opens, letters act on the row.
await open("/console/orders");
const row = (n) => page.locator(".sheet .rows tbody tr").nth(n);
const focused = (n) => () => row(n).evaluate((r) => r.contains(document.activeElement));
await press("j");
await holds("j", focused(0));
await press("j");
await holds("j again", focused(1));
await press("k");
await holds("k", focused(0));
await press("ArrowDown");
await holds("arrow down", focused(1));
await press("ArrowUp");
await holds("arrow up", focused(0));
await press("x");
await holds("x", () => row(0).locator("input[type=checkbox]").isChecked());
const record = new URL(await row(0).locator("a").first().getAttribute("href"), base).pathname;
await press("Enter");
await leads("Enter", new RegExp(`^${record}$`));
await open("/console/orders");
await press("j", "a");
await leads("a on a row", new RegExp(`^${record}/driver$`));
await open(record);
await press("a");
await leads("a on an order", new RegExp(`^${record}/driver$`));
await press("/");
await holds("/", on("#find"));
await press("Escape");
await holds("Escape leaves a field", on("body"));
await open(record);
await press("s");
await leads("s on an order", new RegExp(`^${record}/hold$`));
await page.locator("main [name='in:reason']").fill("as");
await press("a", "?", "g", "o");
await holds("letters in a field are text", async () => await page.locator("main [name='in:reason']").inputValue() === "asa?go" && path() === `${record}/hold`);
await press("Control+Enter");
await holds("Ctrl+Enter", () => page.locator("form [name=step][value=do]").isVisible());
await open(record);
await press(".");
await holds(".", () => page.locator("details.menu[open] a").first().evaluate((a) => a === document.activeElement));
await press("Escape");
await holds("Escape closes a menu", async () => !await page.locator("details.menu[open]").count());
await open("/console/orders");
await press("f");
await holds("f", on(".filters :is(input, select)"));
for (const [key, at] of [["n", "new"], ["i", "import"]]) {
  await open("/console/orders");
  await press(key);
  await leads(key, new RegExp(`^/console/orders/${at}$`));
}

// The doors of a cabinet.
await open("/console/cabinets");
await press("j", "Enter");
await leads("a cabinet", /^\/console\/cabinets\/\d+$/);
const cabinet = path();
await press("j", "j", "k");
await holds("j on doors", on(".cabview .door:first-child a.leaf"));
await press("Enter");
await leads("Enter on a door", /#door-/);
const drawer = path();
await press("Escape");
await leads("Escape shuts a drawer", /#main$/);
for (const [key, verb] of [["o", "open"], ["b", "(un)?block|clear"]]) {
  await open(drawer);
  await press(key);
  await leads(`${key} in a drawer`, new RegExp(`^${cabinet}/(${verb})$`));
}
await open(cabinet);
await press("j", "o");
await leads("o on a door", new RegExp(`^${cabinet}/open$`));

// All keys, and the switch that turns single ones off.
await open("/console/orders");
await press("?");
await holds("?", () => page.locator("dialog#keys[open]").getByText("Cabinets").isVisible());
await press("Escape");
await holds("Escape closes the keys", async () => !await page.locator("dialog#keys").isVisible());
await page.getByRole("button", { name: "Keys" }).click();
await page.getByRole("checkbox", { name: /Single keys/ }).uncheck();
await press("Escape");
await press("n", "?", "j");
await page.waitForTimeout(500);
await holds("keys that are off", async () => path() === "/console/orders" && !await page.locator("dialog#keys").isVisible() && await on("body, button")());
await page.getByRole("button", { name: "Keys" }).click();
await page.getByRole("checkbox", { name: /Single keys/ }).check();
await press("Escape", "n");
await leads("keys that are on again", /\/new$/);

await browser.close();
process.stdout.write(JSON.stringify(found));
