// Makes a passkey in a real browser with a virtual authenticator, signs in with it, and
// prints what came of it as one JSON object. Usage: node passkey.mjs <base address>
// <email> <password> <chromium> [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, email, password, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [], made: null, entered: null, keyboard: null, refused: false, hidden: false };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/favicon|status of 40/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

// looks are the ways in which each page is looked at.
const looks = [["desk", { width: 1280, height: 900 }, "light"], ["dark", { width: 1280, height: 900 }, "dark"], ["telephone", { width: 360, height: 740 }, "light"], ["dark telephone", { width: 360, height: 740 }, "dark"]];

async function check(page, name) {
  for (const [look, size, colorScheme] of looks) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    if (pictures) await page.screenshot({ path: `${pictures}/passkey_${name}_${look}.png`.replaceAll(" ", "_"), fullPage: true });
    await audit(page, `${name} ${look}`, found);
  }
  await page.setViewportSize(looks[0][1]);
}

async function login(page) {
  await page.goto(`${base}/console/login`);
  await page.fill("#email", email);
  await page.fill("#password", password);
  await Promise.all([page.waitForURL(`${base}/console`), page.click("form:not([data-passkey]) button[type=submit]")]);
}

const { context, page } = await open({});
const cdp = await context.newCDPSession(page);
await cdp.send("WebAuthn.enable");
await cdp.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });

await page.goto(`${base}/console/login`);
await check(page, "login");
await page.goto(`${base}/password-forgotten?lang=de`);
await check(page, "forgotten");
await page.goto(`${base}/console/login?lang=en`);
await login(page);
await page.goto(`${base}/account`);
await page.click("section[aria-labelledby=h-passkeys] details summary");
await page.fill("#password-passkey", password);
await page.click("section[aria-labelledby=h-passkeys] details button[type=submit]");
await page.fill("#passkey-name", "My phone");
await check(page, "name");
await page.click("form[data-passkey] button");
await page.waitForSelector("#done");
found.made = await page.textContent("section[aria-labelledby=h-passkeys] li strong");
await check(page, "account");

async function out() {
  await page.goto(`${base}/account`);
  await page.click("header form button");
  await page.goto(`${base}/console/login`);
}
await out();
await Promise.all([page.waitForURL(`${base}/console`), page.click("#passkey")]);
found.entered = new URL(page.url()).pathname;
await out();
await page.focus("#password");
for (let i = 0; i < 3 && (await page.evaluate(() => document.activeElement.id)) !== "passkey"; i++) await page.keyboard.press("Tab");
await Promise.all([page.waitForURL(`${base}/console`), page.keyboard.press("Enter")]);
found.keyboard = new URL(page.url()).pathname;
await page.goto(`${base}/account`);
await page.click("section[aria-labelledby=h-passkeys] li form button");
await page.waitForSelector("#done");
await out();
await page.click("#passkey");
await page.waitForSelector("#problem");
found.refused = new URL(page.url()).pathname === "/console/login";
await context.close();

const plain = await open({ javaScriptEnabled: false });
await plain.page.goto(`${base}/console/login`);
found.hidden = !(await plain.page.isVisible("#passkey"));
await browser.close();
console.log(JSON.stringify(found));
