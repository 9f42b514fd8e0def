// Holds a code before the camera of a cabinet's screen, at both sizes of a kiosk. VIDEO is the
// file of what the camera sees, y4m, which Chromium plays.
import { Cabinet, sizes } from "./cabinet.mjs";
import { audit } from "./audit.mjs";

const cabinet = await Cabinet.open("camera", process.argv.slice(2), ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", "--use-file-for-fake-video-capture=" + process.env.VIDEO]);
const { found } = cabinet;
found.posted = {};

const visit = (kind) => cabinet.visit(kind, {}, async (context, page) => {
  await context.grantPermissions(["camera"], { origin: cabinet.base });
  page.on("request", (r) => { if (r.method() === "POST") found.posted[new URL(r.url()).pathname] = (found.posted[new URL(r.url()).pathname] ?? 0) + 1; });
});
const live = ({ page }) => page.evaluate(() => document.querySelector("video")?.srcObject?.active ?? false);
const off = ({ page }) => page.waitForFunction(() => !document.querySelector("video")?.srcObject);

{
  const s = await visit("portrait");
  found.screens.start = await live(s);
  await s.press("#help"); // a screen without a code
  await s.page.waitForTimeout(500);
  found.screens.help = await live(s);
  await s.count("pickup", 3, async () => {
    await s.home();
    await s.press("#pickup");
    await s.at("flow");
    await off(s);
    found.screens.flow = await live(s);
    await s.at("finished");
  });
  await s.close();
}
for (const kind of Object.keys(sizes)) { // the code has been used
  const s = await visit(kind);
  await s.page.waitForTimeout(3500); // so long the camera was off
  await s.press("#dropoff");
  await s.page.waitForSelector(".camera video", { state: "visible" });
  await s.page.waitForSelector("#message:not(:empty)");
  await audit(s.page, kind, found);
  await s.measure(kind);
  if (cabinet.pictures) await s.page.screenshot({ path: `${cabinet.pictures}/camera-${kind}.png` });
  s.note("message", await s.text("#message"));
  await s.page.waitForTimeout(6000); // the code stays in view
  await s.home();
  await off(s);
  s.note("left", await live(s));
  await s.close();
}
await cabinet.end();
