// The screens: what each shows and what people can touch there. A screen gives the
// headline, the lead, what is drawn, and the controls; it changes nothing itself.
import { t, texts, language, clock } from "/words.js";
import { cabinet, icon, symbol } from "/drawing.js";
import { collectScreens, staffButtons } from "/collect.js";

// longest is how much a keyboard scanner types at most: a signed QR code.
export const longest = 1500;

export function make(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (k in e) e[k] = v;
    else e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

export const button = (id, name, words, onclick, className = "", hint = "") =>
  make("button", { id, type: "button", className, onclick }, name && icon(name), make("span", {}, words, hint && make("small", {}, hint)));

export const list = (className, items) => make("ul", { className }, ...items.map((i) => make("li", {}, ...[i].flat())));
export const names = (doors) => doors.map((d) => d.label).join(", ");

// contact is how the operator is reached; nothing when it is nowhere set.
function contact(operator, className) {
  const items = [];
  if (operator.phone) items.push([icon("phone"), make("strong", {}, operator.phone)]);
  if (operator.email) items.push([icon("mail"), make("strong", {}, operator.email)]);
  return items.length ? list(className, items) : null;
}

// standing says in plain words what works and what does not.
export function standing(m) {
  if (m.lost || m.state.store === "full" || m.state.store === "broken") return ["bad", t("works_not")];
  if (m.state.doors.length === 0) return ["warn", t("no_doors")];
  return m.state.online ? ["good", t("works")] : ["warn", t("works_offline")];
}

function onSite(m) {
  const token = m.state.on_site;
  return token && make("p", { className: "onsite", id: "onsite" }, t("on_site") + " ", make("strong", {}, token.slice(0, 3) + " " + token.slice(3)));
}

function notice(m) {
  return m.state.notice && make("p", { className: "notice", id: "notice", dir: "auto" }, m.state.notice);
}

function running(m) {
  const doors = m.state.openings.flatMap((o) => o.doors).filter((d) => d.phase === "open");
  return doors.length > 0 && list("running", doors.map((d) => t("is_open", { door: d.label })));
}

function start(m) {
  const [mark, words] = standing(m);
  const open = m.state.left_open.filter((d) => !m.state.openings.some((o) => o.doors.some((x) => x.door === d.door)));
  return {
    headline: t("welcome"), lead: t("prompt"),
    picture: [make("p", { className: "standing " + mark }, words), notice(m), mark === "bad" && contact(m.operator, "contact"), running(m), open.length > 0 && list("running", open.map((d) => t("left_open", { door: d.label }))),
      cabinet(m.state.doors), onSite(m)],
    controls: [make("div", { className: "tiles" },
      button("pickup", "pickup", t("pickup"), () => m.go("pickup"), "tile main wide", t("pickup_hint")),
      button("send", "send", t("send"), () => m.go("send"), "tile", t("send_hint")),
      button("return", "again", t("return"), () => m.go("return"), "tile", t("return_hint")),
      button("dropoff", "dropoff", t("dropoff"), () => m.go("dropoff"), "tile", t("dropoff_hint")),
      button("help", "help", t("help"), () => m.go("help"), "tile", t("help_hint")))],
  };
}

// keypad is a screen with a code to type.
export function keypad(m, headline, lead, picture) {
  const input = make("input", { id: "code", type: "password", inputMode: "none", autocomplete: "off", autocapitalize: "off", spellcheck: false, maxLength: longest, disabled: m.busy || m.lost });
  input.setAttribute("aria-label", t("code"));
  const show = button("show", "show", t("show"), () => {
    const hidden = input.type === "password";
    input.type = hidden ? "text" : "password";
    show.setAttribute("aria-pressed", String(hidden));
    input.focus();
  }, "key");
  show.setAttribute("aria-pressed", "false");
  const press = (key) => {
    if (key === "clear") input.value = "";
    else if (key === "back") input.value = input.value.slice(0, -1);
    else if (input.value.length < (m.screen === "dropoff" ? 24 : 8)) input.value += key; // a label may be of digits
    m.play("key");
    input.focus();
  };
  const keys = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "clear", "0", "back"].map((key) =>
    make("button", { id: "key-" + key, type: "button", className: key.length > 1 ? "key word" : "key", onclick: () => press(key), disabled: m.busy || m.lost }, key.length > 1 ? t(key) : key));
  const form = make("form", { id: "form", autocomplete: "off", onsubmit: (e) => { e.preventDefault(); const v = input.value; input.value = ""; m.enter(v); } },
    make("div", { className: "entry" }, input, show), make("div", { id: "keys" }, ...keys),
    make("button", { id: "enter", type: "submit", className: "main", disabled: m.busy || m.lost }, m.busy ? t("wait") : t("open")));
  return { headline, lead, picture: [m.eye && !["staffopen", "collectcode"].includes(m.screen) && m.eye.view, ...picture], controls: [form] };
}

const pickup = (m) => keypad(m, t("pickup"), t("pickup_lead"), [running(m), cabinet(m.state.doors), onSite(m)]);
const dropoff = (m) => keypad(m, t("dropoff"), m.label ? t("label_lead", { label: m.label }) : t("dropoff_lead") + " " + t("label_hint"), [running(m), cabinet(m.state.doors)]);
const send = (m) => keypad(m, t("send"), t("send_lead"), [running(m), cabinet(m.state.doors)]);
const giveBack = (m) => keypad(m, t("return"), t("send_lead"), [running(m), cabinet(m.state.doors)]);
const staffcode = (m) => keypad(m, t("staff"), t("staff_lead"), [running(m), cabinet(m.state.doors)]);
const staffopen = (m) => keypad(m, t("staff"), t("staff_again", { door: names(m.state.doors.filter((d) => m.chosen.has(d.door))) }), [cabinet(m.state.doors, new Map([...m.chosen].map((n) => [n, "lit"])))]);

const phases = { opening: "opening", open: "is_open", closed: "closed", failed: "failed", not_seen: "not_seen" };

// brings reports whether openings of a kind are for putting a parcel in.
const brings = (kind) => kind === "deposit" || kind === "reassign";

// sizes lets a courier choose the size of the compartment before a door opens.
function sizes(m) {
  const { size, sizes } = m.sizes, of = new Set(sizes.map((x) => x.size));
  return {
    headline: t("size_choose"), lead: t("size_lead", { size }), picture: [cabinet(m.state.doors, new Map(m.state.doors.filter((d) => d.size === size && of.has(size)).map((d) => [d.door, "lit"])))],
    controls: [make("div", { className: "languages sizes" }, ...sizes.map((x) => button("size-" + x.size, "", x.size, () => m.pick(x.size), x.size === size ? "main" : "", t("size_free", { n: x.free })))),
      button("back", "home", t("home"), () => m.start(), "big")],
  };
}

// leavable are the open doors that a courier may leave for another compartment.
export const leavable = (m) => m.state.openings.filter((o) => m.mine.has(o.opening_id)).flatMap((o) => o.doors.filter((d) => d.can_be_left).map((d) => ({ id: o.opening_id, ...d })));

// leaves are the buttons by which a courier says that a compartment cannot take the parcel.
function leaves(m) {
  const doors = leavable(m);
  if (doors.length > 1) return [button("trouble", "help", t("trouble_any"), () => m.doubt({}), "big", t("trouble_hint"))];
  return doors.flatMap((d) => [d.can_be_larger && button("larger-" + d.door, "dropoff", t("larger"), () => m.another(d.id, d.door, "too_small"), "big", t("larger_hint")),
    button("trouble-" + d.door, "help", t("trouble"), () => m.doubt(d), "big", t("trouble_hint"))]);
}

// trouble lets a courier say which compartment cannot take the parcel, and why.
function trouble(m) {
  const doors = leavable(m), d = doors.find((d) => d.id === m.trouble.id && d.door === m.trouble.door);
  const lit = new Map((d ? [d] : doors).map((d) => [d.door, "lit open"])), back = button("back", "back", t("go_back"), () => m.go("flow"), "big");
  if (!d) return { headline: t("trouble_any"), lead: t("trouble_which"), picture: [cabinet(m.state.doors, lit)], controls: [...doors.map((d) => button("which-" + d.door, "door", t("door", { door: d.label }), () => m.doubt(d), "big")), back] };
  return {
    headline: t("door", { door: d.label }), lead: t("trouble_what", { door: d.label }), picture: [cabinet(m.state.doors, lit)],
    controls: [doors.length > 1 && d.can_be_larger && button("wrong-too_small", "dropoff", t("larger"), () => m.another(d.id, d.door, "too_small"), "big"),
      ...["occupied", "dirty", "broken"].map((why) => button("wrong-" + why, "", t("wrong_" + why), () => m.another(d.id, d.door, why), "big")), back],
  };
}

// flow shows the doors of this person's openings, one after the other.
function flow(m) {
  const openings = m.state.openings.filter((o) => m.mine.has(o.opening_id)), doors = openings.flatMap((o) => o.doors);
  const left = new Set(openings.filter((o) => o.left).flatMap((o) => o.doors)), stays = doors.filter((d) => !left.has(d));
  const now = stays.find((d) => d.phase === "open") ?? stays.find((d) => d.phase === "opening") ?? doors.find((d) => d.phase === "open") ?? doors.find((d) => d.phase === "opening") ?? doors.find((d) => d.phase === "not_seen") ?? doors[0];
  if (!now) return { headline: t("wait"), lead: "", picture: [cabinet(m.state.doors)], controls: [] };
  const { kind, outgoing } = openings.find((o) => o.doors.includes(now));
  const lead = now.phase !== "open" ? t(phases[now.phase], { door: now.label }) : kind === "pickup" ? t("take", { door: now.label }) : left.has(now) ? t("take_back", { door: now.label }) : brings(kind) ? t(outgoing ? "put_outgoing" : "put", { door: now.label }) : t("is_open", { door: now.label });
  const lit = new Map(doors.map((d) => [d.door, d === now ? "lit " + d.phase : d.phase]));
  return {
    headline: t("door", { door: now.label }), lead,
    picture: [cabinet(m.state.doors, lit)],
    controls: [list("steps", doors.map((d) => [make("b", { className: d.phase }, d.label), t(left.has(d) && d.phase === "open" ? "take_back" : phases[d.phase], { door: d.label })])),
      ...leaves(m),
      ...openings.filter((o) => o.can_be_done && !o.doors.some((d) => d.phase === "open" || d.phase === "opening")).map((o, i) => button(i ? "done-" + o.opening_id : "done", "check", t("done"), () => m.done(o.opening_id), "main big"))],
  };
}

const reopens = (m, items) => items.map((r) => button("reopen-" + r.opening_id, "again", t("reopen", { door: names(r.doors) }), () => m.reopen(r.opening_id), "big"));

// receipt is the symbol that a person may take along.
const receipt = (m) => m.receipt?.id === m.last.id && make("figure", { className: "receipt", id: "receipt" }, symbol(m.receipt.rows, t("receipt")),
  make("figcaption", {}, make("strong", {}, t("receipt")), t(m.receipt.link ? "receipt_link" : "receipt_text")));

// stillOpen are those of some doors that stand open after their opening.
export const stillOpen = (state, doors) => doors.filter((d) => state.left_open.some((x) => x.door === d.door));

function finished(m) {
  const { doors, opened, kind, outgoing } = m.last, failed = doors.filter((d) => !opened.has(d.door)), open = stillOpen(m.state, doors);
  const words = open.length > 0 ? [t("door", { door: names(open) }), t("left_open", { door: names(open) })] : m.none.has(m.last.id) ? [t("no_other_title"), t("no_other_lead")] : opened.size === 0 ? [t("not_open"), t("not_open_lead", { door: names(failed) })] : [t("thanks"), failed.length ? t("not_open_lead", { door: names(failed) }) : t(outgoing ? "all_closed_outgoing" : "all_closed", { door: names(doors) })];
  return {
    headline: words[0], lead: words[1], picture: [(opened.size === 0 || m.none.size > 0) && contact(m.operator, "contact"), receipt(m), cabinet(m.state.doors, new Map(doors.map((d) => [d.door, open.includes(d) ? "lit open" : opened.has(d.door) ? "closed" : "failed"])))],
    controls: [...reopens(m, m.state.reopen.filter((r) => r.opening_id === m.last.id)),
      failed.length > 0 && button("again", "again", t("again"), () => m.go(outgoing ? "send" : brings(kind) ? "dropoff" : "pickup"), opened.size ? "big" : "main big"),
      brings(kind) && !outgoing && button("next", "dropoff", t("next"), () => m.go("dropoff"), "big"),
      button("finish", "check", t("finish"), () => m.start(), opened.size ? "main big" : "big"), failed.length > 0 && button("help", "help", t("help"), () => m.go("help"), "big")],
  };
}

function help(m) {
  return {
    headline: t("help"), lead: m.operator.phone || m.operator.email ? t("help_lead") : "",
    picture: [contact(m.operator, "contact large"), make("p", { className: "number" }, t("locker", { code: m.state.device_code })),
      ...["door", "code", "close"].flatMap((k) => [make("h2", {}, t("help_" + k)), make("p", {}, t("help_" + k + "_text"))])],
    controls: [...reopens(m, m.state.reopen), button("pickup", "pickup", t("pickup"), () => m.go("pickup"), "big"), button("dropoff", "dropoff", t("dropoff"), () => m.go("dropoff"), "big"), button("back", "home", t("home"), () => m.start(false), "main big")],
  };
}

function languages(m) {
  return {
    headline: t("language"), lead: "", picture: [cabinet(m.state.doors)],
    controls: [make("div", { className: "languages" }, ...Object.entries(texts).map(([code, words]) => {
      const b = make("button", { id: "language-" + code, type: "button", lang: code, onclick: () => m.speakIn(code) }, words.name);
      b.setAttribute("aria-pressed", String(code === language()));
      return b;
    }))],
  };
}

// staff shows what a staff code lets staff see, and lets them choose doors.
function staff(m) {
  const v = m.staff;
  if (!v) return { headline: t("staff"), lead: t("wait"), picture: [], controls: [] };
  const h = v.health ?? {}, pairs = (o) => Object.entries(o ?? {}).map(([k, x]) => `${k} ${x}`).join(", ") || "–";
  const facts = [["fact_link", t(v.online ? "linked" : "not_linked")], ["fact_store", `${t("store_" + v.store.state)} (${v.store.filled_percent} %)`], ["fact_waiting", v.store.waiting.join(" + ")],
    ["fact_list", v.code_list], ["fact_config", v.config_version], ["fact_boards", pairs(h.board_errors)], ["fact_versions", pairs(h.versions)]];
  const lit = new Map(v.doors.map((d) => [d.door, (m.chosen.has(d.door) ? "lit " : "") + d.state]));
  return {
    headline: t("staff"), lead: t("staff_doors"),
    picture: [make("dl", { className: "facts" }, ...facts.flatMap(([k, x]) => [make("dt", {}, t(k)), make("dd", {}, String(x))])), cabinet(m.state.doors, lit)],
    controls: [make("div", { className: "doors" }, ...v.doors.map((d) => {
      const b = make("button", { id: "door-" + d.door, type: "button", onclick: () => m.choose(d.door) }, d.label, make("small", {}, t("state_" + d.state) + (d.blocked ? ", " + t("blocked_mark") : "")));
      b.setAttribute("aria-pressed", String(m.chosen.has(d.door)));
      return b;
    })), make("button", { id: "openchosen", type: "button", className: "main", disabled: m.chosen.size === 0, onclick: () => m.go("staffopen") }, t("staff_open", { n: m.chosen.size })), staffButtons(m),
    m.chosen.size === 1 && button("learn", "door", t("learn"), () => { m.learning = [...m.chosen][0]; m.go("learn"); }, "big"),
    button("leave", "home", t("leave"), () => m.start(), "big")],
  };
}

// learn shows which switch moves while staff open a door, and what that says of its wiring.
function learn(m) {
  const d = m.state.doors.find((d) => d.door === m.learning), l = m.staff?.learn?.door === m.learning ? m.staff.learn : null;
  if (!d) return staff(m); // a new layout has come
  const bit = (b) => (b === undefined ? "–" : b ? "1" : "0"), wiring = (w) => `${w.board} ${w.channel}, ${t(w.inverted ? "inverted" : "not_inverted")}`;
  const facts = l ? [["learn_layout", wiring(l.layout)], ["learn_bits", `${bit(l.switch_bit)}, ${bit(l.item_bit)}`],
    ["learn_moved", l.moves.slice(0, 8).map((x) => `${x.board} ${x.channel} ${x.bit === "item" ? "◇" : "●"} ${x.set ? "0→1" : "1→0"}`).join("; ") || "–"], ...(l.needs ? [["learn_needs", wiring(l.needs)]] : [])] : [];
  return {
    headline: t("door", { door: d.label }), lead: l ? t("learned_" + l.result, { door: d.label }) : t("learn_lead", { door: d.label }),
    picture: [facts.length > 0 && make("dl", { className: "facts", id: "learned" }, ...facts.flatMap(([k, x]) => [make("dt", {}, t(k)), make("dd", {}, x)])), l?.needs && make("p", {}, t("learn_note")), cabinet(m.state.doors, new Map([[d.door, "lit"]]))],
    controls: [button("begin", "again", t(l ? "learn_again" : "learn_begin"), () => m.learn("/api/staff/learn", { door: m.learning }), l ? "big" : "main big"),
      l && button("byLock", "door", t("learn_open"), () => { m.chosen.clear(); m.chosen.add(m.learning); m.go("staffopen"); }, "big"),
      button("learned-done", "check", t("done"), () => m.learn("/api/staff/learned", {}), l && l.result !== "waiting" ? "main big" : "big")],
  };
}

export const screens = { ...collectScreens, learn, start, pickup, dropoff, send, return: giveBack, staffcode, staffopen, sizes, flow, trouble, finished, help, languages, staff };
export { clock };
