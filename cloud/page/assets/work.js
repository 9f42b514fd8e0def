// Keys of the console. Without it every page works.
// g and a letter leads to a page, / to the search, n to the form for a new record,
// j and k move along the rows, x chooses one, i imports a file, Enter opens one, Escape leaves a field, Ctrl+Enter
// sends a form. Single letters do nothing in fields.

const rows = () => [...document.querySelectorAll(".sheet .rows tbody tr")];
let waiting = 0; // until when a letter after g counts

function editing(e) {
  return e.closest?.("input, textarea, select, [contenteditable]");
}

function choose(step) {
  const list = rows();
  if (!list.length) return;
  const now = list.findIndex((r) => r.classList.contains("chosen"));
  const next = Math.min(Math.max(now + step, 0), list.length - 1);
  for (const r of list) r.classList.remove("chosen");
  list[next].classList.add("chosen");
  list[next].querySelector("a")?.focus();
}

document.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
    e.target.closest?.("form")?.requestSubmit();
    return;
  }
  if (e.ctrlKey || e.altKey || e.metaKey) return;
  if (e.key === "Escape") {
    for (const d of document.querySelectorAll("details.menu[open]")) d.open = false;
    if (editing(e.target)) e.target.blur();
    return;
  }
  if (editing(e.target) || localStorage.getItem("postern-keys") === "off") return;
  if (Date.now() < waiting) {
    waiting = 0;
    const to = document.querySelector(`.rail [data-key="${CSS.escape(e.key)}"]`);
    if (to) {
      e.preventDefault();
      location.href = to.href;
    }
    return;
  }
  switch (e.key) {
    case "g": waiting = Date.now() + 1500; break;
    case "/": e.preventDefault(); document.getElementById("find")?.focus(); break;
    case "i": document.querySelector("main [data-key=i]")?.click(); break;
    case "x": document.querySelector(".sheet .rows tr.chosen .pickcell input")?.click(); break;
    case "n": document.querySelector("main [data-key=n]")?.click(); break;
    case "j": choose(1); break;
    case "k": choose(-1); break;
  }
});

// A menu closes when something else is chosen.
document.addEventListener("click", (e) => {
  for (const d of document.querySelectorAll("details.menu[open]")) if (!d.contains(e.target)) d.open = false;
});

// The first field with a problem is where a person goes on.
document.querySelector("[aria-invalid=true]:not(.sample *)")?.focus();

// What was done can be taken back for ten seconds.
const undo = document.querySelector("form.undo");
if (undo) setTimeout(() => undo.remove(), 10000);
