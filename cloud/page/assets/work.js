// Keys of the console. Without it every page works.
// g and a letter leads to a page. j and k move along the rows of a list, the items of
// work or the doors of a cabinet, as the arrow keys do once one is chosen; letters of
// links (data-key) press those of what is chosen first. Single keys do nothing in
// fields, and nothing at all when they are switched off.

const off = "postern-keys";
const keys = document.getElementById("keys");
let waiting = 0; // until when a letter after g counts

const items = () => [...document.querySelectorAll(".sheet .rows tbody tr, .todo, .cabview .door")];
const chosen = () => items().find((x) => x.contains(document.activeElement)) ?? items().find((x) => x.classList.contains("chosen"));
const editing = (e) => e.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

function choose(step) {
  const list = items();
  if (!list.length) return;
  const next = list[Math.min(Math.max(list.indexOf(chosen()) + step, 0), list.length - 1)];
  for (const x of list) x.classList.toggle("chosen", x === next);
  next.querySelector("h3 a, a")?.focus();
}

// linkOf is what a letter presses: a link of the open drawer, of the drawer of the chosen
// door, a verb of the chosen row, or a link of the page.
function linkOf(letter) {
  const key = `[data-key="${CSS.escape(letter)}"]`;
  const row = chosen();
  const drawer = document.querySelector(".drawer:target") ?? (row?.matches(".door") ? document.querySelector(row.querySelector("a").hash) : null);
  if (drawer?.querySelector(key)) return drawer.querySelector(key);
  const verb = row?.closest("[data-keys]")?.dataset.keys.split(" ").find((x) => x.startsWith(letter + "="));
  const to = row?.querySelector("a.whole");
  if (verb && to) return Object.assign(document.createElement("a"), { href: to.pathname + verb.slice(letter.length + 1) });
  return [...document.querySelectorAll("main " + key)].find((x) => !x.closest(".drawer"));
}

// further opens the menu of a page or of the chosen item, or leads to the first verb.
function further() {
  const menu = (chosen() ?? document).querySelector("details.marking > summary") ?? document.querySelector("main .head details.menu > summary");
  if (menu) {
    menu.parentElement.open = true;
    (menu.parentElement.querySelector("a, button") ?? menu).focus();
  } else document.querySelector("main .head .verbs a, main [href$='tab=service']")?.focus();
}

// step presses the first step of the chosen item of work; elsewhere it leads to the list.
function step() {
  if (document.querySelector(".rail [data-alone=e]")?.getAttribute("aria-current") !== "page") return document.querySelector(".rail [data-alone=e]")?.click();
  if (!chosen()) choose(1);
  chosen()?.querySelector(".verbs a")?.click();
}

// showKeys lists all keys: those of every page stand there, those of links are added.
function showKeys() {
  for (const list of keys.querySelectorAll("[data-keys-of]")) {
    list.replaceChildren(...[...document.querySelectorAll(list.dataset.keysOf)].map((link) => {
      const line = document.createElement("div"), names = document.createElement("dt"), what = document.createElement("dd");
      for (const k of [list.dataset.before, link.dataset.key]) if (k) names.append(Object.assign(document.createElement("kbd"), { textContent: k }), " ");
      what.textContent = (link.querySelector("span") ?? link).textContent;
      line.append(names, what);
      return line;
    }));
    list.previousElementSibling.hidden = !list.children.length;
  }
  document.getElementById("keys-on").checked = localStorage.getItem(off) !== "off";
  keys.showModal();
}

function escape(e) {
  const menu = document.querySelector("details.menu[open]");
  for (const d of document.querySelectorAll("details.menu[open]")) d.open = false;
  if (menu) menu.querySelector("summary").focus();
  else if (editing(e.target)) e.target.blur();
  else document.querySelector(".drawer:target .head a")?.click();
}

document.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
    e.target.closest?.("form")?.requestSubmit();
    return;
  }
  if (e.ctrlKey || e.altKey || e.metaKey || keys?.open) return;
  if (e.key === "Escape") return escape(e);
  if (editing(e.target)) return;
  if ((e.key === "ArrowDown" || e.key === "ArrowUp") && items().some((x) => x.contains(e.target))) {
    e.preventDefault();
    return choose(e.key === "ArrowDown" ? 1 : -1);
  }
  if (localStorage.getItem(off) === "off") return;
  if (Date.now() < waiting) {
    waiting = 0;
    const to = document.querySelector(`.rail [data-key="${CSS.escape(e.key)}"]`);
    if (to) {
      e.preventDefault();
      location.href = to.href;
    }
    return;
  }
  const focus = (x) => { if (x) { e.preventDefault(); x.focus(); } };
  switch (e.key) {
    case "g": waiting = Date.now() + 1500; break;
    case "/": focus(document.getElementById("find")); break;
    case "f": focus(document.querySelector(".filters :is(input:not([type=hidden]), select)")); break;
    case "x": chosen()?.querySelector(".pickcell input")?.click(); break;
    case "j": choose(1); break;
    case "k": choose(-1); break;
    case ".": e.preventDefault(); further(); break;
    case "e": step(); break;
    case "?": showKeys(); break;
    default: (e.key.length === 1 ? linkOf(e.key) ?? document.querySelector(`.rail [data-alone="${CSS.escape(e.key)}"]`) : null)?.click();
  }
});

const show = document.getElementById("keys-show");
if (show && keys) {
  show.hidden = false;
  show.addEventListener("click", showKeys);
  document.getElementById("keys-on").addEventListener("change", (e) => localStorage.setItem(off, e.target.checked ? "on" : "off"));
}

// A menu closes when something else is chosen.
document.addEventListener("click", (e) => {
  for (const d of document.querySelectorAll("details.menu[open]")) if (!d.contains(e.target)) d.open = false;
});

// The first field with a problem is where a person goes on.
document.querySelector(":is([aria-invalid=true], [data-wrong]):not(.sample *)")?.focus();

// What was done can be taken back for ten seconds.
const undo = document.querySelector("form.undo");
if (undo) setTimeout(() => undo.remove(), 10000);
