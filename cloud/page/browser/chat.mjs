// Has two people talk about an order in a real browser, staff in the console and
// the recipient at the tracking page, and prints what it found as one JSON
// object. Usage: node chat.mjs <base address> <chromium> [folder for pictures].
// SANDBOX holds the accounts; a GET of CONTROL with /cut cuts the wire to the
// broker, with /mend mends it, with /talk/ORDER has a lot said, and with /forget
// has those who begin to listen told nothing of what was before.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, executablePath, pictures] = process.argv.slice(2);
const box = JSON.parse(process.env.SANDBOX);
const found = { axe: {}, console: [], foreign: [], overflow: [], tokens: [], script: {}, unsent: {}, closed: {}, noscript: {}, order: [], forged: [], renewed: 0, asked: 0, shared: {}, refused: {}, quotes: {}, keys: [], bottom: [] };
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
  return { number: order.tracking_number, id: order.order_id, link: order.recipient_link };
}
const say = (order, body) => admin("POST", `/order-chat/orders/${order.id}/messages`, typeof body === "string" ? { text: body } : body);

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !/status of 4\d\d|ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_CONNECTION|WebSocket connection to|Failed to load resource/.test(m.text())) found.console.push(m.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => {
    if (!r.url().startsWith(base) && !/^(data|blob|about):/.test(r.url())) found.foreign.push(r.url());
    if (r.url().includes("oct_")) found.tokens.push(r.url());
  });
  const open = new Set();
  let still = Date.now(); // since when nothing is under way, if nothing is
  page.on("request", (r) => r.resourceType() !== "eventsource" && open.add(r)); // which lasts as long as its page
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => { open.delete(r); still = Date.now(); });
  // quiet waits until what the page asked for is there, and it asks for nothing more.
  page.quiet = async () => { while (open.size || Date.now() - still < 300) await page.waitForTimeout(20); };
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
const trackPath = (o) => o.link; // leads to the clean address
const live = (page, way = "live") => page.waitForSelector(`.chat[data-now=${way}]`);
const hears = (page, text) => page.locator(".said li .words", { hasText: text }).first().waitFor();
const text = async (place) => (await place.textContent()).replace(/\s+/g, " ").trim();
const last = (page) => page.locator(".said li").last();
async function write(page, what) {
  await page.fill("#chat-text", what);
  await page.click("[data-write] [value=send]");
}
const problem = async (page) => {
  await page.waitForSelector("[data-problem]:not([hidden])");
  return text(page.locator("[data-problem] span").last());
};
// png is a real picture, followed by as many bytes of nothing.
// png is a black picture, or one of noise, which a small picture of it is shorter than.
async function png(page, width = 400, height = 300, padding = 0, noise = false) {
  const data = await page.evaluate(([width, height, noise]) => {
    const c = Object.assign(document.createElement("canvas"), { width, height });
    const to = c.getContext("2d");
    to.fillRect(0, 0, width, height);
    if (noise) {
      const all = to.getImageData(0, 0, width, height);
      for (let i = 0; i < all.data.length; i++) if (i % 4 < 3) all.data[i] = Math.random() * 256;
      to.putImageData(all, 0, 0);
    }
    return c.toDataURL("image/png").split(",")[1];
  }, [width, height, noise]);
  return Buffer.concat([Buffer.from(data, "base64"), Buffer.alloc(padding)]);
}
const file = (name, buffer, mimeType = "image/png") => ({ name, mimeType, buffer });
const attach = (page, ...files) => page.setInputFiles("[data-pick]", files);
const row = (page, what) => page.locator(".said li").filter({ has: page.locator(".words", { hasText: what }) }).last();
const tool = (page, what, name) => row(page, what).locator(`.tools [value=${name}]`).click();
const can = (place) => place.locator(".tools button").evaluateAll((all) => all.map((b) => b.value).join());

// share has the recipient send two photos, staff answer, and both change and delete
// what they said, each seen by the other.
async function share(staff, home, way) {
  const seen = {};
  const named = (x) => `${x} (${way})`;
  await attach(home, file("door.png", await png(home, 800, 600, 0, true)), file("bell.png", await png(home, 300, 900)));
  await home.fill("#chat-text", named("My doorr"));
  let go;
  const held = new Promise((done) => { go = done; });
  await home.route("**/order-chat/attachments", async (route) => { await held; await route.continue(); });
  await home.click("[data-write] [value=send]");
  seen.progress = await home.getByRole("progressbar", { name: "Upload of door.png" }).isVisible();
  let show;
  const hidden = new Promise((done) => { show = done; });
  const loaded = new Set();
  await staff.route("**/api/v1/files/**", async (route) => { loaded.add(new URL(route.request().url()).pathname); await hidden; await route.continue(); });
  go();
  const said = row(staff, named("My doorr"));
  await said.locator("img").nth(1).waitFor();
  const height = await said.evaluate((x) => x.offsetHeight);
  show();
  await said.locator("img").evaluateAll((all) => Promise.all(all.map((x) => { x.loading = "eager"; return x.decode(); })));
  seen.grown = await said.evaluate((x) => x.offsetHeight) - height;
  seen.sizes = await said.locator("img").evaluateAll((all) => all.map((x) => `${x.naturalWidth}x${x.naturalHeight} in ${x.width}x${x.height}`));
  seen.loaded = [...loaded].map((x) => x.split(".").pop()).sort();
  seen.alt = await said.locator("img").first().getAttribute("alt");
  await home.unroute("**/order-chat/attachments");
  await staff.unroute("**/api/v1/files/**");
  await home.waitForFunction(() => !document.querySelector("[data-photos] li") && document.querySelector("#chat-text").value === "");
  const [full] = await Promise.all([staff.context().waitForEvent("page"), said.locator(".file a").first().click()]);
  await full.waitForLoadState();
  seen.full = await full.evaluate(() => [document.contentType, document.images[0]?.naturalWidth]);
  await full.close();
  seen.can = [await can(said), await can(row(home, named("My doorr")))];

  await tool(staff, named("My doorr"), "reply");
  seen.banner = await text(staff.locator("#chat-about"));
  await attach(staff, file("key.png", await png(staff, 40, 30, 3 << 20)));
  await write(staff, named("We see it"));
  await hears(home, named("We see it"));
  const answer = row(home, named("We see it"));
  await answer.locator("img").evaluate((x) => { x.loading = "eager"; return x.decode(); });
  seen.quote = await text(answer.locator(".quote"));
  await answer.locator(".quote a").click();
  seen.jumped = await home.evaluate(() => document.activeElement.matches(".said li.own.found"));

  await home.fill("#chat-text", "A draft");
  await tool(home, named("My doorr"), "edit");
  seen.field = await home.inputValue("#chat-text");
  await home.fill("#chat-text", named("My door"));
  seen.save = await text(home.locator("[data-write] [value=send]"));
  await home.click("[data-write] [value=send]");
  await hears(staff, named("My door"));
  const changed = row(staff, named("My door"));
  seen.edited = await text(changed.locator(".marks"));
  seen.pictures = await changed.locator("img").count();
  seen.requoted = [await text(row(staff, named("We see it")).locator(".quote")), await text(answer.locator(".quote"))];
  await home.waitForFunction(() => document.querySelector("#chat-text").value === "A draft"); // what was being written is back
  await home.fill("#chat-text", "");

  await tool(staff, named("We see it"), "edit");
  await write(staff, named("We saw it"));
  await hears(home, named("We saw it"));
  seen.answered = await text(row(home, named("We saw it")).locator(".marks"));

  const id = await changed.getAttribute("id");
  home.once("dialog", (d) => d.dismiss());
  await tool(home, named("My door"), "delete");
  seen.dismissed = await home.locator(`#${id} .words`).count();
  home.once("dialog", (d) => { seen.asked = d.message(); return d.accept(); });
  await home.locator(`#${id} .tools [value=delete]`).click();
  await staff.waitForSelector(`#${id} .gone`);
  await home.waitForSelector(`#${id} .gone`);
  seen.deleted = [await text(staff.locator(`#${id} .gone`)), await staff.locator(`#${id} img`).count(), await can(staff.locator("#" + id)), await can(home.locator("#" + id))];
  seen.gone = await text(row(home, named("We saw it")).locator(".quote"));
  return seen;
}
const control = (what) => fetch(process.env.CONTROL + what);

async function check(page, name) {
  await audit(page, name, found);
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
  for (const { page } of [staff, home]) await page.quiet(); // the first questions are over
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
  await tool(staff.page, "He shouts", "reply");
  found.privately = await staff.page.isChecked("[name=private]");
  await staff.page.keyboard.press("Escape");
  await staff.page.uncheck("[name=private]");
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
  form.set("file", new Blob([await png(home.page, 3, 2)], { type: "image/png" }), "door.png");
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
  let tried = 0;
  staff.page.on("request", (r) => { if (r.method() === "POST" && r.url().endsWith("/messages")) tried++; });
  await staff.page.click("[data-write] [value=send]");
  await staff.page.evaluate(() => {}); // what a click has a page ask for is known before its next answer
  found.kept = tried === 0 && await staff.page.locator(".said li").count() === before && await staff.page.inputValue("#chat-text") !== "";
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

  found.shared.live = await share(staff.page, home.page, "live");

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

  // two who never hear anything live
  const deaf = [await signIn(), await open()];
  for (const [i, path] of [staffPath(order), trackPath(order)].entries()) {
    await deaf[i].page.route("**/token", (route) => route.abort());
    await deaf[i].page.goto(path);
    await live(deaf[i].page, "poll");
  }
  found.shared.cut = await share(deaf[0].page, deaf[1].page, "cut");
  for (const { context } of deaf) await context.close();

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
  while (found.renewed < 2) await short.page.waitForTimeout(50);
  await short.page.quiet();
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

{ // what is refused, on a telephone and a desk: in words, and nothing is lost
  const order = await newOrder();
  const staff = await signIn({ viewport: { width: 360, height: 740 } });
  const home = await open({ viewport: { width: 360, height: 740 } });
  await staff.page.goto(staffPath(order));
  await home.page.goto(trackPath(order));
  await live(staff.page);
  await live(home.page);
  const refused = found.refused;
  const picture = await png(home.page, 400, 300, 0, true);
  const names = (page) => page.locator("[data-photos] bdi").allTextContents();
  await home.page.fill("#chat-text", "At the gate");
  await attach(home.page, file("notes.txt", Buffer.from("notes"), "text/plain"));
  refused.kind = await problem(home.page);
  await attach(home.page, file("huge.png", await png(home.page, 4, 3, 10 << 20)));
  refused.big = await problem(home.page);
  await attach(home.page, ...[1, 2, 3, 4, "a long name ".repeat(9) + 5, 6].map((n) => file(`${n}.png`, picture)));
  refused.many = await problem(home.page);
  refused.five = await names(home.page);
  await check(home.page, "photos");
  for (const n of [1, 2, 3]) await home.page.getByRole("button", { name: `Remove ${n}.png` }).click();
  for (const [who, x] of [["recipient", home], ["staff", staff]]) { // what only looks like a picture
    if (who === "staff") await x.page.fill("#chat-text", "At the gate");
    await attach(x.page, file("false.png", Buffer.from("no picture")));
    await x.page.click("[data-write] [value=send]");
    refused[who] = [await problem(x.page), await x.page.inputValue("#chat-text"), ...await names(x.page)];
  }
  await staff.page.fill("#chat-text", "");
  refused.said = await home.page.locator(".said li").count();

  // no connection while a photo is on its way, and an answer that is lost
  await attach(home.page, file("6.png", picture)); // the others are uploaded already
  await home.page.route("**/order-chat/attachments", (route) => route.abort());
  await home.page.click("[data-write] [value=send]");
  refused.cut = [await problem(home.page), await home.page.inputValue("#chat-text"), ...await names(home.page)];
  await home.page.unroute("**/order-chat/attachments");
  let uploads = 0;
  home.page.on("request", (q) => { if (q.url().endsWith("/attachments")) uploads++; });
  await home.page.route("**/messages", async (route) => { await route.fetch(); await route.abort(); });
  await home.page.click("[data-write] [value=send]");
  refused.lost = await problem(home.page);
  await home.page.unroute("**/messages");
  await home.page.click("[data-write] [value=send]");
  await hears(staff.page, "At the gate");
  await home.page.waitForFunction(() => document.querySelector("#chat-text").value === "");
  refused.once = [await staff.page.locator(".said li").count(), await staff.page.locator(".said img").count(), uploads];

  const html = await (await home.page.request.get(trackPath(order))).text();
  found.sized = /<a href="[^"]+\.png\?[^>]+><img src="[^"]+\.jpg\?[^"]+" width="320" height="240" alt="Photo: 4.png"/.test(html);

  // pasted and dropped, and a photo without words
  const hand = (page, kind) => page.locator(kind === "paste" ? "#chat-text" : ".chat").evaluate((at, [kind, bytes]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], kind + ".png", { type: "image/png" }));
    const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
    return at.dispatchEvent(event);
  }, [kind, [...picture]]);
  await hand(home.page, "paste");
  await hand(home.page, "drop");
  found.handed = await names(home.page);
  await home.page.route("**/order-chat/attachments", () => {}); // taken away while they are on their way: nothing is sent
  await home.page.click("[data-write] [value=send]");
  await home.page.getByRole("progressbar", { name: "Upload of paste.png" }).waitFor();
  for (const n of ["paste", "drop"]) await home.page.getByRole("button", { name: `Remove ${n}.png` }).click();
  await home.page.waitForFunction(() => document.querySelector("[data-write] [value=send]").textContent === "Send");
  await home.page.unroute("**/order-chat/attachments");
  refused.away = [await home.page.locator(".said li").count(), await home.page.locator("[data-problem]").isVisible()];
  await hand(home.page, "paste");
  await hand(home.page, "drop");
  await home.page.click("[data-write] [value=send]");
  await staff.page.locator(".said li").nth(1).locator("img").nth(1).waitFor();
  found.wordless = await last(staff.page).locator(".words").count();

  // by keyboard: up to an earlier message, reply, leave it, reply again
  await write(home.page, "One more thing");
  await hears(staff.page, "One more thing");
  const key = async (...names) => { for (const n of names) await staff.page.keyboard.press(n); };
  const at = () => staff.page.evaluate(() => { const e = document.activeElement; return `${e.value || e.id} ${e.closest("li")?.querySelector(".words")?.textContent ?? ""}`.trim(); });
  await staff.page.focus(".said");
  await key("Tab", "Tab", "Tab", "Tab", "Tab"); // three pictures, then the buttons of the last message
  while (!(await at()).startsWith("reply")) await key("Tab");
  found.keys.push(await at());
  await key("ArrowUp", "ArrowUp");
  found.keys.push(await at());
  await key("Enter");
  found.keys.push(await at(), await text(staff.page.locator("#chat-about")));
  await check(staff.page, "replying");
  await key("Escape");
  found.keys.push(String(await staff.page.locator("[data-about]").isVisible()));
  await tool(staff.page, "At the gate", "reply");
  await staff.page.keyboard.type("Which gate?");
  await key("Enter");
  await hears(home.page, "Which gate?");
  found.keys.push(await text(row(home.page, "Which gate?").locator(".quote")));

  // changed when it cannot be any more
  await tool(staff.page, "Which gate?", "edit");
  await check(staff.page, "changing");
  await staff.page.fill("#chat-text", " ");
  await staff.page.click("[data-write] [value=send]");
  refused.blank = await text(row(staff.page, "Which gate?").locator(".words"));
  await staff.page.fill("#chat-text", "Which gate, please?");
  await staff.page.route("**/api/messages/*", (route) => route.abort());
  await staff.page.click("[data-write] [value=send]");
  refused.unsaved = [await problem(staff.page), await staff.page.inputValue("#chat-text")];
  await staff.page.unroute("**/api/messages/*");
  const id = await row(staff.page, "Which gate?").getAttribute("data-id");
  await admin("DELETE", "/order-chat/messages/" + id);
  await staff.page.waitForSelector(`#m${id} .gone`);
  await staff.page.click("[data-write] [value=send]");
  await staff.page.waitForFunction((was) => { const p = document.querySelector("[data-problem]"); return !p.hidden && p.textContent.trim() !== was; }, "! " + refused.unsaved[0]);
  await staff.page.waitForSelector("[data-write] [value=send]:not([aria-disabled])");
  refused.late = [await problem(staff.page), await staff.page.inputValue("#chat-text")];
  await staff.page.click("[data-leave]");

  // ten minutes later by the server's clock
  refused.before = await can(row(home.page, "One more thing"));
  await home.page.route("**/api/v1/order-chat/**", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), date: new Date(Date.now() + 601000).toUTCString() } });
  });
  await home.page.fill("#chat-text", "x");
  await home.page.waitForFunction(() => !document.querySelector(".tools [value=edit]"), null);
  refused.after = await can(row(home.page, "One more thing"));
  await home.page.unroute("**/api/v1/order-chat/**");

  // more than a minute takes
  await home.page.evaluate(async () => {
    const { api, token } = document.querySelector(".chat").dataset;
    for (let status = 0; status !== 429;) ({ status } = await fetch(api + "/messages", { method: "POST", headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" }, body: '{"text":"again"}' }));
  });
  await write(home.page, "Too many");
  refused.often = [await problem(home.page), await home.page.inputValue("#chat-text")];

  // closed while photos are on their way
  const held = [];
  for (const [who, x] of [["recipient", home], ["staff", staff]]) {
    await x.page.fill("#chat-text", "Too late " + who);
    await attach(x.page, file("late.png", picture));
    await x.page.route("**/attachments", (route) => { held.push(route); });
    await x.page.click("[data-write] [value=send]");
  }
  while (held.length < 2) await home.page.waitForTimeout(50);
  await admin("POST", `/order-chat/orders/${order.id}/close`, {});
  for (const route of held) await route.continue();
  for (const [who, x] of [["recipient", home], ["staff", staff]]) {
    refused["closed " + who] = [await problem(x.page), await text(x.page.locator("[data-closedwords] span").last()), await x.page.inputValue("#chat-text"), ...await names(x.page), String(await x.page.locator(".tools").first().isVisible())];
  }
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
  await say(order, { text: "Which desk?", reply_to: Number(await home.page.locator(".said li").first().getAttribute("data-id")) });
  await home.page.reload();
  found.noscript.quote = await text(last(home.page).locator(".quote"));
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
  // an answer to what is not shown yet: its words come, and it is gone to
  const { messages: [first] } = await admin("GET", `/order-chat/orders/${full.id}/messages?after_id=0&limit=1`);
  await say(full, { text: "About the first", reply_to: first.message_id });
  await page.goto(trackPath(full));
  const old = row(page, "About the first").locator(".quote");
  found.quotes.served = [await (await page.request.get(trackPath(full))).text()].map((x) => x.includes(`href="/track/${full.number}?before=${first.message_id + 1}#m${first.message_id}"`))[0];
  await page.waitForFunction(() => [...document.querySelectorAll(".quote")].at(-1)?.textContent.includes("word"));
  found.quotes.words = (await text(old)).slice(0, 40);
  await old.locator("a").click();
  await page.waitForFunction((id) => document.activeElement.dataset.id === String(id), first.message_id);
  found.quotes.jumped = await page.locator(`#m${first.message_id}`).evaluate((x) => { const r = x.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight; });
  await context.close();

  // what becomes of a message that is not shown yet does not put it above those that are
  await control("/forget");
  const late = await open();
  await late.page.goto(trackPath(full));
  await live(late.page);
  const quoted = row(late.page, "About the first").locator(".quote");
  await late.page.waitForFunction(() => [...document.querySelectorAll(".quote")].at(-1)?.textContent.includes("word"));
  await late.page.quiet();
  const ids = () => late.page.locator(".said li").evaluateAll((all) => all.map((x) => Number(x.dataset.id)));
  const shown = await ids();
  const { messages: [, second] } = await admin("GET", `/order-chat/orders/${full.id}/messages?after_id=0&limit=2`);
  await admin("PATCH", "/order-chat/messages/" + first.message_id, { text: "Changed later" });
  await admin("DELETE", "/order-chat/messages/" + second.message_id);
  await say(full, "After that");
  await hears(late.page, "After that");
  found.unloaded = { more: (await ids()).length - shown.length, first: await late.page.locator(`#m${first.message_id}, #m${second.message_id}`).count(), quote: await text(quoted) };
  await late.page.click(".earlier a");
  await late.page.waitForSelector(`#m${second.message_id} .gone`);
  found.unloaded.words = await text(late.page.locator(`#m${first.message_id} .words`));
  found.unloaded.sorted = (await ids()).every((id, i, all) => !i || all[i - 1] < id);
  await late.context.close();
}

for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["telephone", { viewport: { width: 360, height: 740 }, locale: "de-DE" }]]) {
  const { context, page } = await signIn(options);
  for (const [what, path] of [["console", staffPath(full)], ["track", trackPath(full)], ["list", base + "/console/chats"]]) {
    await page.goto(path);
    if (what !== "list") await live(page);
    await page.quiet();
    await check(page, `${what} ${name}`);
    if (what !== "list") found.bottom.push(await page.locator(".said").evaluate((x) => Math.round(x.scrollHeight - x.scrollTop - x.clientHeight)));
    if (what === "console" && name === "telephone") found.german = await text(page.locator("#h-chat"));
  }
  await context.close();
}

{ // keyboard: from the messages over the quick replies to the button
  const { context, page } = await signIn();
  await page.goto(staffPath(full));
  await page.focus(".said");
  found.keyboard = [];
  for (let i = 0; i < 14 && found.keyboard.at(-1) !== "photos"; i++) {
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
  const said = path + "/api/messages/1";
  const sent = (headers) => page.request.post(base + path + "/api/attachments", { headers, multipart: { file: file("x.png", Buffer.from("x")) } }).then((a) => a.status());
  found.forged.push(await forged(said, { method: "DELETE" }), await forged(said, { method: "PATCH", body: '{"text":"x"}', headers: { "X-Form": "x".repeat(32) } }), await sent({}), await sent({ "X-Form": "x".repeat(32) }));
  const form = { "X-Form": await page.getAttribute(".chat", "data-form") };
  found.unfit = [await sent({ ...form, "Content-Encoding": "gzip" }), await forged(path + "/api/attachments", { method: "POST", headers: { ...form, "Content-Type": "application/json" }, body: "{}" }), await forged(path + "/api/messages/x", { method: "DELETE", headers: form }),
    await forged(path + "/api/messages/1", { method: "PATCH", headers: form, body: "x" }), await page.request.post(base + path + "/api/attachments", { headers: form, multipart: { file: file("x.png", await png(page, 4, 3, 10 << 20)) } }).then((a) => a.status())];
  await context.clearCookies();
  found.forged.push(await sent(form));
  found.forged.push(await forged(path + "/api/messages", {}));
  await context.close();
}

await browser.close();
process.stdout.write(JSON.stringify(found));
