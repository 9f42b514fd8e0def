// Stands between a client and a server and checks every request and answer by
// the document that the server publishes. Usage: node proxy.mjs <base address> <formats of our own, by commas>.
// Prints its own address, and when its input ends what it saw as one JSON object:
// how often which status of which operation.
//
// A mismatch is answered with 599 and a list of what is wrong. Checked are, of
// an answer: status, content type, required headers, code of the error, and the
// body, which may have no member that the document does not name; of a request
// that the server took: path, query, headers, content type and body. What the
// server refused may be anything.
//
// Prism would do this, too: it needs Node 24, and reads a document of OpenAPI 3.1
// without jsonSchemaDialect as JSON Schema draft 7.
import { createServer, request as send } from "node:http";
import { createInterface } from "node:readline";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const base = new URL(process.argv[2]);
const document = await (await fetch(new URL("/api/openapi.json", base))).json();

// closed lets objects have the members that they name and no others.
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== "object") return schema;
  const out = Object.fromEntries(Object.entries(schema).map(([k, v]) => [k, closed(v)]));
  if (out.type === "object" && out.properties && out.additionalProperties === undefined) out.additionalProperties = false;
  return out;
}
// Formats of our own are held by the patterns beside them; those that addFormats knows stay its own.
const formats = Object.fromEntries(process.argv[3].split(",").map((name) => [name, true]));
const options = { strict: false, allErrors: true, formats };
const asked = addFormats(new Ajv({ ...options })).addSchema({ ...document, $id: "doc" });
const given = addFormats(new Ajv({ ...options })).addSchema({ ...document, components: { ...document.components, schemas: closed(document.components.schemas) }, $id: "doc" });
const text = addFormats(new Ajv({ ...options, coerceTypes: true })).addSchema({ ...document, $id: "doc" });

const compiled = new Map();
function check(ajv, schema, value, where) {
  const own = ajv === given ? closed(schema) : schema;
  const key = JSON.stringify([ajv === given ? 1 : ajv === text ? 2 : 3, own]);
  if (!compiled.has(key)) compiled.set(key, ajv.compile(JSON.parse(JSON.stringify(own).replaceAll('"#/', '"doc#/'))));
  const valid = compiled.get(key);
  return valid(value) ? [] : valid.errors.map((e) => `${where}${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
}

const at = (o) => (o.$ref ? o.$ref.slice(2).split("/").reduce((v, k) => v[k], document) : o);
const routes = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({
  method: method.toUpperCase(), operation, names: [...path.matchAll(/\{([^}]+)\}/g)].map((m) => m[1]),
  like: new RegExp("^" + path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, "([^/]+)") + "$"),
}))).sort((a, b) => a.names.length - b.names.length);

const kind = (headers) => (headers["content-type"] ?? "").split(";")[0].trim();
const parsed = (body) => { try { return [JSON.parse(body)]; } catch { return []; } };

// Codes that any operation may answer, whatever it does.
const common = ["BAD_REQUEST", "MALFORMED_JSON", "VALIDATION_FAILED", "UNAUTHENTICATED", "TOKEN_INVALID", "FORBIDDEN", "ACCOUNT_TYPE_NOT_ALLOWED", "RATE_LIMITED", "MODULE_DISABLED", "MODULE_UNAVAILABLE", "UNSUPPORTED_MEDIA_TYPE"];

function checkAnswer(operation, status, headers, body) {
  const named = operation.responses[status];
  // The default is for what no operation is asked for: time is over, too large.
  if (!named && (status < 400 || [400, 401, 403, 404, 409, 422, 429].includes(status))) return [`status ${status} is not described`];
  const answer = at(named ?? operation.responses.default);
  const wrong = Object.entries(answer.headers ?? {}).flatMap(([name, h]) => {
    const value = headers[name.toLowerCase()];
    return value === undefined ? (h.required ? [`header ${name} is missing`] : []) : check(text, h.schema, value, `header ${name}`);
  });
  if (!answer.content) return body.length === 0 ? wrong : [...wrong, `a body is not described for ${status}`];
  const media = answer.content[kind(headers)];
  if (!media) return [...wrong, `content type ${kind(headers)} is not described for ${status}`];
  if (media.schema.format === "binary") return wrong;
  const value = parsed(body);
  if (value.length === 0) return [...wrong, "the answer is no JSON"];
  wrong.push(...check(given, media.schema, value[0], "answer"));
  const code = value[0]?.error_code;
  if (status >= 400 && !common.includes(code) && !operation["x-error-codes"]?.includes(code)) wrong.push(`code ${code} is not described`);
  return wrong;
}

// form is a body of a form as an object, files as empty texts.
async function form(headers, body) {
  const parts = await new Response(body, { headers: { "content-type": headers["content-type"] } }).formData();
  return Object.fromEntries([...parts].map(([name, v]) => [name, typeof v === "string" ? v : ""]));
}

async function checkRequest({ operation, names, like }, url, headers, body) {
  const wrong = [];
  const segments = like.exec(url.pathname).slice(1);
  const parameters = operation.parameters ?? [];
  const value = { path: (n) => decodeURIComponent(segments[names.indexOf(n)]), query: (n) => url.searchParams.get(n) ?? undefined, header: (n) => headers[n.toLowerCase()] };
  for (const p of parameters) {
    const v = value[p.in](p.name);
    if (v !== undefined) wrong.push(...check(text, { type: "object", properties: { v: p.schema } }, { v }, `${p.in} ${p.name}`));
    else if (p.required) wrong.push(`${p.in} ${p.name} is missing`);
  }
  for (const name of url.searchParams.keys()) if (!parameters.some((p) => p.in === "query" && p.name === name)) wrong.push(`query ${name} is not described`);
  if (body.length === 0) return operation.requestBody?.required ? [...wrong, "a body is missing"] : wrong;
  const media = operation.requestBody?.content[kind(headers)];
  if (!operation.requestBody) return body.toString() === "{}" ? wrong : [...wrong, "a body is not described"];
  if (!media) return [...wrong, `content type ${kind(headers)} is not described`];
  if (kind(headers) === "multipart/form-data") return [...wrong, ...check(text, media.schema, await form(headers, body), "request")];
  const v = parsed(body);
  return v.length === 0 ? [...wrong, "the request is no JSON"] : [...wrong, ...check(asked, media.schema, v[0], "request")];
}

const read = async (stream) => { const parts = []; for await (const p of stream) parts.push(p); return Buffer.concat(parts); };
const seen = {};

const server = createServer(async (req, res) => {
  const body = await read(req);
  const url = new URL(req.url, base);
  const up = send(url, { method: req.method, headers: { ...req.headers, host: base.host } });
  up.on("error", (e) => res.writeHead(599).end(String(e)));
  up.on("response", async (answer) => {
    const raw = await read(answer);
    const route = routes.find((r) => r.method === req.method && r.like.test(url.pathname));
    let wrong = [`${req.method} ${url.pathname} is not described`];
    if (route) {
      const counts = (seen[route.operation.operationId] ??= {});
      counts[answer.statusCode] = (counts[answer.statusCode] ?? 0) + 1;
      wrong = checkAnswer(route.operation, answer.statusCode, answer.headers, raw);
      if (answer.statusCode < 400) wrong.push(...await checkRequest(route, url, req.headers, body));
    }
    if (wrong.length === 0) return res.writeHead(answer.statusCode, answer.headers).end(raw);
    res.writeHead(599, { "Content-Type": "text/plain" }).end(`${answer.statusCode} ${wrong.join("; ")}`);
  });
  up.end(body);
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`));
createInterface({ input: process.stdin }).on("close", () => {
  process.stdout.write(JSON.stringify(seen) + "\n");
  process.exit();
});
