// Keeps a page up to date that holds a ticket for its topics. Sections come as
// server-sent events; where there are none, or too many readers, the page asks every
// half minute. A page that is not looked at closes its connection. One that has heard
// nothing for five seconds says so, and what can be done from it is off meanwhile.

const silence = 5000;
const unseen = 30000;
const pause = 30000;
const spoken = 10000;
const tries = 10; // polls before the next attempt to follow

const words = document.body.dataset;
const state = document.querySelector("[data-state]");
const voice = document.querySelector("[data-live-said]");
const clock = new Intl.DateTimeFormat("en-GB", { timeZone: words.zone || "UTC", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
let ticket = words.ticket;
let source = null;
let polls = 0;
let timer = 0;
let tag = "";
let lost = false;
let heard = Date.now(); // when the server was last heard
let confirmed = new Date(); // what is shown held then
let renewed = 0;

// show says how current the page is.
function show() {
  const off = Date.now() - heard > (source || !polls ? silence : pause + 15000);
  const text = (off ? words.lost : source || !polls ? words.follows : words.polled).replace("{}", clock.format(confirmed));
  if (state) {
    state.hidden = false;
    state.classList.toggle("on", !off);
    state.classList.toggle("off", off);
    const at = state.querySelector("[data-live-text]");
    if (at.textContent !== text) at.textContent = text;
  }
  for (const e of document.querySelectorAll("[data-shown]")) e.hidden = true;
  if (off !== lost) {
    lost = off;
    if (off) say(text);
    verbs();
  }
}

const acts = "main .verbs a, main .verbs button, main form[method=post] button";

// verbs switches what can be done off while the page may be old, and on again.
function verbs() {
  for (const e of document.querySelectorAll(acts)) {
    if (e.closest("form[method=get]")) continue;
    if (lost) e.setAttribute("aria-disabled", "true");
    else e.removeAttribute("aria-disabled");
  }
}

document.addEventListener("click", (event) => {
  const e = lost && event.target.closest?.(acts);
  if (!e || e.closest("form[method=get]")) return;
  event.preventDefault();
  event.stopPropagation();
  say(words.lost.replace("{}", clock.format(confirmed)), true);
  state?.scrollIntoView({ block: "nearest" });
}, true);

const waiting = new Set();
let silent = 0; // until when nothing more is said
let speaking = 0;

// say has a screen reader say a text: at most one each ten seconds, but for the answer
// to a press.
function say(text, now) {
  if (!voice) return;
  const wait = now ? 0 : Math.max(0, silent - Date.now());
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    voice.textContent = text;
    silent = Date.now() + spoken;
    waiting.clear();
  }, wait);
}

// name is what people call a section: the heading of the part of the page that it is in.
function name(e) {
  const part = e.closest("article, section, nav") ?? e;
  return part.querySelector("h1, h2, h3")?.textContent.trim() || part.getAttribute("aria-label") || document.querySelector("h1")?.textContent.trim() || "";
}

// sighted reports whether any of an element is inside the window.
function sighted(e) {
  const box = e.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}

// take puts sections into the page. What has the focus keeps it, and stays in sight
// where it was.
function take(sections) {
  const before = waiting.size;
  const focus = document.activeElement, followed = focus !== document.body && focus && sighted(focus);
  for (const [id, html] of Object.entries(sections)) {
    const place = document.querySelector(`[data-live="${CSS.escape(id)}"]`);
    if (!place) continue;
    const made = document.createElement("template");
    made.innerHTML = html; // rendered and escaped by our own server
    if (blend(place, made.content) && !place.closest("nav")) waiting.add(name(place));
  }
  if (focus !== document.activeElement && focus?.isConnected) focus.focus({ preventScroll: true }); // it was moved
  if (followed && focus.isConnected && !sighted(focus)) focus.scrollIntoView({ block: "nearest" });
  const token = document.querySelector(".workbar input[name=form]")?.value;
  if (token) for (const e of document.querySelectorAll("main [data-live] input[name=form]")) e.value = token;
  if (lost) verbs();
  if (waiting.size > before) say(words.updated.replace("{}", [...waiting].filter(Boolean).join(", ")));
}

// key is what an element is, whatever stands before it: the record that a row names, the
// name of a part of the page, the kind of a sentence or menu.
const key = (e) => e.id || (e.matches?.("tr, li") && e.querySelector("a[href]")?.getAttribute("href"))
  || (e.matches?.("section, article, fieldset") && (e.getAttribute("aria-labelledby") ?? e.getAttribute("aria-label")))
  || (e.matches?.("p, div, dl, table, details") && e.localName + " " + e.className.replace(/\b(tone-\w+|chosen)\b/g, "").trim()) || "";

// blend makes the children of an element those of another and keeps what looks as
// before: with it the focus, what is being typed, and what was opened. It reports
// whether anything changed that people want to hear of.
function blend(from, to) {
  let changed = false;
  let here = from.firstChild;
  for (const next of [...to.childNodes]) {
    const k = key(next);
    if (k && here && key(here) !== k) {
      for (let e = here.nextSibling; e; e = e.nextSibling) {
        if (key(e) === k) {
          from.insertBefore(e, here);
          here = e;
          break;
        }
      }
    }
    if (here && here.nodeName === next.nodeName && key(here) === k) {
      if (sync(here, next)) changed = true;
      here = here.nextSibling;
    } else {
      from.insertBefore(next, here);
      changed = true;
    }
  }
  while (here) {
    const gone = here;
    here = here.nextSibling;
    gone.remove();
    changed = true;
  }
  return changed && !from.closest?.("[data-quiet]");
}

function sync(here, next) {
  if (here.nodeType !== Node.ELEMENT_NODE) {
    if (here.data === next.data) return false;
    here.data = next.data;
    return true;
  }
  if (here === document.activeElement && here.matches("input, textarea, select")) return false;
  const kept = (a) => a === "aria-disabled" || (a === "class" && here.className === "chosen" && !next.className) || (a === "open" && here.nodeName === "DETAILS") || (a === "value" && here.name === "form");
  let changed = false;
  for (const a of here.getAttributeNames()) {
    if (!next.hasAttribute(a) && !kept(a)) here.removeAttribute(a);
  }
  for (const a of next.getAttributeNames()) {
    let text = next.getAttribute(a);
    if (a === "class" && here.classList.contains("chosen")) text += " chosen";
    if (here.getAttribute(a) !== text && !kept(a)) {
      here.setAttribute(a, text);
      changed ||= a === "class";
    }
  }
  return blend(here, next) || changed;
}

function alive(seconds) {
  heard = Date.now();
  if (seconds) confirmed = new Date(seconds * 1000);
  show();
}

function close() {
  source?.close();
  source = null;
  clearTimeout(timer);
}

// follow opens the stream.
function follow() {
  close();
  if (!window.EventSource) return poll();
  polls = 0;
  const s = source = new EventSource(`/live?t=${ticket}`);
  s.addEventListener("live", (event) => {
    const news = JSON.parse(event.data);
    take(news.sections);
    alive(Date.parse(news.at) / 1000);
  });
  s.addEventListener("beat", (event) => alive(Number(event.data)));
  s.addEventListener("open", () => alive());
  s.addEventListener("error", () => { if (s.readyState === EventSource.CLOSED && s === source) poll(); });
}

// poll asks once, and again after a while.
async function poll() {
  close();
  polls++;
  timer = setTimeout(polls < tries ? poll : follow, pause + Math.random() * 10000);
  try {
    const answer = await fetch(`/live?t=${ticket}`, { headers: { Accept: "application/json", ...(tag && { "If-None-Match": tag }) }, cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (answer.status === 401 || answer.status === 403) return renew();
    if (answer.status !== 304) {
      if (!answer.ok) return;
      tag = answer.headers.get("ETag") ?? "";
      for (const topic of await answer.json()) take(topic.sections);
    }
    alive(Date.now() / 1000);
  } catch { /* show says so */ }
}

// renew gets a new ticket with the page, or loads the page again where it is another
// one now.
async function renew() {
  close();
  if (Date.now() - renewed < 60000) {
    timer = setTimeout(renew, 60000);
    return;
  }
  renewed = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(10000) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok || answer.redirected || !page.body.dataset.ticket) return location.reload();
    const sections = {};
    for (const e of page.querySelectorAll("[data-live]")) sections[e.dataset.live] = e.innerHTML;
    take(sections);
    ticket = page.body.dataset.ticket;
    tag = "";
    follow();
  } catch {
    renewed = 0;
    timer = setTimeout(renew, pause);
  }
}

let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = setTimeout(close, unseen);
    return;
  }
  if (!source) {
    heard = Date.now();
    polls ? poll() : follow();
  }
});
window.addEventListener("pagehide", close);
window.addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
window.addEventListener("online", () => { if (source?.readyState === 2 || !source) follow(); });
setInterval(() => { if (!document.hidden) show(); }, 1000);
follow();
