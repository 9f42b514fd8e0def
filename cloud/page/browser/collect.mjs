// Has a recipient collect a parcel in a real browser and prints what was found as one JSON
// object. Usage: node collect.mjs <base address> <path> <key> <chromium> [folder for
// pictures]. TOKEN is the on-site token.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, path, key, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, ...options });
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/Failed to load resource/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  await page.goto(`${base}${path}?k=${key}`);
  return { context, page };
}

const look = async (page, name) => {
  await audit(page, name, found);
  if (pictures) await page.screenshot({ path: `${pictures}/collect-${name.replaceAll(" ", "-")}.png`, fullPage: true });
};

for (const [name, options] of Object.entries({ phone: {}, dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } }, german: { locale: "de-DE" }, chinese: { locale: "zh-TW" } })) {
  const { context, page } = await open(options);
  await look(page, name);
  await context.close();
}

{ // the browser gives no position
  const { context, page } = await open({});
  await page.click("form[data-locate] button");
  await page.waitForSelector("[data-problem]:not([hidden])");
  found.refused = await page.isVisible("#on-site");
  await look(page, "refused");
  await context.close();
}

{ // one from far away
  const { context, page } = await open({ permissions: ["geolocation"], geolocation: { latitude: 43.7, longitude: -79.3849 } });
  await page.click("form[data-locate] button");
  await page.waitForSelector("#collect-problem");
  found.far = await page.textContent("#collect-problem");
  await look(page, "far");
  await context.close();
}

{ // before the locker
  const { context, page } = await open({ permissions: ["geolocation"], geolocation: { latitude: 43.6447, longitude: -79.385 } });
  await page.click("form[data-locate] button");
  await page.waitForSelector(".collect [role=status]");
  found.near = await page.textContent(".collect [role=status]");
  await look(page, "near");
  await context.close();
}

{ // without script
  const { context, page } = await open({ javaScriptEnabled: false });
  found.hidden = !(await page.isVisible("form[data-locate]"));
  await page.fill("#on-site", process.env.TOKEN);
  await page.click("#on-site + button");
  found.noscript = await page.textContent("#collect-problem, .collect [role=status]");
  await context.close();
}

{ // another person collects: all by the keyboard
  const { context, page } = await open({});
  await page.focus("#handover-name");
  await page.keyboard.type("  ");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#handover-problem");
  await look(page, "not handed");
  await page.focus("#handover-name");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Sam Smith");
  await page.keyboard.press("Tab");
  await page.keyboard.type("+14165550199");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector("button[value=take_back]");
  found.handed = await page.textContent("[aria-labelledby=handover] .digits");
  await look(page, "handed");
  await page.focus("button[value=take_back]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#handover-name");
  found.back = await page.textContent("[aria-labelledby=collect] .digits");
  await look(page, "taken back");
  await context.close();
}

await browser.close();
console.log(JSON.stringify(found));
