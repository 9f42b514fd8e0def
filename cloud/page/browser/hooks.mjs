// Drives the guide for receivers of webhooks in a real browser and prints what
// it found as one JSON object. Usage: node hooks.mjs <base address> <chromium>
// [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [], folds: 0, opened: 0, keyboard: false, noscript: false };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

const looks = { light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 740 }, locale: "de-DE" }, chinese: { viewport: { width: 360, height: 740 }, locale: "zh-CN" } };
for (const [name, options] of Object.entries(looks)) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  await page.goto(`${base}/api/webhooks-guide`);
  if (pictures) await page.screenshot({ path: `${pictures}/hooks_${name}.png`, fullPage: true });
  if (name === "light") { // a summary opens by keyboard
    await page.focus("#code-python");
    await page.keyboard.press("Enter");
    found.keyboard = await page.evaluate(() => document.getElementById("code-python").closest("details").open);
  }
  await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = true; });
  found.folds = await page.locator("details").count();
  found.opened = await page.locator("details pre").evaluateAll((list) => list.filter((e) => e.offsetHeight > 0).length);
  await audit(page, name, found);
  await context.close();
}

{
  const context = await browser.newContext({ javaScriptEnabled: false });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  await page.goto(`${base}/api/webhooks-guide`);
  await page.click("#code-java");
  found.noscript = await page.isVisible("text=static boolean verify");
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(found));
