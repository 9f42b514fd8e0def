// Lets a program connect in a real browser, as its user does, and prints what
// came of it as one JSON object. Usage: node consent.mjs <base address> <email>
// <password> <chromium> [folder for pictures].
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, email, password, executablePath, pictures] = process.argv.slice(2);
const found = { axe: {}, console: [], foreign: [], overflow: [], tokens: {}, refused: null, framed: null, keyboard: null };

// Where the program hears of the answer. It sends its user on to another site,
// as some do; and it serves a page that frames ours.
const heard = [];
const program = createServer((req, res) => {
  const url = new URL(req.url, "http://127.0.0.1");
  if (url.pathname === "/frame") return res.writeHead(200, { "Content-Type": "text/html" }).end(`<iframe src="${url.searchParams.get("of").replaceAll('"', "&quot;")}"></iframe>`);
  if (url.pathname === "/cb") {
    heard.push(url.searchParams);
    return res.writeHead(302, { Location: `http://localhost:${program.address().port}/done` }).end();
  }
  res.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>done</title>done");
});
await new Promise((r) => program.listen(0, "127.0.0.1", r));
const mine = `http://127.0.0.1:${program.address().port}`;
const elsewhere = `http://localhost:${program.address().port}`;

const client = await (await fetch(base + "/oauth/register", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ client_name: "A desktop agent with quite a long name that has to wrap somewhere on a telephone", redirect_uris: ["http://127.0.0.1/cb"] }) })).json();
const resource = base + "/mcp";

function request() {
  const verifier = randomBytes(48).toString("base64url");
  const q = new URLSearchParams({ client_id: client.client_id, redirect_uri: mine + "/cb", response_type: "code", state: randomBytes(8).toString("hex"), resource,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256" });
  return { verifier, q, url: `${base}/oauth/authorize?${q}` };
}

async function exchange(params, r) {
  if (params.get("state") !== r.q.get("state") || params.get("iss") !== base) return "state or iss is wrong";
  const answer = await fetch(base + "/oauth/token", { method: "POST", body: new URLSearchParams({ grant_type: "authorization_code", client_id: client.client_id, code: params.get("code") ?? "", redirect_uri: mine + "/cb", code_verifier: r.verifier, resource }) });
  return (await answer.json()).scope ?? "none";
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/favicon|status of 40/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => { if (![base, mine, elsewhere].some((b) => r.url().startsWith(b)) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url()); });
  return { context, page };
}

async function check(page, name, script = true) {
  if (pictures) await page.screenshot({ path: `${pictures}/consent_${name.replaceAll(" ", "_")}.png`, fullPage: true });
  if (!script) return;
  await audit(page, name, found);
}

const looks = { light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 740 }, locale: "de-DE" }, chinese: { viewport: { width: 360, height: 740 }, locale: "zh-TW" }, noscript: { javaScriptEnabled: false } };
for (const [name, options] of Object.entries(looks)) {
  const { context, page } = await open(options);
  const r = request(), script = name !== "noscript";
  await page.goto(r.url);
  await check(page, `login ${name}`, script);
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.click("form.login button");
  await page.waitForSelector("form.decide");
  await check(page, `consent ${name}`, script);
  await page.click("button[value=allow]");
  await page.waitForURL(elsewhere + "/done");
  found.tokens[name] = await exchange(heard.at(-1), r);
  if (name === "light") { // the login ended with the decision
    await page.goto(request().url);
    await page.waitForSelector("form.login");
    await page.goto(`${base}/oauth/authorize?client_id=nobody`);
    await check(page, "refusal");
  }
  await context.close();
}

{ // by keyboard: the choice that is offered first has the focus among the choices, and Refuse refuses
  const { context, page } = await open({});
  const r = request();
  await page.goto(r.url);
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.keyboard.press("Enter");
  await page.waitForSelector("form.decide");
  for (let i = 0; i < 12 && found.keyboard === null; i++) {
    await page.keyboard.press("Tab");
    found.keyboard = await page.evaluate(() => document.activeElement.name === "profile" ? document.activeElement.value : null);
  }
  await page.click("button[value=refuse]");
  await page.waitForURL(elsewhere + "/done");
  found.refused = heard.at(-1).get("error");
  await context.close();
}

{ // another site's page cannot show ours inside of itself
  const { context, page } = await open({});
  const errors = found.console.length;
  await page.goto(`${mine}/frame?of=${encodeURIComponent(request().url)}`);
  await page.waitForTimeout(500);
  found.framed = await page.frames()[1].evaluate(() => document.querySelector("form") !== null).catch(() => false);
  found.console.splice(errors); // the browser says why
  await context.close();
}

await browser.close();
program.close();
console.log(JSON.stringify(found));
