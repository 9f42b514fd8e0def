// The page of a simulated cabinet. It draws what the simulator says and asks it
// to act; it keeps nothing over a reload but the language.
const $ = (id) => document.getElementById(id);
const here = location.pathname.replace(/\/$/, "");
const texts = await (await fetch("/texts.json")).json();

let lang = chooseLanguage(navigator.languages || []);
let state = null; // newest state of the cabinet
let chosen = 0; // number of the door in hand; 0: none chosen yet
let parcel = null; // that waits for the guest: {id, code, doors}
let said = null; // {key, fill, bad} of the line under the buttons
let sending = false;
let last = Promise.resolve(); // ends with the answer to what was asked last
let lost = false;

function chooseLanguage(wanted) {
  for (const w of wanted) {
    const l = w.toLowerCase();
    if (l.startsWith("zh")) return /hant|tw|hk|mo/.test(l) ? "zh-Hant" : "zh-Hans";
    const base = l.split("-")[0];
    if (texts[base]) return base;
  }
  return "en";
}

function t(key, fill = {}) {
  const words = texts[lang][key] ?? texts.en[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (_, k) => fill[k] ?? "");
}

function make(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (k === "onclick") e.addEventListener("click", v);
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  const use = document.createElementNS(ns, "use");
  use.setAttribute("href", "#i-" + name);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

// replace changes children only when they differ, so that focus stays.
function replace(parent, mark, build) {
  mark = lang + JSON.stringify(mark);
  if (parent.dataset.mark === mark) return;
  parent.dataset.mark = mark;
  const at = document.activeElement;
  const id = parent.contains(at) ? at.id : "";
  parent.replaceChildren(...build());
  if (id) $(id)?.focus();
}

function draw() {
  document.documentElement.lang = lang;
  for (const e of document.querySelectorAll("[data-text]")) e.textContent = t(e.dataset.text);
  for (const b of $("languages").children) b.setAttribute("aria-pressed", String(b.dataset.lang === lang));
  $("languages").setAttribute("aria-label", t("language"));
  $("cabinets").setAttribute("aria-label", t("cabinets"));
  $("live").classList.toggle("lost", lost);
  $("live").lastElementChild.textContent = t(lost ? "lost" : "live");
  if (!state) return;
  document.title = `${state.name} · ${t("title")}`;
  $("name").textContent = state.name;
  $("device").textContent = state.code;
  $("doors-title").textContent = t("doors", { name: state.name });
  replace($("cabinets"), state.cabinets, () => state.cabinets.map((c) => {
    const a = make("a", { href: "/" + c.code }, c.name);
    if (c.code === state.code) a.setAttribute("aria-current", "page");
    return a;
  }));
  drawBox();
  drawParcel();
  drawDoor();
  drawSwitches();
  drawFacts();
}

function words(d) {
  const w = [t("is_" + (d.open ? "open" : "closed"))];
  if (d.jammed) w.push(t("is_jammed"));
  return w.join(", ");
}

function drawBox() {
  $("box").classList.toggle("dark", !state.power);
  const n = state.doors.length;
  const columns = n <= 4 ? 1 : n <= 8 ? 2 : 3;
  replace($("box"), [state.doors.map((d) => d.door), state.kiosk], () => {
    const out = [];
    const per = Math.ceil((n + 1) / columns); // the screen takes a place in the middle
    const middle = Math.floor(columns / 2);
    let rest = [...state.doors];
    for (let i = 0; i < columns; i++) {
      const col = make("div", { class: columns === 1 ? "column only" : "column" });
      if (i === middle && state.kiosk) {
        col.append(make("a", { class: "screen", id: "screen", href: state.kiosk, target: "_blank", rel: "noopener" }, make("b", {}, t("screen")), make("span", {}, t("screen_hint"))));
      }
      const take = i === columns - 1 ? rest.length : i === middle ? per - 1 : per;
      for (const d of rest.splice(0, take)) {
        col.append(make("button", { type: "button", id: "door-" + d.door, "data-door": d.door, onclick: () => choose(d.door) },
          make("span", { class: "leaf" }), make("span", { class: "tag" })));
      }
      out.push(col);
    }
    return out;
  });
  $("screen")?.classList.toggle("off", !state.power);
  for (const d of state.doors) {
    const b = $("door-" + d.door);
    b.className = ["door", d.size, d.open && "open", d.jammed && "jammed", d.items.length && "full"].filter(Boolean).join(" ");
    b.setAttribute("aria-pressed", String(d.door === inHand().door));
    replace(b.querySelector(".tag"), [d.open, d.jammed, d.items.length], () => {
      const out = [make("b", {}, t("door", { door: d.door })), make("span", { class: "away" }, t("size_" + d.size)), make("span", {}, t(d.open ? "is_open" : "is_closed"))];
      if (d.jammed) out.push(make("span", {}, icon("jam"), make("span", { class: "word" }, t("is_jammed"))));
      if (d.items.length) out.push(make("span", { class: "items" }, icon("parcel"), make("span", { class: "word" }, t("count", { n: d.items.length }))));
      else out.push(make("span", { class: "away" }, t("empty")));
      return out;
    });
  }
}

function choose(door) {
  chosen = door;
  said = null;
  draw();
}

function drawParcel() {
  const ready = parcel && parcel.id === state.parcel;
  $("try").hidden = !state.guests;
  $("parcel").hidden = !ready;
  $("try-title").textContent = t(ready ? "try" : "no_parcel");
  if (!ready) return;
  $("code").textContent = parcel.code.replace(/(\d{3})(?=\d)/g, "$1 ");
  $("watch").textContent = t("watch", { door: parcel.doors.join(", ") });
  if (state.kiosk) $("screen-link").href = state.kiosk;
  $("screen-link").hidden = !state.kiosk;
}

async function findParcel() {
  const id = state.parcel;
  if (!id || parcel?.id === id) return;
  const r = await fetch(here + "/parcel");
  if (!r.ok) return; // it has just been collected
  parcel = await r.json();
  draw();
}

// keys are the letters for the actions, with a door in focus.
const keys = { close: "C", force: "F", jam: "J", free: "J", put: "P", take: "T" };

// possible lists the actions on a door as it stands, with whether each can be done.
function possible(d) {
  return [
    d.open ? ["close", true] : ["force", true],
    d.jammed ? ["free", true] : ["jam", true],
    ["put", d.open],
    ["take", d.open && d.items.length > 0],
  ];
}

// inHand is the door that the buttons are for: the chosen one, or else that of the
// waiting parcel.
function inHand() {
  const wanted = chosen || (parcel?.id === state.parcel ? parcel?.doors[0] : 0);
  return state.doors.find((x) => x.door === wanted) ?? state.doors[0];
}

function drawDoor() {
  const d = inHand();
  $("hand").classList.toggle("held", chosen > 0); // stays in sight on a phone
  $("door-title").textContent = t("door", { door: d.door });
  $("door-state").textContent = `${t("size_" + d.size)} · ${words(d)} · ${d.items.length ? t("inside", { items: d.items.join(", ") }) : t("empty")}`;
  $("reach").hidden = d.open;
  replace($("acts"), [d, sending], () => possible(d).map(([action, can], i) =>
    make("button", { type: "button", id: "act-" + i, "data-action": action, "aria-disabled": String(!can || sending), onclick: () => act({ action, door: d.door }) },
      make("span", {}, t("act_" + action)), make("kbd", { "aria-hidden": "true" }, keys[action]))));
  const line = said ? t(said.key, said.fill) : "";
  if ($("said").textContent !== line) $("said").textContent = line;
  $("said").classList.toggle("bad", Boolean(said?.bad));
}

function drawSwitches() {
  const all = [["network", state.network], ["power", state.power]].filter(([, on]) => on !== null);
  replace($("switches"), [all, sending], () => all.map(([name, on]) => make("div", { class: "switch" },
    icon(name), make("strong", { id: "label-" + name }, t(name)),
    make("button", { type: "button", id: "switch-" + name, role: "switch", "aria-checked": String(on), "aria-labelledby": "label-" + name, "aria-describedby": "hint-" + name,
      "aria-disabled": String(sending), onclick: () => act({ action: name, on: !on }) }, make("span", { class: "knob" }), make("span", {}, t(on ? "on" : "off"))),
    make("p", { class: "soft small", id: "hint-" + name }, t(name + "_hint")))));
}

function drawFacts() {
  const time = new Intl.DateTimeFormat(lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  replace($("facts"), state.facts, () => {
    if (!state.facts.length) return [make("li", { class: "soft" }, t("nothing"))];
    return [...state.facts].reverse().map((f) => make("li", {}, make("time", { datetime: f.at }, time.format(new Date(f.at))), make("span", {}, t("f_" + f.kind, { door: f.door }))));
  });
}

// act asks the simulator to do something once what was asked before is answered;
// the picture follows from its state.
function act(what) {
  last = last.then(() => ask(what));
}

async function ask(what) {
  const d = state.doors.find((x) => x.door === what.door);
  if (d && !possible(d).some(([a, can]) => a === what.action && can)) return;
  sending = true;
  said = { key: "wait" };
  draw();
  let answer;
  try {
    const r = await fetch(here + "/act", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) });
    answer = await r.json();
  } catch {
    answer = { outcome: "lost" };
  }
  sending = false;
  const suffix = what.on === undefined ? "" : what.on ? "_on" : "_off";
  if (answer.outcome === "ok") said = { key: "said_" + what.action + suffix, fill: { door: what.door } };
  else said = { key: { shut: "shut", lost: "lost" }[answer.outcome] ?? "failed", fill: { door: what.door, why: answer.why }, bad: true };
  draw();
}

$("box").addEventListener("keydown", (e) => {
  const door = Number(e.target.dataset.door);
  if (!door || e.ctrlKey || e.altKey || e.metaKey) return;
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
  if (step) {
    const i = state.doors.findIndex((d) => d.door === door) + step;
    const next = state.doors[(i + state.doors.length) % state.doors.length].door;
    choose(next);
    $("door-" + next).focus();
    e.preventDefault();
    return;
  }
  const d = state.doors.find((x) => x.door === door);
  const found = possible(d).find(([action]) => keys[action] === e.key.toUpperCase());
  if (!found) return;
  chosen = door;
  e.preventDefault();
  act({ action: found[0], door });
});

for (const [code, w] of Object.entries(texts)) {
  $("languages").append(make("button", { type: "button", lang: code, "data-lang": code, onclick: () => { lang = code; sessionStorage.setItem("lang", code); draw(); } }, w.name));
}
if (texts[sessionStorage.getItem("lang")]) lang = sessionStorage.getItem("lang");
draw();

const events = new EventSource(here + "/events");
events.addEventListener("state", (e) => {
  state = JSON.parse(e.data);
  lost = false;
  draw();
  findParcel();
});
events.onerror = () => { lost = true; draw(); };
