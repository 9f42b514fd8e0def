// Drives the interface's description in a real browser and prints what it found
// as one JSON object. Usage: node docs.mjs <base address> <token> <chromium>
// [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, token, executablePath, pictures] = process.argv.slice(2);
const full = process.env.POSTERN_RING === "full";
const found = { axe: {}, console: [], foreign: [], overflow: [], calls: {}, search: {}, curl: "", kept: [], noscript: {}, keyboard: {} };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/status of 4/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}


// The page shows each operation in the same way, and an audit of all of them takes
// most of this program's time: the quick ring audits a page that shows every
// twentieth and those that are open. It is the last thing that a page is used for.
async function check(page, name) {
  if (!full) await page.evaluate(() => [...document.querySelectorAll("details.op:not([open])")].forEach((op, i) => { if (i % 20) op.remove(); }));
  await audit(page, name, found);
}

const picture = async (page, name, fullPage = true) => { if (pictures) await page.screenshot({ path: `${pictures}/docs_${name}.png`, fullPage }); };
const op = (page, id) => page.locator(`details[id="${id}"]`);
async function unfold(page, id) {
  await op(page, id).locator("> summary").click();
  await op(page, id).locator("form.call").waitFor();
}
async function send(page, id) {
  const said = op(page, id).locator(".said");
  await op(page, id).locator("form.call button[type=submit]").click();
  await op(page, id).locator(".said .status").waitFor();
  await page.waitForFunction((id) => !document.getElementById(id).querySelector(".said").hasAttribute("aria-busy"), id);
  return { status: await said.locator(".status").textContent(), notice: await said.locator(".notice").allTextContents(), body: await said.locator("pre.json").textContent(), headers: await said.locator(".head pre").textContent() };
}

// The quick ring looks at the page in one way; the full one in three, and in the
// widest languages.
const looks = { light: {}, ...(full ? { dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 740 }, locale: "de-DE" } } : {}) };

for (const [scheme, options] of Object.entries(looks)) {
  const { context, page } = await open(options);
  await page.goto(base + "/docs");
  await picture(page, scheme);
  await unfold(page, "third_party.deliveries.create");
  await unfold(page, "otep.tracking");
  await page.fill("#token", token);
  await op(page, "otep.tracking").locator("input[required]").fill("SWP100200300");
  found.calls[`tracking ${scheme}`] = await send(page, "otep.tracking");
  await op(page, "otep.tracking").locator(".head summary").click();
  await check(page, scheme);
  await picture(page, scheme + "_open");
  await page.evaluate(() => scrollTo(0, 900));
  await picture(page, scheme + "_view", false);
  await context.close();
}

{ // the widest words
  const { context, page } = await open({ viewport: { width: 360, height: 740 } });
  for (const lang of full ? ["fr", "es", "zh-Hans", "zh-Hant"] : []) {
    await page.goto(`${base}/docs?lang=${lang}`);
    await check(page, lang);
  }
  await context.close();
}

{ // calls: by a good token, a wrong one, none; with a query and with a body
  const { context, page } = await open({});
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(base + "/docs#user.me");
  await op(page, "user.me").locator("form.call").waitFor();
  found.calls.none = await send(page, "user.me");
  await page.fill("#token", "wrong-token");
  found.calls.wrong = await send(page, "user.me");
  await picture(page, "wrong", false);
  await page.fill("#token", token);
  found.calls.good = await send(page, "user.me");
  await picture(page, "good", false);
  await op(page, "user.me").locator("button.curl").click();
  await op(page, "user.me").locator(".copied code").waitFor();
  await page.waitForFunction(() => document.querySelector(".copied").textContent.includes("POSTERN_TOKEN."));
  found.curl = await page.evaluate(() => navigator.clipboard.readText());

  await unfold(page, "user.login");
  await op(page, "user.login").locator("textarea").fill(JSON.stringify({ email: process.env.EMAIL, password: process.env.PASSWORD }));
  found.calls.body = await send(page, "user.login");
  await op(page, "user.login").locator("button.use").click();
  found.calls.used = await send(page, "user.me");

  await page.fill("#token", token);
  await unfold(page, "orders.create");
  const body = op(page, "orders.create").locator("textarea");
  const { scheduled_date, ...order } = JSON.parse(await body.inputValue()); // the example's day may be over
  await body.fill(JSON.stringify({ ...order, order_ref: "DOCS-1" }));
  found.calls.created = await send(page, "orders.create");
  found.calls.twice = await send(page, "orders.create");
  await picture(page, "created", false);

  await page.fill("#token", "");
  await unfold(page, "otep.events");
  await op(page, "otep.events").locator("input[required]").fill("..");
  found.calls.dots = await op(page, "otep.events").locator("form.call").evaluate((f) => f.checkValidity());
  await op(page, "otep.events").locator("input[required]").fill("SWP 1/2?#ü");
  const asked = page.waitForRequest((r) => r.url().includes("/otep/trackings/"));
  await send(page, "otep.events");
  found.calls.path = new URL((await asked).url()).pathname;

  await unfold(page, "third_party.deliveries.open_doors");
  await op(page, "third_party.deliveries.open_doors").locator("input[required][type=text]").fill("64021");
  found.calls.unsure = await op(page, "third_party.deliveries.open_doors").locator("form.call").evaluate((f) => f.checkValidity());

  await page.fill("#token", token);
  found.kept = await page.evaluate((t) => [location.href, document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.documentElement.outerHTML].filter((x) => x.includes(t)), token);
  await check(page, "created");
  await page.reload();
  found.kept.push(...[await page.inputValue("#token")].filter(Boolean));
  await context.close();
}

{ // search
  const { context, page } = await open({});
  await page.goto(base + "/docs");
  const shown = () => page.locator("details.op:visible").count();
  found.search.all = await shown();
  await page.fill("#find", "user.me");
  found.search.one = await shown();
  found.search.count = await page.textContent("#count");
  await page.fill("#find", "POST doors");
  found.search.words = await shown();
  await picture(page, "search");
  await page.fill("#find", "no such thing");
  found.search.none = (await shown()) === 0 && await page.locator("#none").isVisible();
  await page.fill("#find", "");
  found.search.again = await shown();
  await page.fill("#find", "POST doors");
  await check(page, "search");
  await context.close();
}

{ // keyboard only
  const { context, page } = await open({});
  await page.goto(base + "/docs");
  await page.keyboard.press("Tab");
  found.keyboard.skip = await page.evaluate(() => document.activeElement.className);
  await page.focus('details[id="user.me"] > summary');
  await page.keyboard.press("Enter");
  await op(page, "user.me").locator("form.call").waitFor();
  await page.keyboard.press("Tab"); // the answer's members fold
  await page.keyboard.press("Tab");
  found.keyboard.next = await page.evaluate(() => document.activeElement.type);
  await page.keyboard.press("Enter");
  await op(page, "user.me").locator(".status").waitFor();
  found.keyboard.sent = true;
  await context.close();
}

{ // without script
  const { context, page } = await open({ javaScriptEnabled: false });
  await page.goto(base + "/docs");
  found.noscript.shown = await page.locator("details.op:visible").count();
  await op(page, "user.login").locator("> summary").click();
  found.noscript.example = await op(page, "user.login").locator(".try pre").isVisible();
  found.noscript.token = await page.locator("#token").isVisible();
  found.noscript.hint = await page.locator("noscript .notice").isVisible();
  await picture(page, "noscript", false);
  await context.close();
}

await browser.close();
process.stdout.write(JSON.stringify(found));
