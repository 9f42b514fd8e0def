// Drives the protocol's description in a real browser and prints what it found
// as one JSON object. Usage: node guide.mjs <base address> <chromium> [folder
// for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [], asked: [], verdict: {}, noscript: {}, keyboard: {} };
const guide = "/api/otep-guide";
const paths = ["", "/spec", "/codebook", "/examples", "/validate", "/vocab", "/code-lists/OtepEventCode"];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

const check = (page, name) => audit(page, name, found);

const picture = async (page, name) => { if (pictures) await page.screenshot({ path: `${pictures}/guide_${name}.png`, fullPage: true }); };
const fileName = (path) => path.replaceAll("/", "_") || "_overview";

for (const [scheme, options] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 740 }, locale: "de-DE" } })) {
  const { context, page } = await open(options);
  for (const path of paths) {
    await page.goto(base + guide + path);
    await check(page, `${path} ${scheme}`);
    await picture(page, scheme + fileName(path));
  }
  await context.close();
}

{ // the longest words and the widest signs
  const { context, page } = await open({ viewport: { width: 360, height: 740 } });
  for (const lang of ["fr", "es", "zh-Hans", "zh-Hant"]) {
    await page.goto(`${base}${guide}?lang=${lang}`);
    await check(page, `overview ${lang}`);
  }
  await context.close();
}

{ // the validator, with script
  const { context, page } = await open({ locale: "de-DE" });
  page.on("request", (r) => { if (r.method() === "POST") found.asked.push(new URL(r.url()).pathname); });
  await page.goto(base + guide);
  await page.click("#checker button");
  await page.waitForSelector(".findings.bad li");
  found.verdict.word = await page.textContent(".seal .word");
  found.verdict.paths = await page.locator(".findings .at code").allTextContents();
  found.verdict.messages = await page.locator(".findings .what").allTextContents();
  found.verdict.hints = await page.locator(".findings .hint").allTextContents();
  await check(page, "verdict");
  await picture(page, "verdict");
  await page.click("[data-sample] >> nth=1");
  await page.click("#checker button");
  await page.waitForSelector(".seal.yes");
  found.verdict.good = await page.textContent(".seal .word");
  await picture(page, "verdict_good");
  await page.fill("#timeline", "{no json");
  await page.click("#checker button");
  await page.waitForSelector("#verdict .notice");
  found.verdict.notice = await page.textContent("#verdict .notice");
  await context.setOffline(true);
  await page.click("#checker button");
  await page.waitForFunction((was) => document.querySelector("#verdict .notice")?.textContent !== was, found.verdict.notice);
  found.verdict.offline = await page.textContent("#verdict .notice");
  found.console = found.console.filter((m) => !/Failed to load resource/.test(m)); // the two refusals above
  await context.close();
}

{ // the validator, without
  const { context, page } = await open({ javaScriptEnabled: false });
  await page.goto(base + guide);
  await page.click("#checker button");
  await page.waitForURL(base + guide + "/validate#verdict");
  found.noscript.word = await page.textContent(".seal .word");
  found.noscript.paths = await page.locator(".findings .at code").allTextContents();
  found.noscript.kept = (await page.inputValue("#timeline")).includes("not_a_code");
  await page.click("[data-sample] >> nth=1");
  await page.click("#checker button");
  await page.waitForSelector(".seal.yes");
  await page.click('.findings a, a[href$="/spec"]');
  found.noscript.title = await page.textContent("h1");
  await context.close();
}

{ // keyboard only: check and read without a pointer
  const { context, page } = await open({});
  await page.goto(base + guide + "/validate");
  await page.keyboard.press("Tab");
  found.keyboard.skip = await page.evaluate(() => document.activeElement.className);
  await page.focus("#timeline");
  await page.keyboard.press("Tab");
  found.keyboard.next = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".findings.bad li");
  found.keyboard.checked = true;
  await context.close();
}

{ // on paper
  const { context, page } = await open({});
  await page.emulateMedia({ media: "print" });
  await page.goto(base + guide + "/examples");
  found.clipped = await page.evaluate(() => [...document.querySelectorAll("pre")].filter((p) => p.scrollHeight > p.clientHeight + 1).length);
  await picture(page, "print");
  await context.close();
}

await browser.close();
process.stdout.write(JSON.stringify(found));
