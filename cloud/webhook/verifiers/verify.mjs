// Reads a list of requests from its input and prints what the JavaScript
// libraries of Standard Webhooks and of CloudEvents make of each, as JSON.
// A request: {headers, body (base64), secrets, now (unix seconds)}.
import { readFileSync } from "node:fs";
import { HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";

const found = JSON.parse(readFileSync(0, "utf8")).map(({ headers, body, secrets, now }) => {
  const text = Buffer.from(body, "base64").toString("utf8");
  const out = { verified: [], event: null, fault: "" };
  const real = Date.now;
  Date.now = () => now * 1000; // both sides have the clock of the request
  for (const secret of secrets) {
    try {
      new Webhook(secret).verify(text, headers);
      out.verified.push(true);
    } catch {
      out.verified.push(false);
    }
  }
  Date.now = real;
  if (HTTP.isEvent({ headers, body: text })) {
    try {
      const { id, source, type, subject, time, specversion, livemode, data } = HTTP.toEvent({ headers, body: text });
      out.event = { id, source, type, subject, time, specversion, livemode: livemode === undefined ? "" : String(livemode), data: JSON.stringify(data) };
    } catch (e) {
      out.fault = e.message;
    }
  }
  return out;
});
process.stdout.write(JSON.stringify(found));
