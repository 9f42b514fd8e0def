// The chat of an order on a page that works without it: shows messages as they
// come, over MQTT where that works and by asking again and again where it does
// not, and sends without a reload.

const box = document.querySelector(".chat[data-api]");
if (box && !("static" in box.dataset)) start();

function start() {
  const { api, listen: credentials, me, token, form: secret } = box.dataset;
  const order = Number(box.dataset.order);
  const words = JSON.parse(box.dataset.words);
  const say = (key, value) => value === undefined ? words[key] : words[key].replace("%s", value);
  const part = (name) => box.querySelector(`[data-${name}]`);
  const log = box.querySelector(".said");
  const list = log.querySelector("ol");
  const write = part("write");
  const field = write?.elements.text;
  const sendButton = write?.querySelector("[value=send]");

  const messages = new Map(); // by id: message and element
  const told = new Set(); // ids of events
  let known = 0; // every message up to this one was asked for
  let readUpTo = 0; // own mark
  let updated = null; // of the conversation, when it was last asked for
  let over = false; // nothing works here any more
  const rank = { sent: 0, delivered: 1, read: 2 };
  const marks = { sent: "✓", delivered: "✓✓", read: "✓✓" };
  const key = (party) => `${party.type}:${party.id ?? ""}`;

  // call asks the interface: the recipient with its token, staff through the page.
  async function call(path, body) {
    const headers = { Accept: "application/json", "Accept-Language": document.documentElement.lang };
    if (token) headers.Authorization = "Bearer " + token;
    const init = { headers, cache: "no-store", signal: AbortSignal.timeout(15000), redirect: "error" };
    if (body) {
      headers["Content-Type"] = "application/json";
      if (!token) headers["X-Form"] = secret;
      Object.assign(init, { method: "POST", body: JSON.stringify(body) });
    }
    const answer = await fetch(path, init);
    if (answer.status === 204) return {};
    const out = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(out.message ?? ""), { status: answer.status, code: out.error_code });
    return out;
  }

  // finished is for an answer after which asking again is of no use.
  function finished(error) {
    if (error.status !== 401 && error.status !== 403 && error.status !== 404) return false;
    over = true;
    way("offline");
    if (token) close(true);
    else problem(error.status === 401 ? words.signin : error.message);
    return true;
  }

  // Showing

  function element(tag, className, content) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (content !== undefined) e.textContent = content;
    return e;
  }
  // clean shows what is hidden in a text, as the server does.
  const clean = (s) => s.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => "\n\u200c\u200d".includes(c) ? c : "\ufffd");
  const state = (m) => `${m.edited_at ?? ""}|${m.deleted_at ?? ""}`;
  const clock = (at) => at.slice(0, 10) + " " + at.slice(11, 16);
  const path = (url) => { const u = new URL(url, location.href); return u.pathname + u.search; };

  function link(url) {
    const a = element("a");
    a.href = url;
    a.target = "_blank";
    a.rel = "noopener noreferrer";
    return a;
  }

  function draw(m) {
    const own = key(m.sender) === me;
    const li = element("li", [own && "own", m.audience === "staff_driver" && "private"].filter(Boolean).join(" "));
    li.id = "m" + m.message_id;
    li.dataset.id = m.message_id;
    li.dataset.state = state(m);
    const by = element("p", "by");
    const who = element("strong");
    who.append(own ? words.you : element("bdi", "", m.sender.type === "system" ? words.auto : clean(m.sender.name)));
    const at = element("time", "", clock(m.created_at));
    at.dateTime = m.created_at;
    by.append(who, ...(own ? [] : [" ", element("span", "", words["role." + m.sender.type])]), " ", at);
    li.append(by);
    if (m.deleted_at) li.append(element("p", "gone", words.deleted));
    else {
      if (m.text) {
        const p = element("p", "words", clean(m.text));
        p.dir = "auto";
        li.append(p);
      }
      if (m.location) {
        const { latitude, longitude, label } = m.location;
        const [lat, lon] = [latitude.toFixed(5), longitude.toFixed(5)];
        const a = link(`https://www.openstreetmap.org/?mlat=${lat}&mlon=${lon}#map=17/${lat}/${lon}`);
        a.append(words.place + ": ", element("bdi", "", label ? `${clean(label)} (${lat}, ${lon})` : `${lat}, ${lon}`));
        const p = element("p");
        p.append(a);
        li.append(p);
      }
      for (const file of m.attachments) {
        const a = link(path(file.url));
        const name = clean(file.name || file.mime_type);
        if (file.width && file.height) {
          const img = element("img");
          Object.assign(img, { src: path(file.url), width: file.width, height: file.height, alt: name, loading: "lazy" });
          a.append(img);
        } else a.append(element("bdi", "", name));
        const p = element("p", "file");
        p.append(a);
        li.append(p);
      }
    }
    const foot = element("p", "marks");
    if (m.audience === "staff_driver") foot.append(element("span", "pill", words.private), " ");
    if (m.edited_at && !m.deleted_at) foot.append(element("span", "", words.edited), " ");
    if (own) {
      const mark = element("span");
      mark.dataset.status = "";
      foot.append(mark);
    }
    li.append(foot);
    return li;
  }

  function mark(li, status) {
    const place = li.querySelector("[data-status]");
    if (!place || place.dataset.status === status) return;
    place.dataset.status = status;
    place.textContent = `${marks[status]} ${words[status]}`;
  }

  // show shows a message, or what became of it. What is older than what is shown
  // changes nothing.
  function show(m) {
    const before = messages.get(m.message_id);
    if (before) {
      const was = before.m;
      if (rank[was.status] > rank[m.status]) m = { ...m, status: was.status };
      if (was.deleted_at && !m.deleted_at || was.edited_at && (!m.edited_at && !m.deleted_at || m.edited_at && Date.parse(m.edited_at) < Date.parse(was.edited_at))) m = { ...was, status: m.status };
    }
    const here = before?.li ?? document.getElementById("m" + m.message_id);
    let li = here;
    if (!here || here.dataset.state !== state(m)) {
      li = draw(m);
      if (here) here.replaceWith(li);
      else place(li, m);
    }
    messages.set(m.message_id, { m, li });
    mark(li, m.status);
  }

  function place(li, m) {
    const low = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    const next = [...list.children].findLast((x) => Number(x.dataset.id) < m.message_id);
    if (next) next.after(li);
    else list.prepend(li);
    part("none").hidden = true;
    if (li === list.lastElementChild) {
      li.classList.add("fresh");
      if (low || key(m.sender) === me) bottom();
      typists.delete(key(m.sender));
      typing();
    }
  }
  const bottom = () => { log.scrollTop = log.scrollHeight; };

  function readBy(reader, upTo) {
    if (!upTo) return;
    for (const { m, li } of messages.values()) {
      if (m.message_id > upTo || key(m.sender) !== me || key(reader) === me || (m.audience === "staff_driver" && !["dispatcher", "driver"].includes(reader.type))) continue;
      m.status = "read";
      mark(li, "read");
    }
  }

  function close(closed) {
    part("closedwords").hidden = !closed;
    if (write) write.querySelector("fieldset").disabled = closed;
    const manage = part("manage");
    if (manage) {
      manage.value = closed ? "reopen" : "close";
      manage.textContent = manage.dataset[manage.value];
    }
    if (closed) {
      typists.clear();
      typing();
    }
  }

  function problem(what) {
    const place = part("problem");
    place.hidden = !what;
    place.lastElementChild.textContent = what ?? "";
  }

  function way(name) {
    const place = part("way");
    place.hidden = false;
    place.classList.toggle("on", name === "live");
    place.classList.toggle("off", name === "offline");
    if (box.dataset.now !== name) place.lastElementChild.textContent = words[name];
    box.dataset.now = name;
  }

  const typists = new Map(); // names by party, with when they are forgotten
  function typing() {
    const now = Date.now();
    for (const [who, x] of typists) if (x.until <= now) typists.delete(who);
    const text = typists.size ? say("typing", [...typists.values()].map((x) => x.name).join(", ")) : "";
    if (part("typing").textContent !== text) part("typing").textContent = text;
  }
  setInterval(typing, 1000);

  // Hearing

  let asking = null;
  let again = false;
  // catchUp asks what is new. Calls at the same time share the answers; one that
  // comes meanwhile has it asked once more.
  function catchUp() {
    if (over) return Promise.resolve();
    again = !!asking;
    return asking ??= ask().finally(() => {
      asking = null;
      if (again) {
        again = false;
        return catchUp();
      }
    });
  }

  async function ask() {
    try {
      const { conversation: talk } = await call(api);
      if (talk && (updated !== talk.updated_at || (talk.last_message?.message_id ?? 0) > known)) {
        let newest = known;
        for (let more = known > 0; more;) {
          const page = await call(`${api}/messages?after_id=${newest}&limit=100`);
          page.messages.forEach(show);
          newest = page.messages.at(-1)?.message_id ?? newest;
          more = page.has_more && page.messages.length > 0;
        }
        const page = await call(`${api}/messages?limit=50`); // with what was changed
        page.messages.forEach(show);
        known = Math.max(newest, page.messages.at(-1)?.message_id ?? 0);
        updated = talk.updated_at;
      }
      for (const p of talk?.participants ?? []) readBy(p, p.last_read_message_id);
      if (talk) close(talk.status === "closed");
      if (box.dataset.now !== "live") way("poll");
      markRead();
    } catch (error) {
      if (!finished(error) && !error.status) way("offline");
    }
  }

  function heard(event) {
    if (event.order_id !== order || told.has(event.event_id)) return;
    told.add(event.event_id);
    if (told.size > 2000) told.delete(told.values().next().value);
    const { data } = event;
    switch (event.type) {
      case "message.created":
      case "message.updated":
      case "message.deleted":
        show(data.message);
        markRead();
        break;
      case "message.read":
        readBy(data.reader, data.last_message_id);
        break;
      case "typing":
        if (key(data.participant) === me) break;
        if (data.typing) typists.set(key(data.participant), { name: clean(data.participant.name) || words["role." + data.participant.type], until: Date.now() + 7000 });
        else typists.delete(key(data.participant));
        typing();
        break;
      case "conversation.closed":
        close(true);
        break;
      default: // what is kept of before may be over: what holds now is asked for
        catchUp();
    }
  }

  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  // stayLive listens for as long as it can, with new credentials before the old
  // ones end.
  async function stayLive() {
    const { listen } = await import("./mqtt.js" + new URL(import.meta.url).search);
    for (let failures = 0; !over;) {
      try {
        const { mqtt } = await call(credentials, { order_ids: [order] });
        if (!mqtt.websocket_url) return;
        const life = Date.parse(mqtt.expires_at) - Date.now();
        await listen(mqtt.websocket_url, mqtt, mqtt.topics.filter((t) => t.includes("/order-chat/")), Date.now() + Math.max(life - 60000, life / 2, 5000), () => {
          failures = 0;
          way("live");
          catchUp();
        }, heard);
      } catch (error) {
        if (error.status === 404 || finished(error)) return; // 404: nobody can listen here
        if (box.dataset.now === "live") way("poll");
        failures++;
        catchUp();
        await pause(Math.min(30000, 500 * 2 ** failures) * (0.5 + Math.random() / 2));
      }
    }
  }

  // poll asks while nothing is live: every five seconds, seldom when nobody looks.
  async function poll() {
    for (let last = 0; !over; await pause(500)) {
      if (box.dataset.now === "live" || Date.now() - last < (document.hidden ? 30000 : 5000)) continue;
      last = Date.now();
      await catchUp();
    }
  }

  // Reading

  let seen = false;
  new IntersectionObserver((all) => { seen = all.at(-1).isIntersecting; markRead(); }).observe(log);
  let marking = false;
  async function markRead() {
    const newest = [...messages.values()].reduce((n, { m }) => key(m.sender) === me ? n : Math.max(n, m.message_id), 0);
    if (marking || over || !seen || document.hidden || newest <= readUpTo) return;
    marking = true;
    try {
      await call(api + "/read", { last_message_id: newest });
      readUpTo = newest;
      part("unread")?.remove();
    } catch {
      // the next message or look tries again
    }
    marking = false;
  }

  // Writing

  let unsure = null; // what was tried and not confirmed: a text under its id
  const newID = () => "p-" + crypto.getRandomValues(new Uint8Array(18)).reduce((s, b) => s + b.toString(16).padStart(2, "0"), "");

  async function send(body) {
    const same = JSON.stringify({ ...body, audience: body.audience ?? "all" });
    const id = unsure?.same === same ? unsure.id : newID();
    unsure = { same, id };
    problem();
    sendButton.setAttribute("aria-disabled", "true");
    sendButton.textContent = words.busy;
    try {
      const { message } = await call(api + "/messages", { ...body, client_message_id: id });
      unsure = null;
      show(message);
      bottom();
      return true;
    } catch (error) {
      if (error.code === "CONVERSATION_CLOSED") close(true);
      else if (token && error.status === 401) finished(error);
      problem(error.status === 401 && !token ? words.signin : error.status && error.status < 500 ? error.message : words.unsent);
      return false;
    } finally {
      sendButton.removeAttribute("aria-disabled");
      sendButton.textContent = unsure ? words.again : words.send;
    }
  }

  function count() {
    const left = 2000 - [...field.value].length;
    const place = part("count");
    place.textContent = left < 0 ? say("over", -left) : left <= 200 ? say("left", left) : "";
    place.classList.toggle("over", left < 0);
    field.setAttribute("aria-invalid", String(left < 0));
    return left;
  }

  let saidTyping = 0; // everybody hears who types: not what is for staff
  function types(on) {
    if (over || write.elements.private?.checked || (on ? Date.now() - saidTyping < 4000 : !saidTyping)) return;
    saidTyping = on ? Date.now() : 0;
    call(api + "/typing", { typing: on }).catch(() => {});
  }

  if (write) {
    const fine = matchMedia("(pointer: fine)").matches;
    write.querySelector("[data-hint]").hidden = !fine;
    let still = 0;
    field.addEventListener("input", () => {
      count();
      clearTimeout(still);
      types(field.value.trim() !== "");
      still = setTimeout(() => types(false), 5000);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || !fine) return;
      event.preventDefault();
      write.requestSubmit(sendButton);
    });
    let busy = false;
    write.addEventListener("submit", async (event) => {
      event.preventDefault();
      const quick = event.submitter?.name === "quick" ? event.submitter.value : "";
      const text = field.value;
      if (busy || over || (!quick && (text.trim() === "" || count() < 0))) return;
      const body = quick ? { quick_reply_id: quick } : { text };
      if (write.elements.private?.checked) body.audience = "staff_driver";
      busy = true;
      if (await send(body) && !quick && field.value === text) {
        field.value = "";
        count();
        clearTimeout(still);
        saidTyping = 0;
      }
      busy = false;
      if (!quick) field.focus();
    });
    count();
  }

  log.addEventListener("click", async (event) => {
    const a = event.target.closest(".earlier a");
    const first = list.firstElementChild;
    if (!a || !first) return;
    event.preventDefault();
    try {
      const page = await call(`${api}/messages?before_id=${first.dataset.id}&limit=50`);
      log.ariaLive = "off"; // these are not new
      page.messages.forEach(show);
      if (!page.has_more) a.parentElement.remove();
      first.scrollIntoView({ block: "nearest" });
      setTimeout(() => { log.ariaLive = null; }, 1000);
    } catch (error) {
      problem(error.message || words.offline);
    }
  });

  bottom();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) catchUp(); });
  window.addEventListener("online", catchUp);
  if (!("closed" in box.dataset) || !token) stayLive().catch(() => {});
  poll();
}
