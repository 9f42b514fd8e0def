// Lets the tools that other people use judge the interface and prints what they
// found as one JSON object. Usage: node checks.mjs <base address>. SCHEMA names
// the file of the GraphQL schema as we publish it.
import { readFileSync } from "node:fs";
import SwaggerParser from "@apidevtools/swagger-parser";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import Ajv from "ajv/dist/2020.js";
import { buildClientSchema, buildSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema, validateSchema } from "graphql";
import { auditServer } from "graphql-http";

const base = process.argv[2];
const url = `${base}/api/graphql`;
const found = { openapi: {}, schema: {}, audits: [] };

const described = await fetch(`${base}/api/openapi.json`);
const document = await described.json();
try {
  const checked = await SwaggerParser.validate(structuredClone(document));
  found.openapi.operations = Object.values(checked.paths).flatMap((path) => Object.values(path)).length;
} catch (e) {
  found.openapi.fault = e.message;
}

// The linter's recommended rules, warnings too, with two more: what examples say
// must be what their schemas say, and nothing may be there that nothing refers to.
const config = await createConfig({ extends: ["recommended-strict"], rules: {
  "no-invalid-media-type-examples": "error", "no-unused-components": "error", "no-ambiguous-paths": "error",
  "no-server-example.com": "off", // a server that listens on the loopback says so
} });
const lint = async (document) => (await lintFromString({ source: JSON.stringify(document), absoluteRef: "openapi.json", config })).map((p) => `${p.ruleId}: ${p.message} ${p.location[0]?.pointer ?? ""}`);
found.openapi.lint = await lint(document);
found.openapi.linted = await lint({ ...document, tags: [{ name: "User" }] });

// Every schema is one, and every worked example is valid by its schema.
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true }).addSchema({ $id: "served", ...document });
const pointer = (path) => "served#/" + path.map((p) => encodeURIComponent(p.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
found.openapi.schemas = Object.keys(document.components.schemas).filter((name) => ajv.compile({ $ref: pointer(["components", "schemas", name]) })).length;
found.openapi.examples = [];
found.openapi.wrong = [];
for (const [path, methods] of Object.entries(document.paths)) {
  for (const [method, { operationId, requestBody }] of Object.entries(methods)) {
    const example = requestBody?.content["application/json"]?.example;
    if (example === undefined) continue;
    found.openapi.examples.push(operationId);
    const valid = ajv.compile({ $ref: pointer(["paths", path, method, "requestBody", "content", "application/json", "schema"]) });
    if (!valid(example)) found.openapi.wrong.push(`${operationId}: ${ajv.errorsText(valid.errors)}`);
  }
}

const asked = await fetch(url, {
  method: "POST",
  headers: { "Content-Type": "application/json", Accept: "application/graphql-response+json" },
  body: JSON.stringify({ query: getIntrospectionQuery({ descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true, inputValueDeprecation: true, oneOf: true }) }),
});
const { data, errors } = await asked.json();
const sorted = (schema) => printSchema(lexicographicSortSchema(schema));
found.schema.status = asked.status;
found.schema.faults = (errors ?? []).map((e) => e.message);
if (data) {
  const schema = buildClientSchema(data);
  found.schema.faults.push(...validateSchema(schema).map((e) => e.message));
  found.schema.served = sorted(schema);
  found.schema.published = sorted(buildSchema(readFileSync(process.env.SCHEMA, "utf8")));
}

for (const audit of await auditServer({ url })) {
  found.audits.push({ id: audit.id, name: audit.name, status: audit.status, reason: audit.reason ?? "" });
}
process.stdout.write(JSON.stringify(found));
