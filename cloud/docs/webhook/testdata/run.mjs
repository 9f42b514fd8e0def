import { readFileSync } from "node:fs";
import { verify } from "../snippets/verify.mjs";

const text = (b) => Buffer.from(b, "base64").toString("latin1");
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [secret, now, body, ...head] = line.split("\t");
  const headers = Object.fromEntries(head.map((h) => h.split("=", 2).map((x, i) => (i ? text(h.slice(h.indexOf("=") + 1)) : x))));
  console.log(verify(headers, Buffer.from(body, "base64"), text(secret), Number(now)) ? 1 : 0);
}
