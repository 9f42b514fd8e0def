// The chat of an order on a page that works without it: shows messages as they
// come, over MQTT where that works and by asking again and again where it does
// not, and sends without a reload. Photos, replies and changes are made here only.

const box = document.querySelector(".chat[data-api]");
if (box && !("static" in box.dataset)) start();

function start() {
  const { api, messages: each, attach, listen: credentials, me, token, form: secret } = box.dataset;
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
  let skew = 0; // of the server's clock
  const now = () => Date.now() + skew;
  const key = (party) => `${party.type}:${party.id ?? ""}`;

  // call asks the interface: the recipient with its token, staff through the page.
  async function call(path, body, method = body ? "POST" : "GET") {
    const init = { method, headers: headers(), cache: "no-store", signal: AbortSignal.timeout(15000), redirect: "error" };
    if (body) {
      init.headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    const answer = await fetch(path, init);
    const date = Date.parse(answer.headers.get("Date"));
    if (date) skew = date - Date.now();
    return answer.status === 204 ? {} : answered(answer.status, await answer.json());
  }

  const headers = () => ({ Accept: "application/json", "Accept-Language": document.documentElement.lang, ...(token ? { Authorization: "Bearer " + token } : { "X-Form": secret }) });

  // answered is an answer, or throws what was refused, in words.
  function answered(status, out) {
    if (status < 300) return out;
    throw Object.assign(new Error(Object.values(out.errors ?? {})[0]?.[0] ?? out.message ?? ""), { status, code: out.error_code });
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

  // refused says why what somebody wanted was not done. Where nobody knows whether
  // it was, it is unknown that is said.
  function refused(error, unknown) {
    if (error.code === "CONVERSATION_CLOSED") close(true);
    else if (token && error.status === 401) { // the recipient's token ends with the conversation
      finished(error);
      return problem(words.kept);
    }
    problem(error.status === 401 ? words.signin : error.status === 429 ? words.often : error.status && error.status < 500 ? error.message : unknown);
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
  // clock is a time as pages say it, in the zone that it has.
  const lang = document.documentElement.lang;
  function clock(at) {
    const hour = Number(at.slice(11, 13)), minutes = at.slice(13, 16);
    const day = (time) => new Date(time).toISOString().slice(0, 10);
    const zone = Date.parse(at.slice(0, 19) + "Z") - Date.parse(at);
    let time = at.slice(11, 16);
    if (lang === "en") time = (hour % 12 || 12) + minutes + (hour >= 12 ? " pm" : hour ? "" : " am");
    if (day(Date.now() + zone) === at.slice(0, 10)) return time;
    return new Intl.DateTimeFormat(lang, { day: "numeric", month: "short", timeZone: "UTC" }).format(Date.parse(at.slice(0, 10))) + ", " + time;
  }
  const path = (url) => { const u = new URL(url, location.href); return u.pathname + u.search; };

  function link(url) {
    const a = element("a");
    a.href = url;
    a.target = "_blank";
    a.rel = "noopener noreferrer";
    return a;
  }

  function author(m) {
    const who = element("strong");
    who.append(key(m.sender) === me ? words.you : element("bdi", "", m.sender.type === "system" ? words.auto : clean(m.sender.name)));
    return who;
  }

  // fit is the size of a picture where it is shown, as the server gives it: with
  // the place that it will take before it is there.
  function fit({ width, height }) {
    const w = Math.max(1, Math.round(Math.min(320, width, 256 * width / height)));
    return { width: w, height: Math.max(1, Math.round(w * height / width)) };
  }

  function draw(m) {
    const own = key(m.sender) === me;
    const li = element("li", [own && "own", m.audience === "staff_driver" && "private"].filter(Boolean).join(" "));
    li.id = "m" + m.message_id;
    li.dataset.id = m.message_id;
    li.dataset.state = state(m);
    const by = element("p", "by");
    const at = element("time", "", clock(m.created_at));
    at.dateTime = m.created_at;
    by.append(author(m), ...(own ? [] : [" ", element("span", "", words["role." + m.sender.type])]), " ", at);
    li.append(by);
    if (m.deleted_at) li.append(element("p", "gone", words.deleted));
    else {
      if (m.reply_to) {
        const a = element("a");
        a.href = "#m" + m.reply_to;
        a.dataset.to = m.reply_to;
        const p = element("p", "quote");
        p.append(a);
        li.append(p);
      }
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
          const before = list.querySelector(`img[data-file="${file.attachment_id}"]`); // its address is good, and loaded
          Object.assign(img, { loading: "lazy", ...fit(file), alt: say("photo", name), src: before?.src ?? path(file.thumbnail_url ?? file.url) });
          img.dataset.file = file.attachment_id;
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

  // What a message answers: words of it, where it is known.
  const originals = new Map(); // by id, of those that are not shown; null while they are asked for
  function quote(a) {
    const id = Number(a.dataset.to);
    const m = messages.get(id)?.m ?? originals.get(id);
    if (m) a.replaceChildren(author(m), " ", element("bdi", "", gist(m)));
    else {
      if (!a.textContent) a.textContent = words.original;
      if (!originals.has(id)) find(id);
    }
  }
  function gist(m) {
    if (m.deleted_at) return words.deleted;
    return clean(m.text || m.attachments[0]?.name || m.attachments[0]?.mime_type || words.place).slice(0, 140);
  }
  async function find(id) {
    originals.set(id, null);
    try {
      const [m] = (await call(`${api}/messages?before_id=${id + 1}&limit=1`)).messages;
      if (m?.message_id !== id) return;
      originals.set(id, m);
      list.querySelectorAll(`[data-to="${id}"]`).forEach(quote);
    } catch {
      originals.delete(id); // the next time that it is shown
    }
  }

  // tools are what can be done with a message. One message's are in the order of
  // tabs; the arrows lead from there to those of others.
  const editable = 10 * 60 * 1000;
  let current = null; // tools in the order of tabs
  function tools(li, m) {
    if (!write) return;
    const changes = key(m.sender) === me && now() - Date.parse(m.created_at) < editable;
    const can = m.deleted_at ? [] : changes ? ["reply", "edit", "delete"] : ["reply"];
    let place = li.querySelector(".tools");
    if ((place?.dataset.can ?? "") === can.join()) return;
    const focused = place?.contains(document.activeElement);
    place?.remove();
    if (can.length) {
      place = element("span", "tools");
      place.dataset.can = can.join();
      for (const what of can) {
        const button = element("button", "", words[what]);
        Object.assign(button, { type: "button", value: what, tabIndex: -1 });
        button.setAttribute("aria-describedby", li.id);
        place.append(button, " ");
      }
      li.querySelector(".marks").prepend(place);
      if (focused) place.firstElementChild.focus();
    } else if (focused) log.focus();
    if (!current?.contains(document.activeElement)) tabbed([...list.querySelectorAll(".tools")].at(-1));
  }
  function tabbed(place) {
    current?.querySelectorAll("button").forEach((b) => { b.tabIndex = -1; });
    place?.querySelectorAll("button").forEach((b) => { b.tabIndex = 0; });
    current = place;
  }
  setInterval(() => messages.forEach(({ m, li }) => tools(li, m)), 5000); // what can be done ends

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
    const height = log.scrollHeight;
    const low = height - log.scrollTop - log.clientHeight < 60;
    const here = before?.li ?? document.getElementById("m" + m.message_id);
    let li = here;
    const changed = !here || here.dataset.state !== state(m);
    const focused = here?.contains(document.activeElement);
    if (changed) {
      li = draw(m);
      if (here) here.replaceWith(li);
      else place(li, m);
    }
    messages.set(m.message_id, { m, li });
    mark(li, m.status);
    tools(li, m);
    if (changed && focused) (li.querySelector(".tools button") ?? log).focus();
    for (const a of list.querySelectorAll(`[data-to="${m.message_id}"], #${li.id} [data-to]`)) quote(a);
    if (low && log.scrollHeight !== height) bottom();
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
    box.classList.toggle("shut", closed);
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
        updated = now() - Date.parse(talk.updated_at) < 3000 ? null : talk.updated_at; // more may have changed in that second
      }
      for (const p of talk?.participants ?? []) readBy(p, p.last_read_message_id);
      if (talk) close(talk.status === "closed");
      if (box.dataset.now !== "live") way("poll");
      markRead();
    } catch (error) {
      if (!finished(error) && !error.status) way("offline");
    }
  }

  // unloaded reports whether a message is an earlier one than those shown: it comes
  // as it is then when they are read in. Words of it may be shown already.
  function unloaded(m) {
    const first = list.firstElementChild;
    if (!log.querySelector(".earlier") || !first || m.message_id >= Number(first.dataset.id)) return false;
    if (originals.has(m.message_id)) originals.set(m.message_id, m);
    list.querySelectorAll(`[data-to="${m.message_id}"]`).forEach(quote);
    return true;
  }

  function heard(event) {
    if (event.order_id !== order || told.has(event.event_id)) return;
    told.add(event.event_id);
    if (told.size > 2000) told.delete(told.values().next().value);
    const { data } = event;
    switch (event.type) {
      case "message.updated":
      case "message.deleted":
        if (unloaded(data.message)) break;
        // falls through
      case "message.created":
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

  let busy = false; // something is being sent
  let unsure = null; // what was tried and not confirmed: a text under its id
  const newID = () => "p-" + crypto.getRandomValues(new Uint8Array(18)).reduce((s, b) => s + b.toString(16).padStart(2, "0"), "");

  // working has what is being sent shown, and says what went wrong. It reports
  // whether it worked.
  async function working(job, unknown) {
    problem();
    sendButton.setAttribute("aria-disabled", "true");
    sendButton.textContent = words.busy;
    try {
      await job();
      return true;
    } catch (error) {
      refused(error, error.unknown ?? unknown);
      return false;
    } finally {
      sendButton.removeAttribute("aria-disabled");
      label();
    }
  }
  const label = () => { sendButton.textContent = about?.change ? words.save : unsure ? words.again : words.send; };

  const send = (body, files) => working(async () => {
    if (files.length) {
      const ids = await uploaded(files);
      if (ids.length) body.attachment_ids = ids;
      else if (!body.text) return; // all were taken away
    }
    const same = JSON.stringify({ ...body, audience: body.audience ?? "all" });
    const id = unsure?.same === same ? unsure.id : newID();
    unsure = { same, id };
    try {
      const { message } = await call(api + "/messages", { ...body, client_message_id: id });
      unsure = null;
      show(message);
      bottom();
    } catch (error) {
      if (error.status === 422) for (const photo of files) photo.id = undefined; // one that waited for too long is gone
      throw error;
    }
  }, words.unsent);

  const save = (id, text) => working(async () => show((await call(`${each}/${id}`, { text }, "PATCH")).message), words.undone);

  // Photos

  const kinds = ["image/jpeg", "image/png", "image/webp"];
  let photos = []; // that the next message has
  function add(files) {
    const wrong = [];
    for (const file of files) {
      const name = clean(file.name);
      if (!kinds.includes(file.type)) wrong.push(say("photokind", name));
      else if (file.size > 10 << 20) wrong.push(say("photobig", name));
      else if (photos.length === 5) {
        wrong.push(words.photomany);
        break;
      } else photos.push(card(file, name));
    }
    problem(wrong.join(" "));
    counted();
  }

  function card(file, name) {
    const photo = { file, li: element("li"), bar: element("progress") };
    const small = element("canvas");
    Object.assign(small, { width: 96, height: 96, ariaHidden: "true" });
    createImageBitmap(file, { resizeHeight: 192 }).then((b) => {
      const scale = Math.max(96 / b.width, 96 / b.height); // fills the square
      small.getContext("2d").drawImage(b, (96 - b.width * scale) / 2, (96 - b.height * scale) / 2, b.width * scale, b.height * scale);
      b.close();
    }, () => {}); // what is no picture is refused when it is uploaded
    Object.assign(photo.bar, { value: 0, hidden: true, ariaLabel: say("uploading", name) });
    const away = element("button", "quiet", "×");
    Object.assign(away, { type: "button", ariaLabel: say("photoless", name) });
    away.addEventListener("click", () => {
      drop(photo);
      part("add").focus();
    });
    photo.li.append(small, element("bdi", "", name), photo.bar, away);
    part("photos").append(photo.li);
    return photo;
  }
  function drop(photo) {
    photos = photos.filter((x) => x !== photo);
    photo.li.remove();
    photo.request?.abort();
    counted();
  }
  function counted() {
    part("photos").hidden = !photos.length;
    field.required = !photos.length;
  }

  // upload uploads a photo and shows how far it is, which fetch cannot tell.
  const upload = (photo) => new Promise((done, fail) => {
    const form = new FormData();
    form.set("order_id", order);
    form.set("name", [...clean(photo.file.name)].slice(-200).join(""));
    form.set("file", photo.file);
    const x = photo.request = new XMLHttpRequest();
    x.open("POST", attach);
    for (const [name, value] of Object.entries(headers())) x.setRequestHeader(name, value);
    x.responseType = "json";
    x.timeout = 5 * 60 * 1000;
    x.upload.onprogress = (event) => { if (event.lengthComputable) photo.bar.value = event.loaded / event.total; };
    x.onload = () => { try { done(answered(x.status, x.response ?? {})); } catch (error) { fail(error); } };
    x.onerror = x.ontimeout = x.onabort = () => fail(new Error());
    x.send(form);
  });

  // uploaded uploads those photos that are not yet, one after the other.
  async function uploaded(files) {
    for (const photo of files) {
      if (photo.id || !photos.includes(photo)) continue;
      const name = clean(photo.file.name);
      photo.bar.hidden = false;
      try {
        photo.id = (await upload(photo)).attachment.attachment_id;
      } catch (error) {
        if (!photos.includes(photo)) continue; // taken away
        if (error.status === 413 || error.status === 422) {
          drop(photo);
          error.message = `${say(error.status === 413 ? "photobig" : "photokind", name)} ${words.kept}`;
        }
        throw Object.assign(error, { unknown: say("photofail", name) });
      } finally {
        photo.bar.hidden = true;
        photo.bar.value = 0;
      }
    }
    return files.filter((photo) => photos.includes(photo)).map((photo) => photo.id);
  }

  // Replies and changes

  let about = null; // the message that is answered or changed
  let draft = ""; // what was written before one is changed
  function attend(m, change = false) {
    if (m && busy) return;
    if (about?.change) field.value = draft;
    about = m && { id: m.message_id, change };
    if (change) {
      draft = field.value;
      field.value = m.text ?? "";
    }
    if (!change && m?.audience === "staff_driver") write.elements.private.checked = true; // what answers it is as private
    write.classList.toggle("changes", change);
    part("about").hidden = !m;
    part("about").firstElementChild.replaceChildren(...(!m ? [] : change ? [words.editing] : [say("replying", key(m.sender) === me ? words.you : clean(m.sender.name) || words["role." + m.sender.type]), " ", element("bdi", "", gist(m))]));
    problem();
    count();
    label();
    field.focus();
  }

  async function remove(m) {
    if (!confirm(words.suredelete)) return;
    problem();
    try {
      show((await call(`${each}/${m.message_id}`, null, "DELETE")).message);
      if (about?.id === m.message_id) attend(null);
    } catch (error) {
      refused(error, words.undone);
    }
  }

  // jump goes to a message, which may be an earlier one than those shown.
  async function jump(id) {
    while (!document.getElementById("m" + id) && await earlier());
    const li = document.getElementById("m" + id);
    if (!li) return;
    li.tabIndex = -1;
    li.focus({ preventScroll: true });
    li.scrollIntoView({ block: "center" });
    li.classList.add("found");
    setTimeout(() => li.classList.remove("found"), 2000);
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
      if (event.key === "Escape" && about) attend(null);
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || !fine) return;
      event.preventDefault();
      write.requestSubmit(sendButton);
    });
    part("add").hidden = false;
    part("add").addEventListener("click", () => part("pick").click());
    part("pick").addEventListener("change", () => {
      add(part("pick").files);
      part("pick").value = "";
    });
    const takes = () => !about?.change && !write.querySelector("fieldset").disabled;
    field.addEventListener("paste", (event) => {
      if (!takes() || !event.clipboardData.files.length || event.clipboardData.types.includes("text/plain")) return;
      event.preventDefault();
      add(event.clipboardData.files);
    });
    for (const kind of ["dragover", "drop"]) box.addEventListener(kind, (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault(); // the browser would go to the file
      if (kind === "drop" && takes()) add(event.dataTransfer.files);
    });
    part("leave").addEventListener("click", () => attend(null));
    log.addEventListener("focusin", (event) => { if (event.target.closest(".tools")) tabbed(event.target.closest(".tools")); });
    log.addEventListener("keydown", (event) => {
      const here = event.target.closest(".tools");
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!here || !step) return;
      event.preventDefault();
      const all = [...list.querySelectorAll(".tools")];
      all[all.indexOf(here) + step]?.querySelector("button").focus();
    });
    write.addEventListener("submit", async (event) => {
      event.preventDefault();
      const quick = event.submitter?.name === "quick" ? event.submitter.value : "";
      const text = field.value;
      const files = quick ? [] : [...photos];
      const target = about;
      if (busy || over || (!quick && (text.trim() === "" && (target?.change || !files.length) || count() < 0))) return;
      busy = true;
      if (target?.change) {
        if (await save(target.id, text) && about === target) attend(null);
      } else {
        const body = quick ? { quick_reply_id: quick } : text.trim() ? { text } : {};
        if (target) body.reply_to = target.id;
        if (write.elements.private?.checked) body.audience = "staff_driver";
        if (await send(body, files)) {
          files.forEach(drop);
          if (target && about === target) attend(null);
          if (!quick && field.value === text) {
            field.value = "";
            count();
            clearTimeout(still);
            saidTyping = 0;
          }
        }
      }
      busy = false;
      if (!quick) field.focus();
    });
    count();
  }

  // earlier shows more messages before the first one, and reports whether there
  // were any.
  async function earlier() {
    const link = log.querySelector(".earlier");
    const first = list.firstElementChild;
    if (!link || !first) return false;
    try {
      const page = await call(`${api}/messages?before_id=${first.dataset.id}&limit=50`);
      log.ariaLive = "off"; // these are not new
      page.messages.forEach(show);
      if (!page.has_more) link.remove();
      first.scrollIntoView({ block: "nearest" });
      setTimeout(() => { log.ariaLive = null; }, 1000);
      return page.messages.length > 0;
    } catch (error) {
      problem(error.message || words.offline);
      return false;
    }
  }

  log.addEventListener("click", (event) => {
    const a = event.target.closest(".earlier a, .quote a");
    const tool = event.target.closest(".tools button");
    if (a) {
      event.preventDefault();
      a.dataset.to ? jump(Number(a.dataset.to)) : earlier();
    } else if (tool) {
      const { m } = messages.get(Number(tool.closest("li").dataset.id));
      tool.value === "delete" ? remove(m) : attend(m, tool.value === "edit");
    }
  });

  bottom();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) catchUp(); });
  window.addEventListener("online", catchUp);
  if (!("closed" in box.dataset) || !token) stayLive().catch(() => {});
  poll();
}
