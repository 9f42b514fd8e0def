// Opens generated pages in a real browser and prints what is wrong with them as one
// JSON object. Usage: node nouns.mjs <base address> <session> <paths> <languages>
// <chromium> [folder for pictures]. Paths are parted by spaces.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, session, paths, forms, languages, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
let at = "";

async function open(options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  await context.addCookies([{ name: "postern_session", value: session, url: base }]);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/favicon/.test(m.text())) found.console.push(`${at}: ${m.text()}`); });
  page.on("pageerror", (e) => found.console.push(`${at}: ${e}`));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

async function visit(page, path, lang, name) {
  at = `${name} ${lang} ${path}`;
  await page.goto(`${base}${path}${path.includes("?") ? "&" : "?"}lang=${lang}`);
  if (pictures) await page.screenshot({ path: `${pictures}/${at.replaceAll(/[^a-zA-Z0-9]+/g, "_")}.png`, fullPage: true });
  await audit(page, at, found);
  if (found.axe[at].length) console.error(at, found.axe[at]);
}

for (const width of [390, 1440]) {
  for (const colorScheme of ["light", "dark"]) {
    const { context, page } = await open({ viewport: { width, height: 900 }, colorScheme });
    for (const path of paths.split(" ")) await visit(page, path, "en", `${width} ${colorScheme}`);
    if (width === 390 && colorScheme === "dark") {
      for (const path of forms.split(" ")) await visit(page, path, "en", `${width} ${colorScheme}`);
    }
    await context.close();
  }
}
const { context, page } = await open({ viewport: { width: 320, height: 640 } });
for (const lang of languages.split(" ")) {
  for (const path of paths.split(" ").filter((p) => lang === "de" || p.split("/").length === 3)) await visit(page, path, lang, "320 light");
}
await context.close();
await browser.close();
process.stdout.write(JSON.stringify(found));
