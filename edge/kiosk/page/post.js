// The page of a post that scans labels: what is stored, and the choice of the step.
import { camera } from "/camera.js";

const $ = (id) => document.getElementById(id);
const texts = await (await fetch("/post-texts.json")).json();
const outcomes = ["ok", "repeated", "ambiguous", "unreadable", "refused", "failed"];

let lang = choose(navigator.languages || []);
let state = null;  // newest state of the post
let lost = false;  // the program does not answer
let problem = false; // the last choice of a step was not taken
let heard = null;  // number of the scan that was sounded last
const eye = (await (await fetch("/operator.json")).json()).camera ? camera(() => t("camera")) : null; // of the screen
let audio = null;  // nothing sounds before someone asks for it

function choose(wanted) {
  for (const w of wanted) {
    const l = w.toLowerCase();
    if (l.startsWith("zh")) return /hant|tw|hk|mo/.test(l) ? "zh-Hant" : "zh-Hans";
    const base = l.split("-")[0];
    if (texts[base]) return base;
  }
  return "en";
}

function t(key, fill = {}) {
  return (texts[lang][key] ?? key).replace(/\{(\w+)\}/g, (_, k) => fill[k] ?? "");
}

function make(tag, text, name = "") {
  const e = document.createElement(tag);
  e.textContent = text;
  e.className = name;
  return e;
}

function clock(ms, seconds) {
  return new Date(ms).toLocaleTimeString(lang, { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
}

function badge(e, good, text) {
  e.textContent = text;
  e.className = "badge " + (good ? "good" : "bad");
}

// keep replaces children only when they differ, so that nothing is read out twice.
function keep(parent, mark, build) {
  if (parent.dataset.mark === mark) return;
  parent.dataset.mark = mark;
  parent.replaceChildren(...build());
}

function draw() {
  document.documentElement.lang = lang;
  eye?.relabel();
  document.title = t("title");
  for (const e of document.querySelectorAll("[data-text]")) e.textContent = t(e.dataset.text);
  $("languages").setAttribute("aria-label", t("languages"));
  for (const b of $("languages").children) b.setAttribute("aria-pressed", String(b.dataset.lang === lang));
  $("sound").textContent = t(audio ? "sound_on" : "sound_off");
  $("sound").setAttribute("aria-pressed", String(audio !== null));
  if (!state) return;
  $("device").textContent = state.device_code;
  badge($("online"), state.online, t(state.online ? "online" : "offline"));
  badge($("store"), state.store === "ok", t("store_" + state.store));
  $("waiting").textContent = t("waiting", { n: state.waiting });
  keep($("scanners"), lang + JSON.stringify(state.scanners), () => state.scanners.map((s) => {
    const line = make("li", `${s.post} · ${t(s.step)}`);
    if ((s.steps ?? []).length > 1) line.append(choice(s));
    return line;
  }));
  const newest = lost ? null : state.scans[0];
  $("newest").className = "result " + (lost ? "failed" : newest ? newest.outcome : "none");
  keep($("newest"), lang + lost + (newest?.n ?? ""), () => [lost ? t("lost") : newest ? t(newest.outcome) : t("ready"), ...(newest?.text ? [make("span", newest.text)] : [])]);
  $("problem").textContent = problem ? t("step_problem") : "";
  $("since").textContent = t("counts", { time: clock(state.since_ms) });
  keep($("counts"), lang + JSON.stringify(state.counts), () => outcomes.map((o) => {
    const box = make("div", "", state.counts[o] ? o : "");
    box.append(make("dt", t("short_" + o)), make("dd", String(state.counts[o])));
    return box;
  }));
  keep($("scans"), lang + (state.scans[0]?.n ?? ""), () => state.scans.map((s) => {
    const line = make("li", "", s.outcome);
    line.append(make("time", clock(s.at_ms, true)), make("strong", t("short_" + s.outcome)), make("span", s.text ?? "", "what"));
    return line;
  }));
}

// choice has a button for each step of a scanner.
function choice(scanner) {
  const group = make("span", "", "steps");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", t("step"));
  for (const step of scanner.steps) {
    const b = make("button", t(step));
    b.type = "button";
    b.setAttribute("aria-pressed", String(step === scanner.step));
    b.addEventListener("click", () => chooseStep(scanner.name, step));
    group.append(b);
  }
  return group;
}

// chooseStep asks for a step; the state that follows shows what came of it.
async function chooseStep(scanner, step) {
  const r = await fetch("/api/post/step", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ scanner, step }) }).catch(() => null);
  problem = !r?.ok;
  draw();
}

// sound plays two rising tones for what is stored, one for a repeat, a low one for
// what needs another scan.
function sound(outcome) {
  if (!audio) return;
  const tones = { ok: [880, 1320], repeated: [880] }[outcome] ?? [180, 180];
  tones.forEach((hertz, i) => {
    const tone = audio.createOscillator();
    tone.type = outcome === "ok" || outcome === "repeated" ? "sine" : "square";
    tone.frequency.value = hertz;
    tone.connect(audio.destination);
    tone.start(audio.currentTime + i * 0.16);
    tone.stop(audio.currentTime + i * 0.16 + 0.12);
  });
}

for (const [code, words] of Object.entries(texts)) {
  const b = make("button", words.name);
  b.type = "button";
  b.lang = code;
  b.dataset.lang = code;
  b.addEventListener("click", () => { lang = code; draw(); });
  $("languages").append(b);
}
$("sound").addEventListener("click", () => {
  if (audio) {
    audio.close();
    audio = null;
  } else {
    audio = new AudioContext();
    sound("repeated");
  }
  draw();
});

if (eye) {
  $("camera").append(eye.view);
  eye.turn(true);
}
const events = new EventSource("/api/post/events");
events.addEventListener("state", (e) => {
  const next = JSON.parse(e.data);
  const newest = next.scans[0]?.n ?? 0;
  if (heard !== null && newest < heard) heard = 0; // the program has started again
  if (heard !== null && newest > heard) sound(next.scans[0].outcome);
  heard = newest;
  lost = false;
  state = next;
  draw();
});
events.onerror = () => { lost = true; draw(); };
draw();
