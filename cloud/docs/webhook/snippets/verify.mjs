import { createHmac, timingSafeEqual } from "node:crypto";

// Whether a request was signed with secret in the last five minutes. headers
// have lower-case names, as in Node; body is the Buffer that was received.
export function verify(headers, body, secret, now = Date.now() / 1000) {
  const at = headers["x-webhook-timestamp"] ?? "";
  if (!/^\d{1,12}$/.test(at) || Math.abs(Math.floor(now) - Number(at)) > 300) return false;
  const sign = (prefix, encoding) => createHmac("sha256", secret).update(prefix).update(body).digest(encoding);
  const id = headers["x-webhook-delivery-id"];
  let want, given;
  if (id) { // endpoint of a provider
    want = sign(`${at}\n${id}\n`, "base64");
    given = [headers["x-webhook-signature"], headers["x-webhook-signature-next"]];
  } else { // address of an account
    want = sign(`${at}.`, "hex");
    given = (headers["x-webhook-signature-v2"] ?? "").split(",");
  }
  const same = (g) => g?.length === want.length && timingSafeEqual(Buffer.from(g, "latin1"), Buffer.from(want, "latin1"));
  return given.filter(same).length > 0;
}
