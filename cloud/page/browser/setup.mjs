// Goes through the first start in a real browser, by keyboard and without script,
// and prints what came of it as one JSON object. Usage: node setup.mjs <base
// address> <one-time value> <chromium> [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, key, executablePath, pictures] = process.argv.slice(2);
// The quick ring looks at the language with the longest words alone.
const languages = process.env.POSTERN_RING === "full" ? ["en", "zh-Hans", "zh-Hant", "fr", "de", "es"] : ["de"];
const found = { axe: {}, console: [], foreign: [], overflow: [], ended: null, scan: false };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/favicon|status of 4/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

async function check(page, name) {
  if (pictures) await page.screenshot({ path: `${pictures}/setup_${name.replaceAll(" ", "_")}.png`, fullPage: true });
  await audit(page, name, found);
}

// The form in every language, on a telephone, dark, and with mistakes.
const look = await open({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
await look.page.goto(`${base}/setup?key=${key}`);
for (const lang of languages) {
  await look.page.goto(`${base}/setup?lang=${lang}`);
  await check(look.page, `form ${lang}`);
}
await look.page.goto(`${base}/setup?key=not-valid`);
await check(look.page, "expired");
await look.context.close();

// A keyboard is enough, and no script.
const plain = await open({ javaScriptEnabled: false });
await plain.page.goto(`${base}/setup?key=${key}`);
await plain.page.focus("#business");
for (const text of ["Harbour Lockers", "", "Cana", "Ada Moreau", "ada@harbour.example", "short"]) {
  await plain.page.keyboard.type(text);
  await plain.page.keyboard.press("Tab");
}
await plain.page.keyboard.press("Enter");
await plain.page.waitForSelector("#password-problem");
await plain.page.fill("#password", "a long enough password");
await plain.page.press("#password", "Enter");
await plain.page.waitForURL("**/setup/cabinet");
found.ended = new URL(plain.page.url()).pathname;
const session = await plain.context.cookies();
await plain.context.close();

// With script again, in the same session: the audit needs it.
for (const [name, options] of [["light", {}], ["dark telephone", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }]]) {
  const { context, page } = await open(options);
  await context.addCookies(session);
  for (const lang of languages) {
    await page.goto(`${base}/setup/cabinet?lang=${lang}`);
    await check(page, `cabinet ${lang} ${name}`);
    await page.fill("#device_name", `Pier ${lang}`);
    await page.fill("#device_code", `P-${lang}-${name[0]}`);
    await page.click("main form.card button");
    await page.waitForSelector("#enrolment");
    await check(page, `enrolment ${lang} ${name}`);
    const colours = await page.evaluate(() => [".qr-ground", ".qr-ink"].map((s) => getComputedStyle(document.querySelector(s)).fill));
    found.scan = colours.join() === "rgb(255, 255, 255),rgb(0, 0, 0)";
  }
  await page.goto(`${base}/setup/cabinet?lang=en`);
  await check(page, `waiting ${name}`);
  await page.goto(`${base}/setup?key=${key}`);
  await check(page, `done ${name}`);
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(found));
