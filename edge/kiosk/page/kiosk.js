// The cabinet's page. A code lives in the input until it is sent, and nowhere
// else; the page keeps nothing over a reload.
const $ = (id) => document.getElementById(id);
const texts = await (await fetch("/texts.json")).json();

let lang = choose(navigator.languages || []);
let state = null;      // newest state of the cabinet
let chosen = new Set(); // doors of the staff view
let staff = false;
let sending = false;
let lost = false;      // the program does not answer
let said = null;       // {key, fill} of the message on show
let quiet = 0;         // timer that takes the message away
const seen = new Map(); // opening id → doors that were open, to tell of closing

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
  const words = texts[lang][key] ?? texts.en[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (_, k) => fill[k] ?? "");
}

function clock(seconds) {
  const two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

function say(key, fill, keep) {
  said = key ? { key, fill } : null;
  clearTimeout(quiet);
  if (key && !keep) quiet = setTimeout(() => say(null), 15000);
  draw();
}

function make(tag, text, props = {}) {
  const e = document.createElement(tag);
  e.textContent = text;
  return Object.assign(e, props);
}

function badge(e, good, text) {
  e.textContent = text;
  e.className = "badge " + (good ? "good" : "bad");
}

// keep replaces children only when they differ, so that focus stays.
function keep(parent, mark, build) {
  if (parent.dataset.mark === mark) return;
  parent.dataset.mark = mark;
  parent.replaceChildren(...build());
}

function draw() {
  document.documentElement.lang = lang;
  document.title = t("title");
  for (const e of document.querySelectorAll("[data-text]")) e.textContent = t(e.dataset.text);
  $("prompt").textContent = t(staff ? "staff_prompt" : "prompt");
  $("staff").textContent = t(staff ? "leave_staff" : "staff");
  $("staff").setAttribute("aria-pressed", String(staff));
  $("staffdoors").hidden = !staff;
  for (const b of $("languages").children) b.setAttribute("aria-pressed", String(b.dataset.lang === lang));
  for (const b of $("keys").children) if (b.dataset.key.length > 1) b.textContent = t(b.dataset.key);
  if (!state) {
    $("message").textContent = said ? t(said.key, said.fill) : "";
    return;
  }
  const token = state.on_site || "";
  $("onsite").hidden = !token;
  keep($("onsite"), lang + token, () => [document.createTextNode(t("on_site") + " "), make("strong", token.slice(0, 3) + " " + token.slice(3))]);
  $("device").textContent = state.device_code;
  badge($("online"), state.online, t(state.online ? "online" : "offline"));
  badge($("store"), state.store.state === "ok", t("store_" + state.store.state));
  for (const e of [$("code"), $("enter"), ...$("keys").children]) e.disabled = lost || sending;
  let line = said ? t(said.key, said.fill) : "";
  if (lost) line = t("store");
  else if (sending && state.store.state === "working") line = t("store_working");
  else if (!said && staff && state.staff_locked_seconds) line = t("locked_staff", { time: clock(state.staff_locked_seconds) });
  else if (!said && !staff && state.locked_seconds) line = t("locked_typed", { time: clock(state.locked_seconds) });
  if ($("message").textContent !== line) $("message").textContent = line;
  drawOpenings();
  drawDoors();
}

function drawOpenings() {
  const words = { opening: "opening", open: "is_open", closed: "closed", failed: "failed", not_seen: "not_seen" };
  keep($("openings"), lang + JSON.stringify(state.openings.map((o) => [o.opening_id, o.doors])), () =>
    state.openings.flatMap((o) => o.doors.map((d) => make("li", t(words[d.phase], { door: d.label })))));
  keep($("actions"), lang + JSON.stringify([state.reopen.map((r) => [r.opening_id, r.doors]), state.openings.map((o) => [o.opening_id, o.can_be_done])]), () => [
    ...state.openings.filter((o) => o.can_be_done).map((o) =>
      make("button", t("done"), { type: "button", onclick: () => send("/api/done", { opening_id: o.opening_id }) })),
    ...state.reopen.map((r) =>
      make("button", t("reopen", { door: r.doors.map((d) => d.label).join(", ") }), { type: "button", onclick: () => send("/api/reopen", { opening_id: r.opening_id }) })),
  ]);
  keep($("exceptions"), lang + JSON.stringify(state.exceptions), () => state.exceptions.map((e) =>
    make("li", t(texts.en[e.type] ? e.type : "exception", { door: label(e.door) }))));
}

function label(door) {
  return state?.doors.find((d) => d.door === door)?.label ?? String(door || "");
}

function drawDoors() {
  if (!staff) return;
  keep($("doors"), lang + JSON.stringify(state.doors) + [...chosen], () => state.doors.map((d) => {
    const b = make("button", d.label, { type: "button", onclick: () => { chosen.has(d.door) ? chosen.delete(d.door) : chosen.add(d.door); draw(); } });
    b.setAttribute("aria-pressed", String(chosen.has(d.door)));
    const marks = [t("state_" + d.state)];
    if (d.blocked) marks.push(t("blocked_mark"));
    b.append(make("small", marks.join(", ")));
    return b;
  }));
}

// closing tells that doors of an opening have been closed once it has ended.
function closing(next) {
  for (const o of next.openings) {
    const open = o.doors.filter((d) => d.phase === "open" || d.phase === "closed").map((d) => d.label);
    if (open.length) seen.set(o.opening_id, open);
  }
  const running = new Set(next.openings.map((o) => o.opening_id));
  for (const [id, doors] of seen) {
    if (running.has(id)) continue;
    seen.delete(id);
    say("closed", { door: doors.join(", ") });
  }
}

async function send(path, body) {
  if (sending) return;
  sending = true;
  draw();
  let answer;
  try {
    const r = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    answer = await r.json();
  } catch {
    answer = { outcome: "uncertain" };
  }
  sending = false;
  tell(answer, path);
  $("code").focus();
}

// tell says what became of a code or a press.
function tell(answer, path) {
  const doors = (answer.doors || []).map((d) => d.label).join(", ");
  if (answer.outcome === "ok") {
    say(path === "/api/done" ? null : "opening", { door: doors });
    chosen = new Set();
    if (staff) leaveStaff();
  } else {
    const key = answer.outcome === "locked_out" ? "locked_" + (answer.budget || "typed") : answer.outcome;
    say(texts.en[key] ? key : "not_active", { n: answer.tries_left, door: doors, time: clock(Math.max(answer.locked_seconds || 0, 0)) });
  }
}

function enter(event) {
  event.preventDefault();
  const value = $("code").value.trim();
  $("code").value = "";
  if (!value) return;
  if (/^\d+$/.test(value)) send("/api/code", staff ? { code: value, doors: [...chosen] } : { code: value });
  else send("/api/scan", { text: value });
}

function leaveStaff() {
  staff = false;
  chosen = new Set();
  draw();
}

for (const key of ["1", "2", "3", "4", "5", "6", "7", "8", "9", "clear", "0", "back"]) {
  const b = make("button", key, { type: "button", onclick: () => {
    const c = $("code");
    if (key === "clear") c.value = "";
    else if (key === "back") c.value = c.value.slice(0, -1);
    else if (c.value.length < 8) c.value += key;
    c.focus();
  } });
  b.dataset.key = key;
  if (key.length > 1) b.className = "word";
  $("keys").append(b);
}
for (const [code, words] of Object.entries(texts)) {
  const b = make("button", words.name, { type: "button", lang: code, onclick: () => { lang = code; draw(); } });
  b.dataset.lang = code;
  $("languages").append(b);
}
$("form").addEventListener("submit", enter);
$("staff").addEventListener("click", () => { staff = !staff; chosen = new Set(); draw(); $("code").focus(); });
// A scanner types into whatever has the focus: let it be the input.
document.addEventListener("keydown", (e) => {
  if (e.key.length === 1 && !e.ctrlKey && !e.altKey && !e.metaKey && e.key !== " " && document.activeElement !== $("code")) $("code").focus();
});

const events = new EventSource("/api/events");
events.addEventListener("state", (e) => {
  const next = JSON.parse(e.data);
  lost = false;
  closing(next);
  state = next;
  draw();
});
events.addEventListener("notice", (e) => {
  const n = JSON.parse(e.data);
  if (n.what === "scanned") {
    tell(n.answer, "/api/scan"); // a scanner of the cabinet's own
  } else if (n.what === "message") {
    said = null;
    texts[lang].message_now = n.text;
    say("message_now", {});
  } else if (texts.en[n.what] && n.what !== "open") say(n.what, { door: n.label });
});
events.onerror = () => { lost = true; draw(); };
draw();
$("code").focus();
