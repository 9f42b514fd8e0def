// Lays out a cabinet in a real browser, by keyboard, and prints what came of it as
// one JSON object. Usage: node layout.mjs <base address> <cookies> <languages>
// <chromium> [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, cookies, languages, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [], live: [], saved: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  await context.addCookies(Object.entries(JSON.parse(cookies)).map(([name, value]) => ({ name, value, url: base })));
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/favicon|status of 4/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

async function check(page, name) {
  if (pictures) await page.screenshot({ path: `${pictures}/layout_${name.replaceAll(" ", "_")}.png`, fullPage: true });
  await audit(page, name, found);
}

const drawn = (page) => page.$$eval("#doors .leaf", (list) => list.map((e) => [...e.children].map((x) => x.textContent).join(" ")));

for (const [name, options] of [["light", {}], ["dark telephone", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }]]) {
  const { context, page } = await open(options);
  for (const lang of languages.split(",")) {
    await page.goto(`${base}/console/cabinets/990/layout?lang=${lang}`);
    await check(page, `${lang} ${name}`);
  }
  await context.close();
}

// By keyboard: the first compartment goes to the last place of its column, drawn as
// it is typed, and is saved.
const { context, page } = await open();
await page.goto(`${base}/console/cabinets/990/layout?lang=en`);
await page.focus("#doors a");
await page.keyboard.press("Enter"); // from the drawn door to its fields
await page.focus("#grid-1 [name=column]");
await page.keyboard.press("Control+A");
await page.keyboard.type("2");
await page.keyboard.press("Tab");
await page.keyboard.press("Control+A");
await page.keyboard.type("9");
const labels = await page.$$eval("fieldset.grid", (list) => list.map((e) => [e.querySelector("[data-label]").textContent, e.querySelector("[name=door]").value, "·", e.querySelector("[name=size]").value].join(" ")));
found.live = labels;
await page.focus("#save");
await page.keyboard.press("Enter");
await page.waitForSelector("#saved");
found.saved = await drawn(page);
await check(page, "saved");
await browser.close();
process.stdout.write(JSON.stringify(found));
