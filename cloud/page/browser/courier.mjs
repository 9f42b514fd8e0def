// Has couriers use the screen of a cabinet, at a portrait and a landscape kiosk: compartments
// that cannot take their parcels, sizes to choose, labels that come first; and staff who learn
// how a door is wired.
import { Cabinet, sizes } from "./cabinet.mjs";

const cabinet = await Cabinet.open("courier", process.argv.slice(2)), { found } = cabinet, act = (path) => cabinet.act(path);
const close = async (doors, put) => { for (const d of doors) { if (put) await act("/put?door=" + d); await act("/close?door=" + d); } };
const over = async (s) => {
  await act("/over");
  if (await s.page.waitForSelector("body[data-screen=finished]", { timeout: 8000 }).catch(() => null)) await s.finish();
};

for (const kind of Object.keys(sizes)) {
  const s = await cabinet.visit(kind), { page } = s;
  s.languages = ["de"];

  // The compartment is dirty, while the link is cut.
  let p = await act("/bring?parcel=1");
  await s.code("dropoff", p.code);
  await s.at("flow");
  await page.waitForSelector("[id^=trouble-]");
  await s.look("put in");
  await act("/cut");
  await s.press("[id^=trouble-]");
  await s.at("trouble");
  await s.look("what is wrong");
  await s.wait(46);
  s.note("stays", await s.now());
  await s.press("#wrong-dirty");
  await s.at("flow");
  await s.opened(2);
  await s.look("another");
  let doors = await act("/doors");
  await close(doors.left);
  await close(doors.open, true);
  await s.at("finished");
  await page.waitForSelector("#receipt svg");
  await s.look("receipt");
  await s.finish();
  await act("/mend");
  await act("/arrived");
  s.note("dirty", (await act("/blocked"))[doors.left[0]]);
  await over(s);
  await act("/clean");

  // One of two compartments is broken.
  p = await act("/bring?parcel=1&parcel=2");
  await s.code("dropoff", p.code);
  await s.at("flow");
  await page.waitForSelector("#trouble");
  await s.look("two parcels");
  await s.press("#trouble");
  await s.at("trouble");
  await s.look("which");
  await page.locator("[id^=which-]").first().tap();
  await page.waitForSelector("#wrong-broken");
  await s.look("what is wrong with one");
  await s.press("#wrong-broken");
  await s.at("flow");
  await s.opened(3);
  await s.look("two parcels and another");
  doors = await act("/doors");
  await close(doors.left);
  await close(doors.open, true);
  await s.at("finished");
  await s.finish();
  await act("/arrived");
  s.note("several", (await act("/blocked"))[doors.left[0]]);
  await over(s);
  await act("/clean");

  // Something lies in the only one.
  p = await act("/bring?parcel=1");
  await act("/full");
  await s.code("dropoff", p.code);
  await page.waitForSelector("[id^=trouble-]");
  await s.press("[id^=trouble-]");
  await s.press("#wrong-occupied");
  await s.message("No other compartment is free");
  await s.look("none free");
  s.note("none take back", await s.text("#lead"));
  doors = await act("/doors");
  await close(doors.left);
  await s.at("finished");
  await s.look("none free at the end");
  if (await page.$("#receipt")) s.note("receipt of nothing", "shown");
  s.note("none title", await s.text("#headline"));
  s.note("none lead", await s.text("#lead"));
  await s.finish();
  for (let i = 0; i < 50 && !found.screens[s.name("none")]; i++) {
    s.note("none", (await act("/blocked"))[doors.left[0]]);
    await new Promise((done) => setTimeout(done, 200));
  }
  // It is brought again, to a compartment of which the courier chooses the size.
  await act("/clean");
  await s.code("dropoff", p.code);
  await s.at("sizes");
  await s.look("sizes");
  await s.press("#size-L");
  await s.at("flow");
  await s.opened(1);
  doors = await act("/doors");
  s.note("chosen", doors.open[0] > 2 ? "large" : "small"); // doors 1 and 2 are of the other size
  await close(doors.open, true);
  await s.at("finished");
  await s.finish();
  await act("/arrived");
  await over(s);

  // The label comes first, by a keyboard scanner at the start.
  const other = await act("/bring?parcel=1");
  p = await act("/bring?parcel=1");
  await s.scan("NOT-KNOWN-1");
  await s.message("This label is not known here");
  await s.look("unknown label");
  await s.scan(other.packages[0].toLowerCase());
  await s.at("dropoff");
  s.note("known label", await s.now());
  await s.lead(other.packages[0].toLowerCase());
  await s.look("label");
  await s.enter(p.code);
  await s.message("for another parcel");
  await s.look("another label");
  await page.focus("#code");
  await s.scan(p.packages[0]);
  await s.lead(p.packages[0]);
  await s.enter(p.code);
  await s.at("flow");
  await s.opened(1);
  doors = await act("/doors");
  await close(doors.open, true);
  await s.at("finished");
  await s.finish();
  await act("/arrived");
  await over(s);
  await act("/over?ref=" + other.ref);

  // Staff learn how a door is wired, while the link is cut; the layout is wrong, and put right.
  const staff = await act("/staff");
  const learns = async (what, words) => {
    await s.home();
    await s.press("#staff");
    await s.enter(staff.code);
    await page.waitForSelector("#door-1");
    await s.press("#door-1");
    await s.press("#learn");
    await s.at("learn");
    await s.look("learn " + what);
    const cut = kind === "portrait" && what === "right";
    if (cut) await act("/cut");
    await s.press("#begin");
    await s.lead(" now.");
    await act("/key?door=1");
    await s.lead(words);
    await s.look("learned " + what);
    s.note("learned " + what, await s.text("#lead"));
    await act("/close?door=1");
    await s.press("#learned-done");
    await s.at("staff");
    if (cut) await act("/mend");
  };
  await s.home();
  await learns("right", "wired as the layout says");
  await act("/polarity?door=1&inverted");
  await learns("wrong", "the other way round");
  await act("/polarity?door=1");
  await s.home();
  await s.close();
}
await cabinet.end();
