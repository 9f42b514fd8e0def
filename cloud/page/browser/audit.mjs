// What is wrong with a page as a person finds it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// audit waits until the page has stopped moving, as a text that is half-way in
// has less contrast than the one that is read, and puts what it found under a
// name: found.axe[name] lists the violations of accessibility, found.overflow
// the pages that are wider than the window. What never ends to move is looked
// at as it is. The policy of the pages admits no foreign script: the checker
// runs in the browser's own isolated evaluation.
export async function audit(page, name, found) {
  await page.evaluate(() => Promise.allSettled(document.getAnimations()
    .filter((a) => a.playState === "running" && a.effect.getComputedTiming().endTime !== Infinity).map((a) => a.finished)));
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  found.axe[name] = result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 4).map((n) => n.target.join(" ") + " " + n.failureSummary).join(" | ")}`);
  // A block inside a paragraph ends it, and leaves an empty one behind.
  if (await page.evaluate(() => [...document.querySelectorAll("p")].some((p) => !p.attributes.length && !p.hasChildNodes()))) found.axe[name].push("markup: a paragraph holds a block");
  if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1)) found.overflow.push(name);
}
