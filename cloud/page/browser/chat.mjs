// Has two people talk about an order in a real browser, staff in the console and
// the recipient at the tracking page, and prints what it found as one JSON
// object. Usage: node chat.mjs <base address> <chromium> [folder for pictures].
// SANDBOX holds the accounts; a GET of CONTROL with /cut cuts the wire to the
// broker, with /mend mends it, and with /talk/ORDER has a lot said.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [base, executablePath, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const box = JSON.parse(process.env.SANDBOX);
const found = { axe: {}, console: [], foreign: [], overflow: [], tokens: [], script: {}, unsent: {}, closed: {}, noscript: {}, order: [], forged: [], renewed: 0, asked: 0 };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function rest(method, path, token, body) {
  const form = body instanceof FormData;
  const answer = await fetch(base + path, { method, headers: { Authorization: "Bearer " + token, ...(form ? {} : { "Content-Type": "application/json" }) }, body: form ? body : body && JSON.stringify(body) });
  const out = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(out)}`);
  return out;
}
const admin = (method, path, body) => rest(method, "/api/v1" + path, box.admin.token, body);

async function newOrder() {
  const { order } = await admin("POST", "/client/orderCreate", { type: "D", packages: [{ weight: 2.5 }], recipient: { name: "Ada Moreau", phone: "+14165550123", address_line1: "100 Queen St W", city: "Toronto", province: "ON", postal_code: "M5H 2N2", country: "CA" } });
  return { number: order.tracking_number, id: order.order_id };
}
const say = (order, body) => admin("POST", `/order-chat/orders/${order.id}/messages`, typeof body === "string" ? { text: body } : body);

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/status of 4\d\d|ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_CONNECTION|WebSocket connection to|Failed to load resource/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => {
    if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url());
    if (r.url().includes("oct_")) found.tokens.push(r.url());
  });
  page.on("websocket", (w) => { if (w.url().includes("oct_")) found.tokens.push(w.url()); });
  return { context, page };
}
async function signIn(options) {
  const x = await open(options);
  await x.page.goto(base + "/console/login");
  await x.page.fill("#email", box.admin.email);
  await x.page.fill("#password", box.admin.password);
  await x.page.click("form.login button");
  await x.page.waitForURL(base + "/console");
  return x;
}
const staffPath = (o) => `${base}/console/chats/${o.id}`;
const trackPath = (o) => `${base}/track/${o.number}`;
const live = (page, way = "live") => page.waitForSelector(`.chat[data-now=${way}]`, { timeout: 40000 });
const hears = (page, text) => page.locator(".said li .words", { hasText: text }).first().waitFor({ timeout: 20000 });
const text = async (place) => (await place.textContent()).replace(/\s+/g, " ").trim();
const last = (page) => page.locator(".said li").last();
async function write(page, what) {
  await page.fill("#chat-text", what);
  await page.click("[data-write] [value=send]");
}
const control = (what) => fetch(process.env.CONTROL + what);

async function check(page, name) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  found.axe[name] = result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).join(" | ")}`);
  if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1)) found.overflow.push(name);
  if (pictures) await page.screenshot({ path: `${pictures}/chat_${name.replaceAll(" ", "_")}.png`, fullPage: true });
}

await admin("PUT", "/order-chat/settings", { allow_recipient: true, quick_replies: [{ id: "way", text: "I am on my way", audience: "all" }, { id: "inside", text: "Ask the depot", audience: "staff_driver" }] });

{ // two people talk
  const order = await newOrder();
  const staff = await signIn();
  const home = await open();
  await staff.page.goto(staffPath(order));
  await home.page.goto(trackPath(order));
  await live(staff.page);
  await live(home.page);
  await home.page.locator("#chat").scrollIntoViewIfNeeded();
  await staff.page.waitForTimeout(1000); // the first questions are over
  let asked = 0;
  for (const { page } of [staff, home]) page.on("request", (r) => { if (r.method() === "GET" && /\/messages|\/orders\/\d+$|\/api$/.test(r.url())) asked++; });

  await home.page.locator("#chat-text").pressSequentially("<script>");
  await staff.page.waitForFunction(() => document.querySelector("[data-typing]").textContent !== "");
  found.typing = await text(staff.page.locator("[data-typing]"));
  const markup = "<script>window.ran=1</script> <b>I am at the door</b>";
  await write(home.page, markup);
  await hears(staff.page, "I am at the door");
  found.script.text = await text(last(staff.page).locator(".words"));
  found.script.elements = await staff.page.locator(".said script, .said b").count() + await home.page.locator(".said script, .said b").count();
  await staff.page.click("[data-write] [value=way]");
  await hears(home.page, "I am on my way");
  found.quick = await text(last(home.page).locator(".words"));
  await staff.page.waitForSelector(".said li.own [data-status=read]");
  found.read = await text(last(staff.page).locator("[data-status]"));
  found.asked = asked;
  await staff.page.reload();
  found.script.ran = await staff.page.evaluate(() => window.ran === 1) || found.script.elements > 0;
  await live(staff.page);

  await staff.page.check("[name=private]");
  await write(staff.page, "He shouts");
  await hears(staff.page, "He shouts");
  await staff.page.uncheck("[name=private]");
  await write(staff.page, "Thank you");
  await hears(home.page, "Thank you");
  found.private = String(await home.page.locator(".said li", { hasText: "He shouts" }).count());

  // what is changed, and what is no text
  const { message } = await say(order, "At the frnt");
  await hears(home.page, "At the frnt");
  await admin("PATCH", "/order-chat/messages/" + message.message_id, { text: "At the front" });
  await hears(home.page, "At the front");
  found.edited = await text(home.page.locator(`#m${message.message_id} .marks`));
  await admin("DELETE", "/order-chat/messages/" + message.message_id);
  await home.page.waitForSelector(`#m${message.message_id} .gone`);
  found.deleted = await text(home.page.locator(`#m${message.message_id} .gone`));
  await say(order, { location: { latitude: 43.6446, longitude: -79.3849, label: "Side door" } });
  await home.page.locator(".said li", { hasText: "Side door" }).waitFor();
  found.place = await last(home.page).locator("a").getAttribute("href");
  const form = new FormData();
  form.set("order_id", String(order.id));
  form.set("name", "door.png");
  const png = await home.page.evaluate(() => { const c = document.createElement("canvas"); c.width = 3; c.height = 2; c.getContext("2d").fillRect(0, 0, 3, 2); return c.toDataURL("image/png").split(",")[1]; });
  form.set("file", new Blob([Buffer.from(png, "base64")], { type: "image/png" }), "door.png");
  const { attachment } = await rest("POST", "/api/v1/order-chat/attachments", box.admin.token, form);
  await say(order, { attachment_ids: [attachment.attachment_id] });
  await home.page.locator(".said img").waitFor();
  await home.page.locator(".said img").evaluate((x) => x.decode());
  found.picture = await home.page.locator(".said img").evaluate((x) => x.naturalWidth);

  // too long, and nearly
  await staff.page.fill("#chat-text", "x".repeat(1960));
  found.counter = await text(staff.page.locator("[data-count]"));
  await staff.page.fill("#chat-text", "😀".repeat(2010));
  found.over = await text(staff.page.locator("[data-count]"));
  const before = await staff.page.locator(".said li").count();
  await staff.page.click("[data-write] [value=send]");
  await staff.page.waitForTimeout(300);
  found.kept = await staff.page.locator(".said li").count() === before && await staff.page.inputValue("#chat-text") !== "";
  await staff.page.fill("#chat-text", "");

  // without a connection, and with an answer that is lost
  await home.context.setOffline(true);
  await write(home.page, "Is anybody there?");
  await home.page.waitForSelector("[data-problem]:not([hidden])");
  found.unsent = { field: await home.page.inputValue("#chat-text"), notice: await text(home.page.locator("[data-problem]")), button: await text(home.page.locator("[data-write] [value=send]")) };
  await check(home.page, "unsent");
  await home.context.setOffline(false);
  await home.page.click("[data-write] [value=send]");
  await hears(staff.page, "Is anybody there?");
  await home.page.route("**/messages", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    await route.abort();
  });
  await write(home.page, "Said once");
  await home.page.waitForSelector("[data-problem]:not([hidden])");
  await home.page.unroute("**/messages");
  await home.page.click("[data-write] [value=send]");
  await home.page.waitForFunction(() => document.querySelector("#chat-text").value === "");
  await write(home.page, "Over");
  await hears(staff.page, "Over");
  found.offline = await staff.page.locator(".said li .words", { hasText: "Is anybody there?" }).count();
  found.lost = await staff.page.locator(".said li .words", { hasText: "Said once" }).count();

  // the wire to the broker is cut
  await control("/cut");
  await live(staff.page, "poll");
  await live(home.page, "poll");
  for (const what of ["one", "two", "three"]) await write(home.page, what), await hears(home.page, what);
  await hears(staff.page, "three");
  found.order = (await staff.page.locator(".said li .words").allTextContents()).slice(-3);
  found.polled = await staff.page.getAttribute(".chat", "data-now") === "poll";
  await control("/mend");
  await live(staff.page);
  await live(home.page);
  await write(staff.page, "Back again");
  await hears(home.page, "Back again");
  found.mended = await home.page.getAttribute(".chat", "data-now") === "live";

  // credentials end, and are renewed before that
  const short = await open();
  await short.page.route("**/order-chat/token", async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    body.mqtt.expires_at = new Date(Date.now() + 10000).toISOString();
    found.renewed++;
    await route.fulfill({ response: answer, json: body });
  });
  await short.page.goto(trackPath(order));
  await live(short.page);
  await short.page.waitForTimeout(6500);
  await live(short.page);
  await write(staff.page, "Still here");
  await hears(short.page, "Still here");
  await short.context.close();

  // closing
  staff.page.on("dialog", (d) => d.accept());
  await staff.page.click("[data-manage]");
  await staff.page.waitForSelector("[data-closedwords]:not([hidden])");
  await home.page.waitForSelector("[data-closedwords]:not([hidden])");
  found.closed = { recipient: await text(home.page.locator("[data-closedwords]")), staff: await text(staff.page.locator("[data-closedwords]")),
    fieldRecipient: await home.page.locator("#chat-text").isDisabled(), fieldOff: await staff.page.locator("#chat-text").isDisabled(), button: await text(staff.page.locator("[data-manage]")) };
  await check(staff.page, "closed");
  const post = await home.page.request.post(trackPath(order), { form: { text: "Late" } });
  found.closed.status = post.status();
  await home.page.goto(trackPath(order));
  found.closed.after = await home.page.locator(".chat").count();
  await staff.context.close();
  await home.context.close();
}

{ // without script
  const order = await newOrder();
  const staff = await signIn({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  const home = await open({ javaScriptEnabled: false });
  await home.page.goto(trackPath(order));
  const id = await home.page.inputValue("[name=client_message_id]");
  await write(home.page, "Left at the desk?");
  found.noscript.said = await text(last(home.page).locator(".words"));
  await home.page.request.post(trackPath(order), { form: { client_message_id: id, text: "Another text of the same form" } });
  await home.page.request.post(trackPath(order), { form: { client_message_id: id, text: "Left at the desk?" } });
  await home.page.reload();
  found.noscript.times = await home.page.locator(".said li").count();
  await staff.page.goto(base + "/console/chats?unread=1");
  await staff.page.click(`a[href="/console/chats/${order.id}"]`);
  await staff.page.click("[data-unread] button");
  await write(staff.page, "At the desk.");
  await home.page.reload();
  found.noscript.answer = await text(last(home.page).locator(".words"));
  found.noscript.unread = await text(home.page.locator("[data-unread] button"));
  await home.page.click("[data-unread] button");
  await write(home.page, "Thanks!");
  await staff.page.goto(base + "/console/chats");
  found.noscript.listed = await text(staff.page.locator(".chats .unread .ap-pending").first());
  await home.page.fill("#chat-text", "y".repeat(2001));
  await home.page.click("[data-write] [value=send]");
  found.noscript.problem = await text(home.page.locator("[data-problem]"));
  found.noscript.text = String((await home.page.inputValue("#chat-text")).length);
  await staff.context.close();
  await home.context.close();
}

// a long conversation, with everything in it
const full = await newOrder();
const talked = await control("/talk/" + full.id);
if (!talked.ok) throw new Error(await talked.text());
{
  const { context, page } = await open();
  await page.route("**/order-chat/token", (route) => route.abort()); // who listens is told of the last minutes at once
  await page.goto(trackPath(full));
  await live(page, "poll");
  await write(page, "Hello");
  await hears(page, "Hello");
  found.earlier = [await page.locator(".said li").count()];
  await page.click(".earlier a");
  await page.waitForFunction((n) => document.querySelectorAll(".said li").length > n, found.earlier[0]);
  found.earlier.push(await page.locator(".said li").count());
  await context.close();
}

for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["telephone", { viewport: { width: 360, height: 740 }, locale: "de-DE" }]]) {
  const { context, page } = await signIn(options);
  for (const [what, path] of [["console", staffPath(full)], ["track", trackPath(full)], ["list", base + "/console/chats"]]) {
    await page.goto(path);
    if (what !== "list") await live(page);
    await page.waitForTimeout(500);
    await check(page, `${what} ${name}`);
    if (what === "console" && name === "telephone") found.german = await text(page.locator("#h-chat"));
  }
  await context.close();
}

{ // keyboard: from the messages over the quick replies to the button
  const { context, page } = await signIn();
  await page.goto(staffPath(full));
  await page.focus(".said");
  found.keyboard = [];
  for (let i = 0; i < 12 && found.keyboard.at(-1) !== "send"; i++) {
    const at = await page.evaluate(() => { const e = document.activeElement; return e.classList.contains("said") ? "said" : e.name === "quick" ? "quick" : e.id || e.value && e.tagName === "BUTTON" && e.value || e.name || ""; });
    if (at && found.keyboard.at(-1) !== at) found.keyboard.push(at);
    await page.keyboard.press("Tab");
  }
  // and somebody else's script or form
  const path = `/console/chats/${full.id}`;
  const forged = (path, init) => page.evaluate(async ([path, init]) => (await fetch(path, init)).status, [path, init]);
  found.forged.push(await forged(path, { method: "POST", body: "text=x&form=" + "x".repeat(32), headers: { "Content-Type": "application/x-www-form-urlencoded" } }));
  found.forged.push(await forged(path + "/api/messages", { method: "POST", body: '{"text":"x"}', headers: { "Content-Type": "application/json" } }));
  found.forged.push(await forged(path + "/api/token", { method: "POST", body: "{}", headers: { "Content-Type": "application/json", "X-Form": "x".repeat(32) } }));
  await context.clearCookies();
  found.forged.push(await forged(path + "/api/messages", {}));
  await context.close();
}

await browser.close();
process.stdout.write(JSON.stringify(found));
