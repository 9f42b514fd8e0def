// Takes pictures of pages as they stand in docs/screens. Usage: node screens.mjs <base
// address> <session> <folder> <chromium> <name=path> ... A path may be opened at a width
// and in a look: name@390-dark=/path. Prints what was wrong as one JSON object.
import { chromium } from "playwright-core";

const [base, session, folder, executablePath, ...pages] = process.argv.slice(2);
const found = { console: [], status: {}, cut: [] };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
for (const spec of pages) {
  const [, name, width, look, path] = spec.match(/^([a-z-]+)(?:@(\d+)-(light|dark))?=(.*)$/);
  const context = await browser.newContext({ viewport: { width: Number(width ?? 1280), height: width === "390" ? 844 : 800 }, colorScheme: look ?? "light", locale: "en", reducedMotion: "reduce" });
  context.setDefaultTimeout(0); // a busy machine takes its time: the test bounds the whole
  await context.addCookies([{ name: "postern_session", value: session, url: base }]);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") found.console.push(`${name}: ${m.text()}`); });
  page.on("pageerror", (e) => found.console.push(`${name}: ${e}`));
  const answer = await page.goto(base + path);
  found.status[name] = answer.status();
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: `${folder}/${name}.png`, animations: "disabled" });
  if (name === "home") { // its tables stand side by side, whole
    await page.setViewportSize({ width: 1440, height: 900 });
    found.cut = await page.$$eval(".scroll", (all) => all.filter((el) => el.scrollWidth > el.clientWidth + 1).map((el) => el.getAttribute("aria-label")));
  }
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(found));
