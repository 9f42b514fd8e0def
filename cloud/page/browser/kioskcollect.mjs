// Has senders bring parcels to a cabinet at its screen, and staff collect and remove parcels, at
// a portrait and a landscape kiosk.
import { Cabinet, sizes } from "./cabinet.mjs";

const cabinet = await Cabinet.open("kioskcollect", process.argv.slice(2)), act = (path) => cabinet.act(path);

for (const kind of Object.keys(sizes)) {
  const staff = await act("/staff"), doors = [(await act("/overdue")).door], waits = (await act("/deposit")).door;
  const s = await cabinet.visit(kind), { page } = s;
  s.languages = ["de"];
  for (const purpose of ["send", "return"]) {
    let p = await act("/" + purpose);
    await s.count(purpose, 4, async () => {
      await s.press("#" + purpose);
      await s.enter(p.code);
      await s.at("flow");
      await s.opened();
      if (purpose === "send") await s.look("send");
      p = await act("/opened");
      await act("/put?door=" + p.door);
      await act("/close?door=" + p.door);
      await s.at("finished");
      await s.finish();
    });
    await act("/delivered");
    doors.push(p.door);
  }
  doors.sort((a, b) => a - b);
  await act("/listed");
  await act("/cut");
  await s.count("collect", 9, async () => {
    await s.press("#staff");
    await s.enter(staff.code);
    await s.at("staff");
    await page.waitForSelector("#collect:not([disabled])");
    await s.look("staff");
    await s.press("#collect");
    await s.at("collect");
    s.note("listed", await page.locator(".steps li").count());
    await s.look("collect");
    await s.press("#openall");
    await s.at("collectcode");
    await s.look("collectcode");
    await s.enter(staff.code);
    for (const [i, [button, take]] of [["taken", true], ["notfound", true], ["refused", false]].entries()) {
      await s.at("collecting");
      const door = doors[i];
      await s.lead("close it");
      if (i === 0) await s.look("open");
      if (take) await act("/take?door=" + door);
      await act("/close?door=" + door);
      await page.waitForSelector("#" + button + ":not([disabled])");
      if (i === 0) await s.look("asked");
      if (i === 2) { // the sensor sees it
        await s.press("#taken");
        await s.message("sensor");
        await s.look("inside");
      }
      await s.press("#" + button);
    }
    await s.at("collected");
    s.note("summed", await page.locator(".sums li").count());
    await s.look("collected");
  });
  await s.press("#more");
  await s.at("staff");
  // A parcel that waits is removed, for a reason that is asked twice.
  await s.press("#door-" + waits);
  await s.press("#openchosen");
  await s.enter(staff.code);
  await s.at("staff");
  await page.waitForFunction((d) => document.querySelector("#door-" + d + " small")?.textContent === "open", waits);
  await act("/take?door=" + waits);
  await act("/close?door=" + waits);
  await page.waitForSelector("#remove:not([disabled])");
  await s.press("#remove");
  await s.at("remove");
  await page.waitForSelector("#from-" + waits);
  await s.look("remove");
  await s.press("#from-" + waits);
  await s.at("reason");
  await s.look("reason");
  await s.press("#why-destroyed");
  await s.at("confirm");
  await s.look("confirm");
  await s.press("#goback");
  await s.at("reason");
  s.note("asked twice", (await act("/holds?door=" + waits)).delivery);
  await s.press("#why-destroyed");
  await s.press("#confirmed");
  await s.at("staff");
  await s.message("is free");
  s.note("removed", (await act("/holds?door=" + waits)).delivery);
  // Staff walk away from an open door: the session ends, and nothing else opens.
  await page.waitForSelector("#collect:not([disabled])");
  await s.press("#collect");
  await s.press("#openall");
  await s.enter(staff.code);
  await s.at("collecting");
  await s.lead("close it");
  await page.waitForTimeout(1500); // a door that still swings is a person's
  await s.wait(106);
  await page.waitForFunction(() => document.querySelector("#still").open);
  await s.wait(16);
  await s.at("start");
  await act("/take?door=" + doors[2]);
  await act("/close?door=" + doors[2]);
  s.note("walked away", (await act("/holds?door=" + doors[2])).delivery);
  await act("/mend");
  await act("/clear?door=" + doors[2]);
  await s.close();
}
await cabinet.end();
