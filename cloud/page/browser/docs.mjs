// Drives the interface's description in a real browser and prints what it found
// as one JSON object. Usage: node docs.mjs <base address> <token> <chromium>
// [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, token, executablePath, pictures] = process.argv.slice(2);
const full = process.env.POSTERN_RING === "full";
const found = { axe: {}, console: [], foreign: [], overflow: [], calls: {}, search: {}, curl: "", kept: [], moved: "", back: "", noscript: {}, keyboard: {} };
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


const check = (page, name) => audit(page, name, found);
const picture = async (page, name, fullPage = true) => { if (pictures) await page.screenshot({ path: `${pictures}/docs_${name}.png`, fullPage }); };
const at = (id) => `${base}/docs/operations/${id}`;
async function visit(page, id) { // in one step from where the page is
  await page.evaluate((path) => { const a = document.querySelector("main.docs .trail a, main.docs .oplist a"); a.href = path; a.click(); }, "/docs/operations/" + id);
  await page.locator(`article[id="${id}"] form.call`).waitFor();
}
async function load(page, id) {
  await page.goto(at(id));
  await page.locator("form.call").waitFor();
}
async function send(page) {
  const said = page.locator(".said");
  await page.locator("form.call button[type=submit]").click();
  await said.locator(".status").waitFor();
  await page.waitForFunction(() => !document.querySelector(".said").hasAttribute("aria-busy"));
  return { status: await said.locator(".status").textContent(), notice: await said.locator(".notice").allTextContents(), body: await said.locator("pre.json").textContent(), headers: await said.locator(".head pre").textContent() };
}

// The quick ring looks at the pages in one way; the full one in three, and in the widest
// languages.
const looks = { light: {}, ...(full ? { dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 740 }, locale: "de-DE" } } : {}) };

for (const [scheme, options] of Object.entries(looks)) {
  const { context, page } = await open(options);
  await page.goto(base + "/docs");
  await picture(page, scheme);
  await check(page, scheme + " list");
  await page.goto(base + "/docs/changelog");
  await check(page, scheme + " changelog");
  await load(page, "otep.tracking");
  await page.fill("#token", token);
  await page.locator("form.call input[required]").fill("SWP100200300");
  found.calls[`tracking ${scheme}`] = await send(page);
  await page.locator(".said .head summary").click();
  await page.locator(".programs summary", { hasText: "Java" }).last().click();
  await check(page, scheme);
  await picture(page, scheme + "_open");
  await context.close();
}

{ // the widest words
  const { context, page } = await open({ viewport: { width: 360, height: 740 } });
  for (const lang of full ? ["fr", "es", "zh-Hans", "zh-Hant"] : []) {
    await page.goto(`${at("orders.create")}?lang=${lang}`);
    await check(page, lang);
  }
  await context.close();
}

{ // calls: by a good token, a wrong one, none; with a query and with a body
  const { context, page } = await open({});
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(base + "/docs#user.me"); // as addresses were
  await page.locator("article[id='user.me'] form.call").waitFor();
  found.moved = new URL(page.url()).pathname;
  found.calls.none = await send(page);
  await page.fill("#token", "wrong-token");
  found.calls.wrong = await send(page);
  await page.fill("#token", token);
  found.calls.good = await send(page);
  await picture(page, "good", false);
  await page.locator("button.curl").click();
  await page.locator(".copied code").waitFor();
  await page.waitForFunction(() => document.querySelector(".copied").textContent.includes("POSTERN_TOKEN."));
  found.curl = await page.evaluate(() => navigator.clipboard.readText());

  await visit(page, "user.login");
  await page.locator("form.call textarea").fill(JSON.stringify({ email: process.env.EMAIL, password: process.env.PASSWORD }));
  found.calls.body = await send(page);
  await page.locator("button.use").click();
  await visit(page, "user.me"); // the token comes along
  found.calls.used = await send(page);
  await page.goBack();
  await page.locator("article[id='user.login'] form.call").waitFor();
  found.back = new URL(page.url()).pathname;

  await page.fill("#token", token);
  await visit(page, "orders.create");
  const body = page.locator("form.call textarea");
  const { scheduled_date, ...order } = JSON.parse(await body.inputValue()); // the example's day may be over
  await body.fill(JSON.stringify({ ...order, order_ref: "DOCS-1" }));
  found.calls.created = await send(page);
  found.calls.twice = await send(page);
  await picture(page, "created", false);

  await page.fill("#token", "");
  await visit(page, "otep.events");
  const number = page.locator("form.call input[required]");
  await number.fill("..");
  found.calls.dots = await page.locator("form.call").evaluate((f) => f.checkValidity());
  await number.fill("SWP 1/2?#ü");
  const asked = page.waitForRequest((r) => r.url().includes("/otep/trackings/"));
  await send(page);
  found.calls.path = new URL((await asked).url()).pathname;

  await visit(page, "third_party.deliveries.open_doors");
  await page.locator("form.call input[required][type=text]").fill("64021");
  found.calls.unsure = await page.locator("form.call").evaluate((f) => f.checkValidity());

  await page.fill("#token", token);
  found.kept = await page.evaluate((t) => [location.href, document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), JSON.stringify(history.state), document.documentElement.outerHTML].filter((x) => x.includes(t)), token);
  await check(page, "doors");
  await page.reload();
  found.kept.push(...[await page.inputValue("#token")].filter(Boolean));
  await context.close();
}

{ // search
  const { context, page } = await open({});
  await page.goto(base + "/docs");
  const shown = () => page.locator("li.op:visible").count();
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
  await context.close();
}

{ // keyboard only
  const { context, page } = await open({});
  await page.goto(base + "/docs");
  await page.keyboard.press("Tab");
  found.keyboard.skip = await page.evaluate(() => document.activeElement.className);
  await page.focus('li[id="user.me"] a');
  await page.keyboard.press("Enter");
  await page.locator("article[id='user.me'] form.call").waitFor();
  found.keyboard.next = await page.evaluate(() => document.activeElement.tagName);
  await page.focus("form.call button[type=submit]");
  await page.keyboard.press("Enter");
  await page.locator(".said .status").waitFor();
  found.keyboard.sent = true;
  await context.close();
}

{ // without script
  const { context, page } = await open({ javaScriptEnabled: false });
  await page.goto(base + "/docs");
  found.noscript.shown = await page.locator("li.op:visible").count();
  await page.fill("#find", "POST login");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=POST/);
  found.noscript.found = await page.locator("li.op:visible").count();
  await page.locator('li[id="user.login"] a').click();
  await page.waitForURL(/operations/);
  found.noscript.example = await page.locator(".try pre").isVisible() && await page.locator(".programs pre").first().isVisible();
  found.noscript.token = await page.locator("#token").isVisible();
  found.noscript.hint = await page.locator("noscript .notice").isVisible();
  await picture(page, "noscript", false);
  await context.close();
}

await browser.close();
process.stdout.write(JSON.stringify(found));
