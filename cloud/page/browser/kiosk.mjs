// Has people use the screen of a cabinet, at a portrait and a landscape kiosk and once on a
// telephone: pick up, with and without a network, send, return, mistype, and staff beside them.
import { Cabinet, sizes } from "./cabinet.mjs";

const cabinet = await Cabinet.open("kiosk", process.argv.slice(2)), { found } = cabinet, act = (path) => cabinet.act(path);
Object.assign(found, { idle: {}, leaks: [] });

// idles leaves a screen alone and says how the start came back.
async function idles(s, name) {
  await s.wait(31);
  const asked = await s.page.waitForFunction(() => document.querySelector("#still").open).then(() => true, () => false);
  if (asked && !found.axe[s.name("still light")]) await s.look("still");
  await s.press("#stay");
  const stayed = (await s.now()) !== "start";
  await s.wait(50);
  await s.at("start");
  found.idle[s.name(name)] = asked && stayed;
}

for (const kind of Object.keys(sizes)) {
  const s = await cabinet.visit(kind), { page } = s;
  s.languages = ["de", "fr", "es"];
  await s.look("start");
  s.languages = ["de"];
  for (const x of ["pickup", "send", "return", "dropoff", "help", "staff", "language"]) {
    await s.press("#" + x);
    await page.waitForFunction(() => document.body.dataset.screen !== "start");
    await s.look(x);
    await idles(s, x);
  }
  // the largest text still fits
  await s.press("#size");
  await s.press("#size");
  await s.look("start large");
  await s.press("#pickup");
  await s.look("pickup large");
  await s.wait(50);
  await s.wait(50);
  await s.at("start");
  s.note("choices are reset", await page.evaluate(() => !document.documentElement.dataset.size));

  // A recipient types a code, takes the parcel and leaves: three taps and the code at most.
  const [forgotten, offline, jammed] = [await act("/deposit"), await act("/deposit"), await act("/deposit")];
  let p = await act("/deposit");
  await s.at("finished"); // what is opened from afar shows here too
  await s.home();
  await s.count("pickup", 3, async () => {
    await s.press("#pickup");
    await s.enter(p.code);
    await s.at("flow");
    await s.opened();
    await act("/take?door=" + p.door);
    await act("/close?door=" + p.door);
    await s.at("finished");
    await s.finish();
  });

  // A recipient looks at what they type. The parcel is forgotten at first.
  p = forgotten;
  await s.press("#pickup");
  await s.keys(p.code);
  await s.press("#show");
  s.note("shown", (await page.inputValue("#code")) === p.code && (await page.getAttribute("#code", "type")) === "text");
  await s.press("#enter");
  await s.at("flow");
  await s.opened();
  s.note("door", await s.text("#headline"));
  await s.look("flow");
  await s.wait(50);
  s.note("stays while open", await s.now());
  await act("/close?door=" + p.door);
  await s.at("finished");
  await page.waitForSelector("[id^=reopen-]");
  await s.look("finished");
  await s.press("[id^=reopen-]");
  await s.at("flow");
  await s.opened();
  await s.press("#language"); // the door is closed before a language is chosen
  await act("/take?door=" + p.door);
  await act("/close?door=" + p.door);
  await page.waitForFunction(async () => (await (await fetch("/api/state")).json()).openings.length === 0);
  await s.press(".languages [lang=en]");
  await s.at("finished");
  s.note("thanks", await s.text("#headline"));
  await idles(s, "finished");

  // The link is cut: a code works as before, typed by a scanner on the help screen.
  p = offline;
  await act("/cut");
  await page.waitForSelector(".standing.warn");
  await s.look("offline");
  await s.press("#help");
  await s.scan(p.qr);
  await s.at("flow");
  await s.opened();
  // Another person comes to the keypad while the door stands open, and mistypes.
  await s.code("pickup", "999999");
  await s.message("not known");
  await s.look("wrong code");
  await act("/take?door=" + p.door);
  await act("/close?door=" + p.door);
  for (let i = 0; i < 4; i++) {
    await page.waitForSelector("#enter:not([disabled])");
    await s.code("pickup", "99999" + i);
    await s.message(i < 3 ? "Tries left: " + (3 - i) : "Tries left: 0");
  }
  await s.code("pickup", "999999");
  await s.message("Too many wrong codes");
  await s.look("locked");

  // Staff lift the lock, see the doors' states and open one.
  const staff = await act("/staff");
  await s.home();
  await s.press("#staff");
  await s.enter(staff.code);
  await s.at("staff");
  await page.waitForSelector("#door-1");
  await s.look("staffview");
  await s.press("#door-4");
  await s.press("#language"); // the session goes on in another language
  await s.press(".languages [lang=fr]");
  await s.at("staff");
  await s.press("#language");
  await s.press(".languages [lang=en]");
  await page.waitForSelector("#door-4[aria-pressed=true]");
  await s.press("#openchosen");
  await s.at("staffopen");
  await s.look("staffopen");
  await s.enter(staff.code);
  await s.at("staff");
  await page.waitForFunction(() => document.querySelector("#door-4 small").textContent === "open");
  await act("/close?door=4");
  await page.waitForFunction(() => /locked/.test(document.querySelector("#door-4 small").textContent));
  await s.wait(106);
  await page.waitForFunction(() => document.querySelector("#still").open);
  await s.wait(16);
  await s.at("start");
  s.note("staff left", await page.evaluate(() => document.querySelector("#door-1") === null));
  await act("/mend");
  await page.waitForSelector(".standing.good");

  // A courier drops off.
  p = await act("/create");
  await s.count("dropoff", 3, async () => {
    await s.press("#dropoff");
    await s.enter(p.code);
    await s.at("flow");
    await s.opened();
    p = await act("/opened");
    await act("/put?door=" + p.door);
    await act("/close?door=" + p.door);
    await s.at("finished");
  });
  await s.look("dropped off");
  await s.press("#next");
  await s.at("dropoff");
  await s.home();
  await act("/collected"); // the screen shows what was begun elsewhere
  await s.at("finished");
  await s.finish();

  // A parcel that does not fit, while the link is cut.
  p = await act("/create");
  await s.code("dropoff", p.code);
  await s.at("flow");
  await page.waitForSelector("[id^=larger-]");
  await s.look("fits or not");
  await act("/cut");
  await s.press("[id^=larger-]");
  await s.opened(2);
  await s.look("larger");
  s.note("larger lead", await s.text("#lead"));
  p = await act("/larger");
  await act("/close?door=" + p.left);
  await s.wait(46);
  s.note("larger stays while open", await s.now());
  await s.wait(15);
  await page.waitForFunction(() => document.querySelector("#still").open); // who closes the door is there
  await act("/put?door=" + p.door);
  await act("/close?door=" + p.door);
  await s.at("finished");
  s.note("larger thanks", await s.text("#lead"));
  await s.finish();
  await act("/mend");
  await act("/delivered");
  await act("/collected");
  await s.at("finished");
  await s.finish();
  await page.waitForSelector(".standing.good");

  // A door that does not open.
  p = jammed;
  await act("/jam?door=" + p.door);
  await s.code("pickup", p.code);
  await s.at("finished");
  s.note("jammed", await s.text("#headline"));
  await s.look("jammed");
  await act("/free?door=" + p.door);
  await s.home(); // a start that is left alone asks nothing
  await new Promise((done) => setTimeout(done, 31000)); // so long the coil rests
  await s.at("start");
  await s.press("#help");
  await s.count("pickup by scanner", 1, async () => {
    await act("/scan?text=" + encodeURIComponent(p.qr)); // by a scanner of the cabinet's own
    await s.at("flow");
    await s.opened();
    await act("/take?door=" + p.door);
    await act("/close?door=" + p.door);
    await s.at("finished");
    await s.finish();
  });
  if (await page.evaluate(() => /\d{6}/.test(document.body.innerText.replace(/\+?[\d ]{9,}/g, "")))) found.leaks.push(s.name("start"));
  await s.close();
}

{ // a telephone, in the longest language: nothing breaks
  const s = await cabinet.visit("phone", { viewport: { width: 390, height: 844 }, locale: "de-DE" });
  for (const x of ["start", "pickup", "help", "language"]) {
    await s.home();
    if (x !== "start") await s.press("#" + x);
    await s.look(x, false);
  }
  await s.close();
}
await cabinet.end();
