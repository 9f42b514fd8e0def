// The screen of a cabinet as people use it in a real browser: what the scripts share that try
// it. Each is called with <address of the screen> <address of the hands> <chromium> [folder for
// pictures]; a GET of the hands does what a person or a technician does at the cabinet and
// answers JSON. A script prints what was found as one JSON object.
import { chromium } from "playwright-core";
import { audit } from "./audit.mjs";

export const sizes = { portrait: { width: 1080, height: 1920 }, landscape: { width: 1280, height: 800 } };
const target = 96; // px: what is touched is as wide and as high at least
const reach = 820; // px above the lower edge of an upright screen, which a seated person reaches

export class Cabinet {
  found = { axe: {}, overflow: [], console: [], foreign: [], small: [], high: [], clipped: [], repeated: [], taps: {}, screens: {} };

  // open starts the browser. A script that fails leaves a picture, and the words on the screen.
  static async open(script, [base, hands, executablePath, pictures], args = []) {
    const c = Object.assign(new Cabinet(), { script, base, hands, pictures, page: null });
    c.browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", ...args] });
    process.on("uncaughtException", async (e) => {
      console.error(e, await c.page?.evaluate(() => document.body.innerText).catch(() => ""));
      if (pictures) await c.page?.screenshot({ path: `${pictures}/${script}-failed.png` }).catch(() => {});
      process.exit(1);
    });
    return c;
  }

  // act has the hands do something.
  async act(path) {
    const r = await fetch(this.hands + path);
    if (!r.ok) throw new Error(path + ": " + (await r.text()));
    return r.json();
  }

  // visit shows the start at a kiosk of a kind, or on a telephone: in a window of the size that options give.
  async visit(kind, options = {}, before = async () => {}) {
    const context = await this.browser.newContext({ viewport: sizes[kind], hasTouch: true, ...options });
    context.setDefaultTimeout(20000);
    const page = await context.newPage();
    this.page = page;
    page.on("console", (x) => { if (x.type() === "error" && !/Failed to load resource|ERR_/.test(x.text())) this.found.console.push(x.text()); });
    page.on("pageerror", (e) => this.found.console.push(String(e)));
    page.on("request", (r) => { if (!r.url().startsWith(this.base)) this.found.foreign.push(r.url()); });
    await context.addInitScript(countTouches);
    await before(context, page);
    await page.clock.install();
    await page.goto(this.base);
    const screen = new Screen(this, kind, context, page);
    await screen.at("start");
    return screen;
  }

  async end() {
    await this.browser.close();
    console.log(JSON.stringify(this.found));
  }
}

// countTouches runs in the page: each touch counts, of keys with a digit apart from all others.
function countTouches() {
  window.touches = { taps: 0, digits: 0 };
  addEventListener("pointerdown", (e) => {
    if (e.isTrusted) window.touches[/^\d$/.test(e.target.closest?.("#keys button")?.textContent ?? "") ? "digits" : "taps"]++;
  }, true);
}

export class Screen {
  constructor(cabinet, kind, context, page) {
    Object.assign(this, { cabinet, kind, context, page, found: cabinet.found, languages: [] });
  }

  name(what) { return `${this.kind} ${what}`.replaceAll(" ", "-"); }
  now() { return this.page.getAttribute("body", "data-screen"); }
  at(name) { return this.page.waitForSelector(`body[data-screen=${name}]`); }
  sees(selector, part) { return this.page.waitForFunction(([s, p]) => document.querySelector(s)?.textContent.includes(p), [selector, part]); }
  message(part) { return this.sees("#message", part); }
  lead(part) { return this.sees("#lead", part); }
  text(selector) { return this.page.textContent(selector); }
  opened(n = 1) { return this.page.waitForFunction((n) => document.querySelectorAll(".steps b.open").length === n, n); }
  note(what, value) { this.found.screens[this.name(what)] = value; }

  press(selector) { return this.page.tap(selector); }
  async home() { if ((await this.now()) !== "start") await this.press("#home"); await this.at("start"); }
  async keys(code) { for (const c of code) await this.page.locator("#keys button", { hasText: new RegExp(`^${c}$`) }).tap(); }
  async enter(code) { await this.keys(code); await this.press("#enter"); }
  async code(from, code) { await this.home(); await this.press("#" + from); await this.enter(code); }
  async scan(text) { await this.page.keyboard.type(text); await this.page.keyboard.press("Enter"); }
  async finish() { await this.press("#finish"); await this.at("start"); }

  // wait lets time pass while the screen is left alone.
  wait(seconds) { return this.page.clock.fastForward(seconds * 1000); }

  // count counts the touches of a way through the screens, as the page itself sees them; a way
  // that takes more than most ends the script.
  async count(name, most, way) {
    const before = await this.page.evaluate(() => ({ ...window.touches }));
    await way();
    const after = await this.page.evaluate(() => window.touches);
    const n = { taps: after.taps - before.taps, digits: after.digits - before.digits };
    this.found.taps[this.name(name)] = n;
    if (n.taps > most) throw new Error(`${this.name(name)} takes ${n.taps} taps besides ${n.digits} digits: ${most} are allowed`);
  }

  // look checks a screen as it is, in high contrast, and in the languages of longest words,
  // and measures what is touched.
  async look(what, kiosk = true) {
    const { page, found } = this, name = this.name(what), own = await page.evaluate(() => ({ lang: document.documentElement.lang, contrast: document.documentElement.dataset.contrast }));
    const show = (lang, contrast) => page.evaluate(async ([l, c]) => {
      c ? document.documentElement.dataset.contrast = c : delete document.documentElement.dataset.contrast;
      (await import("/words.js")).setLanguage(l);
      window.speechSynthesis?.dispatchEvent(new Event("voiceschanged")); // the page draws itself anew
      await new Promise((done) => requestAnimationFrame(done));
    }, [lang, contrast]);
    for (const [look, lang, contrast] of [["light", own.lang], ["high", own.lang, "high"], ...this.languages.filter((l) => l !== own.lang).map((l) => [l, l])]) {
      await show(lang, contrast);
      if (look.length > 2) await audit(page, `${name} ${look}`, found);
      else found.overflow.push(...(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1)) ? [`${name} ${look}`] : []);
      if (kiosk && look !== "high") await this.measure(`${name} ${look}`);
      if (this.cabinet.pictures) await page.screenshot({ path: `${this.cabinet.pictures}/${this.cabinet.script}-${name}-${look}.png` });
    }
    await show(own.lang, own.contrast);
  }

  async measure(name) {
    const { page, found } = this, { width, height } = page.viewportSize();
    const { targets, ids, parts } = await page.evaluate(() => ({
      parts: ["stage", "controls"].map((id) => document.getElementById(id)).filter((e) => e.scrollHeight > e.clientHeight + 1).map((e) => `${e.id} by ${e.scrollHeight - e.clientHeight}`),
      targets: [...document.querySelectorAll("button, input, a")].filter((e) => e.checkVisibility()).map((e) => {
        const b = e.getBoundingClientRect();
        return { id: e.id || e.textContent, w: b.width, h: b.height, top: b.top, bottom: b.bottom, left: b.left, right: b.right, clipped: e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1 };
      }),
      ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
    }));
    for (const x of targets) {
      const what = `${name}: ${x.id} ${Math.round(x.w)}x${Math.round(x.h)} at ${Math.round(x.top)}`;
      if (x.w < target || x.h < target) found.small.push(what);
      if (x.left < -1 || x.right > width + 1 || x.bottom > height + 1 || x.top < (height > 1500 ? height - reach : 0)) found.high.push(what);
      if (x.clipped) found.clipped.push(what);
    }
    found.clipped.push(...parts.map((p) => `${name}: ${p}`));
    found.repeated.push(...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `${name}: ${id}`));
  }

  close() { return this.context.close(); }
}
