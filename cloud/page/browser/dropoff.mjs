// Has a sender look at a drop-off and cancel it in a real browser, and prints what was found
// as one JSON object. Usage: node dropoff.mjs <base address> <path> <key> <chromium> [folder
// for pictures]. OTHER and OTHER_KEY are the path and key of another drop-off.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, path, key, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options, at = path, by = key) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, ...options });
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/Failed to load resource/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  await page.goto(`${base}${at}?k=${by}`);
  return { context, page };
}

const look = async (page, name) => {
  await audit(page, name, found);
  if (pictures) await page.screenshot({ path: `${pictures}/dropoff-${name.replaceAll(" ", "-")}.png`, fullPage: true });
};

for (const [name, options] of Object.entries({ phone: {}, dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } }, german: { locale: "de-DE" }, chinese: { locale: "zh-TW" } })) {
  const { context, page } = await open(options);
  await look(page, name);
  found.address = page.url().slice(base.length);
  await context.close();
}

{ // by the keyboard
  const { context, page } = await open({});
  found.hidden = !(await page.isVisible("#cancel button"));
  await page.focus("#cancel summary");
  await page.keyboard.press("Enter");
  await look(page, "question");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[data-state=cancelled]");
  found.keyboard = await page.textContent("[data-state] [role=status]");
  await look(page, "cancelled");
  await context.close();
}

{ // without script
  const { context, page } = await open({ javaScriptEnabled: false }, process.env.OTHER, process.env.OTHER_KEY);
  await page.click("#cancel summary");
  await page.click("#cancel button");
  found.noscript = await page.textContent("[data-state] [role=status]");
  await context.close();
}

await browser.close();
console.log(JSON.stringify(found));
