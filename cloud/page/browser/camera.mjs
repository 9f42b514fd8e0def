// Holds a code before the camera of a cabinet's screen, which a file plays, at both sizes of
// a kiosk, and prints what was found as one JSON object. Usage: node camera.mjs <address of
// the screen> <chromium> <file of the camera's pictures, y4m> [folder for pictures].
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

const [base, executablePath, video, pictures] = process.argv.slice(2);
const found = { axe: {}, overflow: [], console: [], foreign: [], posted: {}, screens: {} };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--use-fake-ui-for-media-stream",
  "--use-fake-device-for-media-stream", "--use-file-for-fake-video-capture=" + video] });

async function open(size) {
  const context = await browser.newContext({ viewport: size });
  await context.grantPermissions(["camera"], { origin: base });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  page.on("console", (x) => { if (x.type() === "error") found.console.push(x.text()); });
  page.on("pageerror", (e) => found.console.push(String(e)));
  page.on("request", (r) => {
    if (!r.url().startsWith(base)) found.foreign.push(r.url());
    if (r.method() === "POST") found.posted[new URL(r.url()).pathname] = (found.posted[new URL(r.url()).pathname] ?? 0) + 1;
  });
  await page.goto(base);
  await page.waitForSelector("body[data-screen=start]");
  return { context, page };
}

const live = (page) => page.evaluate(() => document.querySelector("video")?.srcObject?.active ?? false);

const sizes = { landscape: { width: 1280, height: 800 }, portrait: { width: 1080, height: 1920 } };
{
  const { context, page } = await open(sizes.portrait);
  found.screens.start = await live(page);
  await page.click("#help"); // a screen without a code
  await page.waitForTimeout(500);
  found.screens.help = await live(page);
  await page.click("#pickup");
  await page.waitForSelector("body[data-screen=flow]");
  await page.waitForFunction(() => !document.querySelector("video")?.srcObject);
  found.screens.flow = await live(page);
  await page.waitForSelector("body[data-screen=finished]");
  await context.close();
}
for (const [kind, size] of Object.entries(sizes)) { // the code has been used
  const { context, page } = await open(size);
  await page.waitForTimeout(3500); // so long it was out of view
  await page.click("#dropoff");
  await page.waitForSelector(".camera video", { state: "visible" });
  await page.waitForSelector("#message:not(:empty)");
  await audit(page, kind, found);
  if (pictures) await page.screenshot({ path: `${pictures}/camera-${kind}.png` });
  found.screens[kind + "-message"] = await page.textContent("#message");
  await page.waitForTimeout(2500); // the code stays in view
  await page.click("#home");
  await page.waitForFunction(() => !document.querySelector("video")?.srcObject);
  found.screens[kind + "-left"] = await live(page);
  await context.close();
}
console.log(JSON.stringify(found));
await browser.close();
