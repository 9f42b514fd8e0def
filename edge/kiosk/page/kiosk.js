// The cabinet's page: its state, what changes it, and when it goes back to the start.
// A code lives in the input until it is sent, and nowhere else; the page keeps
// nothing over a reload.
import { t, has, clock, language, setLanguage } from "/words.js";
import { choice, play, speak, hasVoice } from "/sound.js";
import { camera } from "/camera.js";
import { screens, standing, make, button, leavable, stillOpen, longest } from "/screens.js";
import { collectScreens, standing as doorStanding } from "/collect.js";

const $ = (id) => document.getElementById(id);
const operator = await (await fetch("/operator.json")).json();
const ofStaff = ["staff", "staffopen", "learn", "languages", ...Object.keys(collectScreens)];
const idle = 30000, openIdle = 60000, staffIdle = 105000, answerWithin = 15000, startsWithin = 2000;

const m = {
  operator, state: null, staff: null, screen: "start", before: "start", busy: false, lost: false, play,
  mine: new Set(),      // openings of the person at the page
  dismissed: new Set(), // openings whose person has left the page to others
  absent: new Set(),    // those of them whose person has walked away from an open door
  chosen: new Set(),    // doors that staff chose
  collect: null,        // the collection that runs: {chosen, now, done}
  removing: null,       // the door behind which staff took a parcel out
  reason: "",           // why they did
  last: null,           // the opening that ended last: {id, kind, doors, opened}
  go, start, enter, choose, speakIn, collectAll, collectNext, collected, remove,
  eye: operator.camera && camera(() => t("camera")), // of the screen
  done: (id) => send("/api/done", { opening_id: id }),
  trouble: null,        // the door that a courier wants to leave: {id, door}; without them one is chosen
  label: "",            // that a courier scanned before their code
  sizes: null,          // what a courier chooses from: {choice, size, sizes}
  pick: (size) => send("/api/size", { choice: m.sizes.choice, size }),
  learning: 0,          // door whose wiring staff learn
  learn: (path, body) => learn(path, body),
  receipt: null,        // of the opening that ended last: {id, link, rows}
  none: new Set(),      // openings that were left while no other compartment was free
  another: (id, door, reason) => send("/api/another", { opening_id: id, door, reason }),
  doubt: (trouble) => { m.trouble = trouble; go("trouble"); },
  reopen: (id) => send("/api/reopen", { opening_id: id }),
};
let token = "";     // of the staff session
let said = null;    // {key, fill} or {text} of the message on show
let read = { headline: "", lead: "" }; // what was read aloud of this screen
let quiet = 0, touched = Date.now(), asked = 0, stayed = 0;
const seen = new Map(); // opening id → {kind, doors, opened}

function go(screen) {
  if (m.screen !== "languages") m.before = m.screen;
  if (!ofStaff.includes(screen) && token) leaveStaff();
  if (!["dropoff", "send", "return", "languages"].includes(screen)) m.label = "";
  m.screen = screen;
  said = null;
  read = { headline: "", lead: "" };
  touched = Date.now();
  if (screen === "finished" && m.receipt?.id !== m.last.id) findReceipt(m.last.id);
  render();
  ($("code") ?? $("headline")).focus();
}

// readAloud says what the screen says: all of it as a screen comes, then what changes.
function readAloud() {
  const now = { headline: $("headline").textContent, lead: $("lead").textContent };
  const words = Object.keys(now).filter((k) => now[k] && now[k] !== read[k]).map((k) => now[k]).join(". ");
  if (words) speak(words, Boolean(read.headline));
  read = now;
}

// findReceipt asks for the receipt of an opening; one that left and took nothing has none.
async function findReceipt(id) {
  m.receipt = null;
  const [status, receipt] = await ask("/api/receipt", { opening_id: id }).catch(() => []);
  if (status !== 200 || m.last?.id !== id) return;
  m.receipt = { id, ...receipt };
  render();
}

// start shows the start screen; for the next person with the operator's choices.
function start(next = true) {
  for (const id of m.mine) m.dismissed.add(id);
  m.mine.clear();
  m.none.clear();
  m.last = m.receipt = null;
  if (next) resetChoices();
  go("start");
}

function resetChoices() {
  setLanguage();
  choice.sound = true;
  choice.voice = false;
  delete document.documentElement.dataset.contrast;
  delete document.documentElement.dataset.size;
}

const chosenAnything = () => document.documentElement.dataset.contrast || document.documentElement.dataset.size || choice.voice || !choice.sound || $("tools").dataset.first !== language();

function say(key, fill = {}) {
  said = { key, fill };
  clearTimeout(quiet);
  quiet = setTimeout(() => { said = null; render(); }, 15000);
  render();
  speak($("message").textContent);
}

// keep replaces children only when they differ, so that focus and input stay.
function keep(parent, mark, build) {
  if (parent.dataset.mark === mark) return;
  const focus = parent.contains(document.activeElement) && document.activeElement.id;
  parent.dataset.mark = mark;
  parent.replaceChildren(...build().filter(Boolean));
  if (focus) ($(focus) ?? $("headline")).focus();
}

function render() {
  document.title = t("title");
  for (const e of document.querySelectorAll("[data-text]")) e.textContent = t(e.dataset.text);
  $("operator").textContent = operator.name || t("title");
  drawTools();
  if (!m.state) {
    $("lead").textContent = t("wait");
    return;
  }
  const [mark, words] = standing(m);
  const now = mark === "good" ? "" : words;
  if ($("status").textContent !== now) $("status").textContent = now;
  $("status").className = mark;
  $("status").hidden = m.screen === "start" || mark === "good";
  document.body.dataset.screen = m.screen;
  if (m.eye) {
    m.eye.relabel();
    m.eye.turn(["pickup", "dropoff", "send", "return", "staffcode"].includes(m.screen) && !m.lost);
  }
  const s = screens[m.screen](m), look = m.screen + language() + document.documentElement.dataset.size;
  for (const [id, text] of [["headline", s.headline], ["lead", s.lead], ["message", messageNow()]]) if ($(id).textContent !== text) $(id).textContent = text;
  keep($("picture"), look + s.picture.filter(Boolean).map((e) => e.outerHTML).join(), () => s.picture);
  readAloud();
  keep($("controls"), look + s.controls.filter(Boolean).map((e) => e.outerHTML).join(), () => s.controls);
}

function messageNow() {
  if (m.lost) return t("works_not");
  if (said) return said.text ?? t(said.key, said.fill);
  const locked = { pickup: m.state.locked_seconds, dropoff: m.state.locked_seconds, send: m.state.locked_seconds, return: m.state.locked_seconds, staffcode: m.state.staff_locked_seconds, staffopen: m.state.staff_locked_seconds, collectcode: m.state.staff_locked_seconds }[m.screen];
  if (locked) return t(m.screen.startsWith("staff") || m.screen === "collectcode" ? "locked_staff" : "locked_typed", { time: clock(locked) });
  return m.busy && m.state.store === "working" ? t("store_working") : "";
}

function drawTools() {
  const root = document.documentElement.dataset;
  const pressed = (b, on) => (b.setAttribute("aria-pressed", String(on)), b);
  keep($("tools"), [language(), m.screen === "start", root.contrast, root.size, choice.sound, choice.voice, hasVoice()].join(), () => [
    Object.assign(button("home", "home", t("home"), () => start(false)), { hidden: m.screen === "start" }),
    button("language", "language", t("language"), () => go("languages")),
    button("size", "size", t("size"), () => { root.size = { undefined: "2", 2: "3" }[root.size] ?? ""; if (!root.size) delete root.size; render(); }),
    pressed(button("contrast", "contrast", t("contrast"), () => { root.contrast ? delete root.contrast : root.contrast = "high"; render(); }), Boolean(root.contrast)),
    pressed(button("sound", choice.sound ? "sound" : "silent", t("tones"), () => { choice.sound = !choice.sound; play("key"); render(); }), choice.sound),
    hasVoice() && pressed(button("voice", "voice", t("voice"), () => { choice.voice = !choice.voice; read.headline = read.lead = ""; render(); }), choice.voice),
    button("staff", "staff", t("staff"), () => go("staffcode"), "quiet"),
  ]);
}

// speakIn goes back to the screen of before, or to what became of its openings meanwhile.
function speakIn(code) {
  setLanguage(code);
  const over = m.before === "flow" && m.mine.size === 0;
  if (over || m.before === "finished") return go(m.last ? "finished" : "start");
  go(m.before);
}

function choose(door) {
  m.chosen.has(door) ? m.chosen.delete(door) : m.chosen.add(door);
  render();
}

// enter sends what was typed or what a keyboard scanner typed.
function enter(value) {
  const at = value.search(/P[UX]:/i); // of a pickup code, or of a signed QR code
  const text = (at > 0 ? value.slice(at) : value).trim();
  if (!text) return;
  const label = m.label && { label: m.label };
  if (/P[UX]:/i.test(text)) send("/api/scan", { text, ...label });
  else if (["start", "dropoff"].includes(m.screen) && !/^\d{1,8}$/.test(text)) send("/api/label", { text });
  else if (!/^\d+$/.test(text)) send("/api/scan", { text });
  else if (m.screen === "collectcode") send("/api/code", { code: text, doors: m.collect.chosen.map((d) => d.door), queue: true }, collectOpened);
  else send("/api/code", m.screen === "staffopen" ? { code: text, doors: [...m.chosen] } : { code: text, ...label });
}

async function ask(path, body, method = "POST") {
  const headers = { "Content-Type": "application/json", ...(token && { Authorization: "Bearer " + token }) };
  const r = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  return [r.status, r.status === 204 ? null : await r.json()];
}

async function send(path, body, then = tell) {
  if (m.busy) return;
  m.busy = true;
  touched = Date.now();
  render();
  let answer;
  try {
    [, answer] = await ask(path, body);
  } catch {
    answer = { outcome: "uncertain" };
  }
  m.busy = false;
  touched = Date.now();
  then(answer, path, body);
}

// refused says why something was not done.
function refused(answer) {
  play("error");
  const doors = (answer.doors || []).map((d) => d.label).join(", ");
  const key = answer.outcome === "locked_out" ? "locked_" + (answer.budget || "typed") : answer.outcome;
  say(has(key) ? key : "not_active", { n: answer.tries_left, door: doors, time: clock(Math.max(answer.locked_seconds || 0, 0)) });
  $("code")?.focus();
}

// A collection: the doors open one after the other, each once what lay behind the one
// before is answered.
function collectAll(due) {
  m.collect = { chosen: due, now: null, done: { taken: [], not_found: [], refused: [], failed: [] }, at: "" };
  go("collectcode");
}

function collectNext() {
  const { now, done } = m.collect;
  if (now && !now.over && doorStanding(m) === "failed") done.failed.push(now.label);
  send("/api/staff/next", {}, collectOpened);
}

function collectOpened(answer) {
  const door = (answer.doors || [])[0];
  if (answer.outcome === "queue_done") return go("collected");
  if (answer.outcome === "ok" && door) {
    m.collect.now = { ...door, opening_id: answer.opening_id, asked: Date.now() };
    m.mine.add(answer.opening_id); // left with the session: it is not shown to who comes next
    return go("collecting");
  }
  if (!door || answer.outcome === "busy" && m.collect.now?.door === door.door) return refused(answer);
  m.collect.now = { ...door, failed: true };
  go("collecting");
  refused(answer);
}

function collected(outcome) {
  const now = m.collect.now;
  send("/api/staff/remove", { opening_id: now.opening_id, door: now.door, outcome, removal_reason: "collected" }, (answer) => {
    if (answer.outcome !== "ok") {
      now.over = ["not_inside", "no_opening", "not_due"].includes(answer.outcome);
      return refused(answer);
    }
    now.over = true;
    m.collect.done[outcome].push(now.label);
    collectNext();
  });
}

function remove(why) {
  const { door, label, opening_id } = m.removing;
  send("/api/staff/remove", { opening_id, door, outcome: "taken", removal_reason: why }, (answer) => {
    if (answer.outcome !== "ok") return refused(answer);
    go("staff");
    say("removed", { door: label });
  });
}

// tell says what became of a code or a press.
function tell(answer, path, body) {
  const doors = (answer.doors || []).map((d) => d.label).join(", ");
  if (answer.staff_token) beginStaff(answer.staff_token);
  if (answer.visitor && token) leaveStaff(); // its door opens for the person who stands here now
  if (answer.outcome === "ok" && answer.opening_id) {
    m.chosen.clear();
    m.dismissed.delete(answer.opening_id);
    if (path === "/api/done") return render();
    m.mine.add(answer.opening_id);
    if (token) {
      if (path === "/api/code") stay();
      go(m.learning ? "learn" : "staff");
      return say("opening", { door: doors });
    }
    return follow(answer);
  }
  if (answer.outcome === "choose_size") {
    m.sizes = answer;
    return go("sizes");
  }
  if (answer.outcome === "known_label") {
    go("dropoff");
    m.label = body.text;
    return render();
  }
  if (answer.outcome === "unknown_label") {
    play("error");
    m.label = "";
    return say(operator.phone ? "unknown_label_call" : "unknown_label", { phone: operator.phone });
  }
  if (answer.outcome === "no_other") {
    m.none.add(m.trouble.id);
    m.mine.add(answer.opening_id);
    play("error");
    go("flow");
    return say("no_other", { door: doors });
  }
  if (answer.outcome === "staff") {
    if (!answer.staff_token) { // a scanner's answer goes to every page, so it begins no session
      go("staffcode");
      return;
    }
    return go("staff");
  }
  if (answer.outcome === "ok") return render();
  refused(answer);
}

// follow shows an opening that has just begun; what ended at once shows its end.
function follow(answer) {
  if (!seen.has(answer.opening_id)) seen.set(answer.opening_id, { kind: "pickup", doors: answer.doors || [], opened: new Set() });
  go("flow");
  asked = Date.now();
  setTimeout(() => observe(m.state), startsWithin + 100); // nothing changes for one that ended before it was seen
}

// observe notes what the openings do, for tones and for what is shown at their end.
function observe(next) {
  for (const o of next.openings) {
    const was = seen.get(o.opening_id) ?? { opened: new Set() };
    const moved = was.doors?.some((d, i) => d.phase !== o.doors[i]?.phase);
    if (moved && m.mine.has(o.opening_id)) touched = Date.now(); // by the hand of the person at the page
    if (moved && m.absent.has(o.opening_id) && m.screen === "start") { // they are back
      m.absent.delete(o.opening_id);
      m.dismissed.delete(o.opening_id);
    }
    for (const d of o.doors) {
      if (d.phase !== "open" && d.phase !== "closed") continue;
      if (!was.opened.has(d.door)) play("open");
      was.opened.add(d.door);
    }
    seen.set(o.opening_id, Object.assign(was, { kind: o.kind, doors: o.doors, left: o.left, outgoing: o.outgoing, running: true }));
    if (m.screen === "start" && !m.mine.has(o.opening_id) && !m.dismissed.has(o.opening_id)) {
      m.mine.add(o.opening_id); // begun elsewhere, such as by a recipient's telephone, or before a reload
      setTimeout(() => m.mine.has(o.opening_id) && m.screen === "start" && go("flow"));
    }
  }
  const moved = m.screen === "collecting" && JSON.stringify(next.openings);
  if (moved && moved !== m.collect.at) m.collect.at = moved, touch(); // a door moves by a hand
  const running = new Set(next.openings.map((o) => o.opening_id));
  for (const [id, was] of seen) {
    if (running.has(id) || (!was.running && Date.now() - asked < startsWithin)) continue;
    seen.delete(id);
    m.dismissed.delete(id);
    m.absent.delete(id);
    if (!m.mine.delete(id)) continue;
    play(was.opened.size && stillOpen(next, was.doors).length === 0 ? "closed" : "error");
    if (!was.left || !m.last) m.last = { id, ...was }; // one that was left for another is not what a person waits for
    if (["flow", "trouble"].includes(m.screen) && m.mine.size === 0) setTimeout(() => m.last && go("finished"));
  }
}

function beginStaff(next) {
  token = next;
  stayed = Date.now();
  m.staff = m.collect = m.removing = null;
  watch();
}

async function watch() {
  const mine = token;
  while (token && token === mine) {
    try {
      const [status, view] = await ask("/api/staff", undefined, "GET");
      if (token !== mine) return;
      if (status === 401) return start();
      m.staff = view;
      render();
    } catch {
      // the program starts again: the session is over with it
    }
    await new Promise((done) => setTimeout(done, 500));
  }
}

function stay() {
  stayed = Date.now();
  ask("/api/staff/stay", {}).catch(() => {});
}

// learn begins or ends the learning of a door; the end goes back to the staff's screen.
async function learn(path, body) {
  touch();
  const [status, answer] = await ask(path, body).catch(() => [0, { outcome: "uncertain" }]);
  if (status !== 200) return status === 401 ? start() : say(has(answer.outcome) ? answer.outcome : "uncertain");
  if (path.endsWith("learned")) {
    m.learning = 0;
    go("staff");
  }
}

function leaveStaff() {
  ask("/api/staff/leave", {}).catch(() => {});
  token = "";
  m.staff = m.collect = m.removing = null;
  m.learning = 0;
  m.chosen.clear();
}

// idleCheck goes back to the start when the person has gone, also from an open door: the start
// names it, and shows its opening again once the door moves.
function idleCheck() {
  const open = ["flow", "trouble"].includes(m.screen) && m.state?.openings.some((o) => m.mine.has(o.opening_id) && o.doors.some((d) => d.phase === "open" || d.phase === "opening"));
  const still = $("still"), limit = token ? staffIdle : open ? openIdle : idle;
  const holds = m.busy || (m.screen === "finished" && m.state?.reopen.some((r) => r.opening_id === m.last.id));
  if (holds) touched = Math.max(touched, Date.now() - limit + 5000);
  const left = touched + limit + answerWithin - Date.now();
  if (m.screen === "start") {
    if (left < answerWithin && chosenAnything()) resetChoices(), render();
    return still.open && still.close();
  }
  if (left > answerWithin) return still.open && still.close();
  if (left <= 0) {
    still.close();
    if (open) for (const id of m.mine) m.absent.add(id);
    return start();
  }
  $("still-left").textContent = t("idle_left", { n: Math.ceil(left / 1000) });
  if (!still.open) {
    still.showModal();
    speak(t("idle"));
  }
}

function touch() {
  touched = Date.now();
  if (token && Date.now() - stayed > 5000) stay();
}

let typed = "", typedAt = 0; // what is typed outside the input: by a keyboard scanner
document.addEventListener("keydown", (e) => {
  touch();
  if ($("still").open) return; // it has keys of its own
  if (e.key === "Escape" && m.screen !== "start") return start(false);
  if (document.activeElement === $("code") || e.ctrlKey || e.altKey || e.metaKey) return;
  if (Date.now() - typedAt > 3000) typed = "";
  typedAt = Date.now();
  if (e.key === "Enter" && typed.length > 5) {
    e.preventDefault();
    enter(typed);
    typed = "";
  } else if (e.key.length === 1 && e.key !== " ") {
    if (typed.length < longest) typed += e.key;
    if ($("code") && /\d/.test(e.key) && typed.length === 1 && !$("code").disabled) typed = "", $("code").focus(); // the key goes into the input
  }
});
document.addEventListener("pointerdown", touch);
$("stay").addEventListener("click", () => { touch(); $("still").close(); });
$("still").addEventListener("cancel", touch);
window.speechSynthesis?.addEventListener?.("voiceschanged", render);
if (operator.color) document.documentElement.style.setProperty("--brand", operator.color);
setLanguage();
$("tools").dataset.first = language();
setInterval(idleCheck, 500);

const events = new EventSource("/api/events");
events.addEventListener("state", (e) => {
  const next = JSON.parse(e.data);
  m.lost = false;
  observe(next);
  m.state = next;
  if (m.screen === "trouble" && leavable(m).length === 0 && m.mine.size > 0) go("flow");
  render();
});
events.addEventListener("notice", (e) => {
  const n = JSON.parse(e.data);
  if (n.what === "scanned") {
    if (!n.answer.visitor) touch();
    tell(n.answer, "/api/scan"); // a scanner of the cabinet's own
  } else if (n.what === "label") {
    touch();
    ["start", "dropoff"].includes(m.screen) ? enter(n.text) : tell({ outcome: "not_a_code" });
  } else if (n.what === "message") {
    say("", {});
    said.text = n.text;
    render();
  } else if (has(n.what) && n.what !== "open") {
    play("error");
    say(n.what, { door: n.label });
  }
});
events.onerror = () => { m.lost = true; render(); };
render();
