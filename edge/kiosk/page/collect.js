// The screens on which staff collect what is overdue or to be sent, and state why they took
// a parcel out. The cabinet knows behind which doors a session may do so.
import { t } from "/words.js";
import { cabinet } from "/drawing.js";
import { make, button, list, names, keypad } from "/screens.js";

export const reasons = ["overdue_return", "handover", "relay", "anomaly", "recovery", "pending_area", "deleted", "destroyed"];
const final = ["deleted", "destroyed"]; // asked twice

const session = (m) => m.staff?.session ?? { collect: [], opened: [], queued: 0 };
const back = (m, to) => button("goback", "back", t("go_back"), () => m.go(to), "big");
const lit = (doors, mark) => new Map(doors.map((d) => [d.door, mark]));

// removable are the doors that the session has opened and shut, behind which something lies.
export const removable = (m) => session(m).opened.filter((d) => d.shut && d.holds);

// staffButtons lead from the staff's view to these screens.
export function staffButtons(m) {
  const due = session(m).collect.length, left = removable(m).length;
  return make("div", { className: "pair" }, Object.assign(button("collect", "pickup", t("collect_n", { n: due }), () => m.go("collect")), { disabled: due === 0 }),
    Object.assign(button("remove", "dropoff", t("remove_n", { n: left }), () => m.go("remove")), { disabled: left === 0 }));
}

function collect(m) {
  const due = session(m).collect;
  return {
    headline: t("collect"), lead: t(due.length ? "collect_lead" : "collect_none"), picture: [cabinet(m.state.doors, lit(due, "lit"))],
    controls: [list("steps", due.map((d) => [make("b", {}, d.label), t("why_" + d.why) + (d.size ? ", " + d.size : "") + (d.packages > 1 ? ", " + t("packages", { n: d.packages }) : "")])),
      Object.assign(button("openall", "door", t("collect_open", { n: due.length }), () => m.collectAll(due), "main big"), { disabled: due.length === 0 || m.busy }), back(m, "staff")],
  };
}

const collectcode = (m) => keypad(m, t("collect"), t("staff_again", { door: names(m.collect.chosen) }), [cabinet(m.state.doors, lit(m.collect.chosen, "lit"))]);

// standing says how far the door is that was opened last: opening, open, shut, failed.
export function standing(m) {
  const now = m.collect.now, seen = session(m).opened.find((d) => d.opening_id === now.opening_id && d.door === now.door);
  if (now.failed) return "failed";
  if (seen) return seen.shut ? "shut" : "open";
  const phase = m.state.openings.find((o) => o.opening_id === now.opening_id)?.doors.find((d) => d.door === now.door)?.phase;
  if (phase === "open") return "open";
  return phase === "failed" || phase === "not_seen" || (!phase && Date.now() - now.asked > 4000) ? "failed" : "opening";
}

function collecting(m) {
  const now = m.collect.now, at = standing(m), door = now.label;
  const lead = { opening: t("opening", { door }), open: t("collect_take", { door }), shut: t("collect_ask", { door }), failed: t("failed", { door }) }[at];
  const answer = (id, icon, words, outcome, mark) => Object.assign(button(id, icon, words, () => m.collected(outcome), "big " + mark), { disabled: m.busy });
  return {
    headline: t("door", { door }), lead, picture: [cabinet(m.state.doors, lit([now], "lit " + (at === "shut" ? "closed" : at)))],
    controls: at === "shut" && !now.over
      ? [answer("taken", "check", t("taken"), "taken", "main"), answer("notfound", "help", t("not_there"), "not_found", ""), answer("refused", "door", t("leave_it"), "refused", "")]
      : [at === "failed" || now.over ? Object.assign(button("goon", "again", t("go_on"), () => m.collectNext(), "main big"), { disabled: m.busy }) : null,
        make("p", { className: "queued" }, t("queued", { n: session(m).queued }))],
  };
}

function collected(m) {
  const { done } = m.collect, rows = [["taken", "sum_taken"], ["not_found", "sum_not_found"], ["refused", "sum_refused"], ["failed", "sum_failed"]].filter(([k]) => done[k].length > 0);
  return {
    headline: t("collect_done"), lead: rows.length ? "" : t("collect_none"),
    picture: [list("sums", rows.map(([k, words]) => [make("strong", {}, t(words) + " "), done[k].join(", ")])), cabinet(m.state.doors, new Map())],
    controls: [button("more", "staff", t("staff"), () => m.go("staff"), "big"), button("leave", "home", t("leave"), () => m.start(), "main big")],
  };
}

function remove(m) {
  const doors = removable(m);
  return {
    headline: t("remove"), lead: t(doors.length ? "remove_lead" : "remove_none"), picture: [cabinet(m.state.doors, lit(doors, "lit"))],
    controls: [make("div", { className: "doors" }, ...doors.map((d) => button("from-" + d.door, "", d.label, () => { m.removing = d; m.go("reason"); }, "", t("packages", { n: Math.max(1, d.packages) })))), back(m, "staff")],
  };
}

function reason(m) {
  const door = m.removing.label;
  return {
    headline: t("remove"), lead: t("remove_why", { door }), picture: [cabinet(m.state.doors, lit([m.removing], "lit"))],
    controls: [make("div", { className: "reasons" }, ...reasons.map((r) => Object.assign(button("why-" + r, "", t("r_" + r), () => {
      m.reason = r;
      final.includes(r) ? m.go("confirm") : m.remove(r);
    }), { disabled: m.busy }))), back(m, "remove")],
  };
}

function confirm(m) {
  return {
    headline: t("r_" + m.reason), lead: t("confirm_lead", { door: m.removing.label }), picture: [cabinet(m.state.doors, lit([m.removing], "lit"))],
    controls: [back(m, "reason"), Object.assign(button("confirmed", "check", t("confirm_yes"), () => m.remove(m.reason), "main big"), { disabled: m.busy })],
  };
}

export const collectScreens = { collect, collectcode, collecting, collected, remove, reason, confirm };
