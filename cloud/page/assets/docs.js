// Searches the operations and sends calls from their pages. The token lives in its field
// and nowhere else: not in the address, not in storage, not in what is copied. So that it
// outlives a step to another operation, links between these pages change the page in its
// place. Without this script every page is read as it stands.

const parts = ["header.bar", "main.docs", "footer.foot"]; // of a page, that a step changes
let token;

let reading;
const description = () => reading ??= fetch(document.querySelector("main.docs").dataset.description, { credentials: "omit" }).then((r) => r.ok ? r.json() : Promise.reject(r.status)).catch((e) => { reading = null; throw e; });

// begin gives a page what it has with a script.
function begin() {
  for (const e of document.querySelectorAll("[data-scripted]")) e.hidden = false;
  token = document.getElementById("token") ?? { value: "" };
  const find = document.getElementById("find");
  if (find) filter(find);
  const one = document.querySelector("article.op");
  if (one) equip(one).catch(() => {});
}

// filter shows the operations in which every typed word stands somewhere.
function filter(find) {
  const operations = [...document.querySelectorAll("li.op")];
  const texts = new Map(operations.map((o) => [o, `${o.id} ${o.textContent} ${o.dataset.words} ${o.closest("section").querySelector("h2").textContent}`.toLowerCase()]));
  const count = document.getElementById("count");
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const o of operations) {
      o.hidden = !words.every((w) => texts.get(o).includes(w));
      if (!o.hidden) shown++;
    }
    for (const s of document.querySelectorAll(".ops > section:not(.card)")) {
      s.hidden = !s.querySelector("li.op:not([hidden])");
      document.querySelector(`.areas a[href="#${CSS.escape(s.getAttribute("aria-labelledby"))}"]`).parentElement.hidden = s.hidden;
    }
    count.textContent = shown === Number(count.dataset.all) ? shown : `${shown} / ${count.dataset.all}`;
    document.getElementById("none").hidden = shown > 0;
  });
}

// step changes to another page of the description; what was typed as a token stays.
let latest = 0, shown = location.pathname + location.search;
async function step(to, push) {
  const mine = ++latest;
  try {
    const answer = await fetch(to, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== latest) return; // overtaken
    if (!answer.ok || parts.some((p) => !page.querySelector(p))) throw new Error("another kind of page");
    const kept = token.value;
    for (const p of parts) document.querySelector(p).replaceWith(document.adoptNode(page.querySelector(p)));
    document.title = page.title;
    if (push) history.pushState(null, "", to);
    shown = location.pathname + location.search;
    begin();
    token.value = kept;
    const at = document.getElementById(decodeURIComponent(to.hash.slice(1)));
    if (at) at.scrollIntoView();
    else {
      scrollTo(0, 0);
      document.querySelector("main.docs h1").focus({ preventScroll: true });
    }
  } catch {
    location.assign(to);
  }
}
const isDocs = (path) => path === "/docs" || path.startsWith("/docs/operations/");
document.addEventListener("click", (e) => {
  const a = e.target.closest("a[href]");
  if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || !a.closest(parts.slice(0, 2).join())) return;
  const to = new URL(a.href);
  if (to.origin !== location.origin || !isDocs(to.pathname) || to.pathname === location.pathname && to.hash) return;
  e.preventDefault();
  step(to, true);
});
addEventListener("popstate", () => {
  if (isDocs(location.pathname) && shown !== location.pathname + location.search) step(new URL(location.href), false);
});

// Operations once had addresses behind the one of the list.
function leave() {
  const o = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (location.pathname === "/docs" && o?.matches("li.op")) location.replace(o.querySelector("a").href);
}
addEventListener("hashchange", leave);
begin();
leave();

function make(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// equip gives an operation the form that calls it.
async function equip(place) {
  const all = await description();
  const operation = all.paths[place.dataset.path][place.dataset.method.toLowerCase()];
  if (operation.requestBody && !operation.requestBody.content["application/json"]) return; // files are not sent from here
  const made = document.getElementById("call").content.cloneNode(true);
  const form = made.querySelector("form");
  const said = made.querySelector(".said");
  const id = (name) => `${place.id}-${name}`;
  said.setAttribute("aria-label", `${said.getAttribute("aria-label")}: ${place.id}`); // one of many on the page

  const inputs = (operation.parameters ?? []).map((p) => {
    const input = field(p, id(p.in + "-" + p.name));
    form.querySelector(".inputs").append(make("div", {}, make("label", { for: input.id }, make("code", {}, p.name), " ", make("span", { class: "hush" }, p.in)), input));
    return [p, input];
  });
  const content = operation.requestBody?.content;
  const media = form.querySelector(".media select");
  const body = form.querySelector("textarea");
  if (content) {
    labelled(form.querySelector(".media"), media, id("media"));
    labelled(form.querySelector(".body"), body, id("body"));
    media.append(...Object.keys(content).map((m) => make("option", {}, m)));
    media.value = "application/json";
    form.querySelector(".body").hidden = false;
    form.querySelector(".media").hidden = media.length < 2;
    const { example, schema } = content["application/json"];
    body.value = JSON.stringify(example ?? skeleton(all, schema), null, 2);
    body.rows = Math.min(18, body.value.split("\n").length + 1);
  }
  if (place.dataset.risk === "high") {
    form.querySelector(".sure").hidden = false;
    form.querySelector(".sure input").required = true;
  }

  const request = () => {
    let path = place.dataset.path;
    const query = new URLSearchParams();
    const headers = { "Accept-Language": document.documentElement.lang };
    for (const [p, input] of inputs) {
      if (p.in === "path") path = path.replace(`{${p.name}}`, encodeURIComponent(input.value));
      else if (input.value === "") continue;
      else if (p.in === "query") query.append(p.name, input.value);
      else headers[p.name] = input.value;
    }
    if (content && body.value.trim()) headers["Content-Type"] = media.value;
    return { method: place.dataset.method, url: path + (query.size ? "?" + query : ""), headers, body: headers["Content-Type"] && body.value, secret: !("open" in place.dataset) };
  };
  let running;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    running?.abort();
    const mine = running = new AbortController();
    said.setAttribute("aria-busy", "true");
    const shown = await call(request(), said.dataset, AbortSignal.any([mine.signal, AbortSignal.timeout(60000)]));
    if (mine !== running) return; // overtaken
    said.replaceChildren(...shown);
    said.removeAttribute("aria-busy");
  });
  const copied = form.querySelector(".copied");
  form.querySelector(".curl").addEventListener("click", async () => {
    const command = curl(request());
    copied.replaceChildren(make("code", {}, command));
    await navigator.clipboard.writeText(command).then(() => copied.prepend(copied.dataset.copied + " "), () => {});
  });
  place.querySelector(".try").replaceChildren(form, said);
}

function labelled(box, control, id) {
  control.id = id;
  box.querySelector("label").htmlFor = id;
}

// field is the control of one parameter.
function field(p, id) {
  const required = p.required ? "" : undefined;
  if (p.schema.enum) {
    return make("select", { id, required }, make("option", { value: "" }, "—"), ...p.schema.enum.map((v) => make("option", {}, v)));
  }
  // Dots alone would lead to another address.
  const pattern = p.in === "path" ? "(?!\\.{1,2}$).+" : undefined;
  return make("input", { id, required, pattern, type: "text", inputmode: [p.schema.type].flat().includes("integer") ? "numeric" : undefined, autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
}

// skeleton is a body with its required members, for filling in.
function skeleton(all, schema, depth = 0) {
  if (schema?.$ref) return skeleton(all, all.components.schemas[schema.$ref.split("/").pop()], depth);
  const kind = [schema?.type].flat()[0];
  if (schema?.enum) return schema.enum[0];
  if (kind === "object") {
    return depth > 5 ? {} : Object.fromEntries((schema.required ?? []).map((name) => [name, skeleton(all, schema.properties[name], depth + 1)]));
  }
  return { string: "", integer: 0, number: 0, boolean: false, array: [] }[kind] ?? null;
}

// call sends a request and gives what there is to show of the answer.
async function call(r, words, signal) {
  const headers = new Headers();
  const began = performance.now();
  try {
    for (const [name, value] of Object.entries(r.headers)) headers.set(name, value);
    if (token.value.trim() && r.secret) headers.set("Authorization", `Bearer ${token.value.trim()}`);
    const answer = await fetch(r.url, { method: r.method, headers, body: r.body || undefined, credentials: "omit", cache: "no-store", signal });
    const text = await answer.text();
    return told(answer, text, Math.round(performance.now() - began), words);
  } catch (e) {
    return [notice(`${words.failed} (${e.message})`)];
  }
}

function told(answer, text, took, words) {
  let value;
  try { value = JSON.parse(text); } catch { /* shown as it came */ }
  const out = [make("p", { class: "line" }, make("strong", { class: "status " + (answer.ok ? "good" : "bad") }, `${answer.status} ${answer.statusText}`.trim()),
    make("span", { class: "hush" }, `${took} ms · ${new TextEncoder().encode(text).length} B`))];
  if (!answer.ok && typeof value?.message === "string") out.push(notice(value.message));
  if (answer.ok && typeof value?.access_token === "string") {
    const use = make("button", { type: "button", class: "quiet use" }, words.use);
    use.addEventListener("click", () => { token.value = value.access_token; token.focus(); });
    out.push(use);
  }
  const head = [...answer.headers].map(([name, v]) => `${name}: ${v}`).join("\n");
  out.push(make("details", { class: "head" }, make("summary", {}, words.headers), make("pre", { tabindex: "0", role: "group", "aria-label": words.headers }, head)));
  if (text) out.push(make("pre", { class: "json tall", tabindex: "0", role: "group", "aria-label": words.body }, ...(value !== undefined && text.length < 200000 ? marked(text) : [text])));
  return out;
}

function notice(words) {
  return make("p", { class: "notice" }, make("span", { class: "mark", "aria-hidden": "true" }, "!"), make("span", {}, words));
}

// marked is a JSON text with its parts marked and lines broken. Numbers stay the
// digits they are: ids may be longer than a number here can be.
function* marked(text) {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let deep = 0;
  const line = () => "\n" + "  ".repeat(deep);
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    if (part === "{" || part === "[") {
      const empty = parts[i + 1] === (part === "{" ? "}" : "]");
      if (empty) yield part + parts[++i];
      else { deep++; yield part + line(); }
    } else if (part === "}" || part === "]") { deep--; yield line() + part; }
    else if (part === ",") yield part + line();
    else if (part === ":") yield ": ";
    else yield make("span", { class: part[0] !== '"' ? (/^[-\d]/.test(part) ? "n" : "w") : parts[i + 1] === ":" ? "k" : "s" }, part);
  }
}

// curl is the request as a command. The token is read where it runs.
function curl(r) {
  const quoted = (s) => `'${s.replaceAll("'", `'\\''`)}'`;
  const out = [`curl -X ${r.method} ${quoted(location.origin + r.url)}`];
  if (r.secret) out.push(`-H "Authorization: Bearer $POSTERN_TOKEN"`);
  for (const [name, value] of Object.entries(r.headers)) out.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (r.body) out.push(`--data-raw ${quoted(r.body)}`);
  return out.join(" \\\n  ");
}
