// Checks timelines without leaving the page. Without it the form is sent, and
// a page answers.

const form = document.getElementById("checker");
const place = document.getElementById("verdict");
if (form && place) {
  const text = form.elements.timeline;
  for (const link of form.querySelectorAll("[data-sample]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      text.value = link.dataset.sample;
      place.replaceChildren();
      text.focus();
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });

  let latest = 0; // an answer that was overtaken is not shown
  const check = async () => {
    const mine = ++latest;
    place.setAttribute("aria-busy", "true");
    let shown;
    try {
      const answer = await fetch(form.dataset.check, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Accept-Language": document.documentElement.lang },
        body: text.value,
        signal: AbortSignal.timeout(15000),
      });
      const said = await answer.json();
      shown = answer.ok ? verdict(said) : [notice(said.message || place.dataset.trouble, said.details)];
    } catch {
      shown = [notice(place.dataset.trouble)];
    }
    if (mine !== latest) return;
    place.replaceChildren(...shown);
    place.removeAttribute("aria-busy");
    place.scrollIntoView({ block: "nearest" });
  };
}

function make(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

function notice(words, at) {
  const text = make("span", {}, words);
  if (at?.line) text.append(" ", make("code", { lang: "en" }, `${at.line}:${at.column} ${at.problem}`));
  return make("p", { class: "notice" }, make("span", { class: "mark", "aria-hidden": "true" }, "!"), text);
}

function verdict(said) {
  const words = place.dataset;
  const out = [make("div", { class: "card seal " + (said.conformant ? "yes" : "no") },
    make("p", { class: "word" }, said.conformant ? words.yes : words.no), make("p", { class: "level" }, `${words.level} ${said.level}`))];
  if (said.errors.length) out.push(make("h3", {}, `${words.errors} (${said.errors.length})`), list("bad", said.errors));
  if (said.warnings.length) out.push(make("h3", {}, `${words.warnings} (${said.warnings.length})`), list("warn", said.warnings));
  if (out.length === 1) out.push(make("p", {}, words.clean));
  return out;
}

function list(kind, findings) {
  return make("ol", { class: "findings " + kind }, ...findings.map((f) => make("li", {},
    make("p", { class: "at" }, make("a", { href: `${place.dataset.rules}#${f.code}` }, f.code), " ", make("code", {}, f.path)),
    make("p", { class: "what", lang: "en" }, f.message), make("p", { class: "hint" }, f.hint))));
}
