// Looks after a webhook receiver in a real browser and prints what it saw as one
// JSON object. Usage: node receivers.mjs <base address> <password> <chromium>
// [folder for pictures]. PEOPLE are the addresses of an administrator, an employee
// and another business's administrator; RECEIVER is the id of a receiver that
// fails, CONTROL an address whose /well makes it answer; DELIVERY is the id of one
// that it did not get.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, password, executablePath, pictures] = process.argv.slice(2);
const [admin, employee, stranger] = process.env.PEOPLE.split(" ");
const receiver = `/console/webhooks/receivers/${process.env.RECEIVER}`;
const delivery = `/console/webhooks/${process.env.DELIVERY}`;
const found = { axe: {}, overflow: [], operator: {}, employee: {}, stranger: {} };

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function signedIn(email, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  const page = await context.newPage();
  await page.goto(base + "/console/login");
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.click("form.login button");
  await page.waitForURL(base + "/console");
  return { context, page };
}

async function check(page, name) {
  await audit(page, name, found);
  if (pictures) await page.screenshot({ path: `${pictures}/hook_${name.replaceAll(" ", "_")}.png`, fullPage: true });
}

const text = async (page, selector) => (await page.textContent(selector)).replace(/\s+/g, " ").trim();
const press = (page, what) => page.click(`button[name="do"][value="${what}"]`);

{ // an operator without script, on a telephone: from the list to a receiver that is well again
  const { context, page } = await signedIn(admin, { javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  const seen = found.operator;
  await page.goto(base + "/console/webhooks");
  seen.list = await text(page, `.receivers li:has(a[href="${receiver}"]) .pill`);
  await page.click(`.receivers a[href="${receiver}"]`);
  seen.why = await text(page, ".ask .dots");
  await press(page, "test");
  seen.sick = await text(page, ".notice");
  await fetch(process.env.CONTROL + "/well");
  await page.selectOption("#event", "order.created");
  await press(page, "test");
  seen.well = await text(page, ".notice.good");
  await press(page, "check");
  seen.checks = await text(page, 'section[aria-labelledby="h-checks"] p');
  await press(page, "pause");
  seen.paused = await text(page, ".ask .pill");
  await press(page, "send");
  seen.resumed = await text(page, ".notice.good");
  await press(page, "rotate");
  seen.secret = (await text(page, "#secret")).length;
  await page.goto(base + receiver);
  seen.again = await page.locator("#secret").count();
  await page.goto(base + delivery);
  await page.click("form.decide button");
  seen.replay = await text(page, ".notice.good");
  await page.goto(base + "/console/webhooks");
  await page.selectOption("#r-state", "failed");
  await page.click("#again button");
  seen.count = await text(page, "#count");
  await page.click("main form button");
  for (let i = 0; i < 100; i++) { // without script a page does not follow by itself
    seen.job = await text(page, ".ask .pill");
    if (seen.job === "done") break;
    await page.waitForTimeout(100);
    await page.reload();
  }
  seen.sent = await text(page, 'label[for="share"]');
  await context.close();
}

for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["telephone", { viewport: { width: 360, height: 740 } }]]) {
  const { context, page } = await signedIn(admin, options);
  await page.goto(base + "/console/webhooks");
  await check(page, `list ${name}`);
  await page.selectOption("#r-state", "success");
  await page.click("#again button");
  await check(page, `count ${name}`);
  await page.click("main form button");
  await check(page, `job ${name}`);
  await page.goto(base + receiver);
  await check(page, `receiver ${name}`);
  await press(page, "check");
  await check(page, `checks ${name}`);
  await press(page, "rotate");
  await check(page, `secret ${name}`);
  await press(page, "pause");
  await check(page, `paused ${name}`);
  await press(page, "fail");
  await page.goto(base + delivery);
  await check(page, `delivery ${name}`);
  await context.close();
}

// forged posts what no page of this person offers, and gives the status.
const forged = (page, path, fields) => page.evaluate(async ([path, fields]) => (await fetch(path, { method: "POST", body: new URLSearchParams(fields) })).status, [path, fields]);

{ // an employee looks, and no more
  const { context, page } = await signedIn(employee);
  await page.goto(base + receiver);
  await check(page, "receiver employee");
  found.employee.buttons = await page.locator("main button").count();
  const form = await page.getAttribute('input[name="form"]', "value");
  found.employee.forged = [];
  for (const what of ["test", "check", "pause", "send", "fail", "rotate"]) found.employee.forged.push(await forged(page, receiver, { do: what, form }));
  found.employee.forged.push(await forged(page, delivery, { form }), await forged(page, "/console/webhooks/replays", { form, send: "yes" }));
  await context.close();
}

{ // somebody else's form in an administrator's browser
  const { context, page } = await signedIn(admin);
  await page.goto(base + receiver);
  found.operator.forged = await forged(page, receiver, { do: "pause", form: "x".repeat(32) });
  await context.close();
}

{ // another business sees nothing of it
  const { context, page } = await signedIn(stranger);
  await page.goto(base + "/console/webhooks");
  found.stranger.list = await page.locator(`a[href="${receiver}"], a[href="${delivery}"]`).count();
  found.stranger.receiver = (await page.goto(base + receiver)).status();
  found.stranger.delivery = (await page.goto(base + delivery)).status();
  await context.close();
}

await browser.close();
console.log(JSON.stringify(found));
