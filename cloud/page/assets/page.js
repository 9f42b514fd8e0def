// Keeps pages fresh that follow nothing (those that do have live.js). Without it they
// work, and say when they were made.

const main = document.querySelector("main");
if (main?.dataset.refresh) refresh("main", Number(main.dataset.refresh));
else if (main?.querySelector("[data-refresh]")) refresh("[data-refresh]", Number(main.querySelector("[data-refresh]").dataset.refresh));
for (const button of document.querySelectorAll("[data-copies]")) copies(button);
for (const form of document.querySelectorAll("form[data-passkey]")) passkey(form);
for (const form of document.querySelectorAll("form[data-locate]")) form.hidden = !navigator.geolocation;
document.addEventListener("submit", locate);

// Times within the hour grow older on a page that stays open, by the clock of the
// server: minutes count from when a time is first seen here.
const born = new WeakMap();
function age() {
  for (const t of document.querySelectorAll("time[data-ago]")) {
    if (!born.has(t)) born.set(t, Date.now());
    const minutes = Number(t.dataset.minutes) + Math.floor((Date.now() - born.get(t)) / 60000);
    if (minutes) t.textContent = minutes < 60 ? t.dataset.ago.replace("%d", minutes) : t.dataset.later;
  }
}
age();
setInterval(age, 15000);
// A tap shows a whole time, where no pointer rests on it.
document.addEventListener("click", (e) => {
  const t = e.target.closest?.("time[title]");
  if (t && !t.closest("a")) [t.textContent, t.title, t.dataset.ago] = [t.title, t.textContent, ""];
  if (t?.dataset.ago === "") delete t.dataset.ago;
});

// passkey shows a form that a passkey fills, where the browser has them. The server
// gives the options and checks the answer; a browser that is not asked for long enough
// or has none says so below the button.
function passkey(form) {
  const api = window.PublicKeyCredential;
  if (!api?.parseRequestOptionsFromJSON || !api?.parseCreationOptionsFromJSON) return;
  form.hidden = false;
  const problem = form.querySelector("[data-problem]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      let made;
      if (form.dataset.passkey === "create") {
        made = await navigator.credentials.create({ publicKey: api.parseCreationOptionsFromJSON(JSON.parse(form.dataset.options)) });
      } else {
        const answer = await fetch(form.dataset.options, { method: "POST", body: new URLSearchParams(new FormData(form)), cache: "no-store", signal: AbortSignal.timeout(10000) });
        if (!answer.ok) throw new Error(String(answer.status));
        made = await navigator.credentials.get({ publicKey: api.parseRequestOptionsFromJSON(await answer.json()) });
      }
      form.elements.credential.value = JSON.stringify(made.toJSON());
      form.submit();
    } catch {
      problem.hidden = false;
      button.disabled = false;
    }
  });
}

// locate fills the place of the device into a form that asks for it, before it is sent. Where
// the browser does not give it the form says so.
function locate(event) {
  const form = event.target;
  if (form.dataset.locate === undefined || form.elements.latitude.value) return;
  event.preventDefault();
  const { submitter } = event;
  const problem = form.querySelector("[data-problem]");
  problem.hidden = true;
  submitter.disabled = true;
  navigator.geolocation.getCurrentPosition(({ coords }) => {
    form.elements.latitude.value = coords.latitude;
    form.elements.longitude.value = coords.longitude;
    submitter.disabled = false;
    form.requestSubmit(submitter);
  }, () => {
    submitter.disabled = false;
    problem.hidden = false;
  }, { enableHighAccuracy: true, timeout: 15000, maximumAge: 30000 });
}

// copies makes a button copy the text of an element, where the browser can.
function copies(button) {
  button.hidden = !navigator.clipboard;
  const words = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = words; }, 2000);
  });
}

// refresh reads a part of a page again while it is looked at, from the page that it
// names or else its own, and says so when it cannot. What looks as before stays, and
// so does the focus on what has an id; what is being typed into stays as it is.
function refresh(part, seconds) {
  const every = seconds * 1000;
  let busy = false;
  let last = Date.now();
  const stale = () => document.querySelector(".stale");
  const look = async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(document.querySelector(part)?.dataset.from ?? location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error(String(answer.status));
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(part);
      const here = document.querySelector(part);
      const at = here?.contains(document.activeElement) ? document.activeElement : null;
      if (next && here && next.innerHTML === here.innerHTML) { /* as before */ }
      else if (next && here && (!at || at.id && !at.matches("input, textarea, select"))) {
        here.replaceChildren(...next.childNodes);
        if (at) document.getElementById(at.id)?.focus();
      } else if (next && here) {
        here.querySelector("[data-made]")?.replaceWith(next.querySelector("[data-made]"));
      }
      last = Date.now();
      for (const form of document.querySelectorAll("form[data-locate]")) form.hidden = !navigator.geolocation;
      if (stale()) stale().hidden = true;
    } catch {
      if (stale() && Date.now() - last > every) stale().hidden = false;
    } finally {
      busy = false;
    }
  };
  setInterval(look, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && Date.now() - last > every) look(); });
  window.addEventListener("offline", () => { if (stale()) stale().hidden = false; });
  window.addEventListener("online", look);
}
