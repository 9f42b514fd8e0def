// Lets the tools that other people use judge what is told to agents, and prints
// what they found as one JSON object. Usage: node discovery.mjs <base address>.
import SwaggerParser from "@apidevtools/swagger-parser";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { buildSchema, parse, validate, validateSchema } from "graphql";

const base = process.argv[2];
const read = async (path) => (await fetch(base + path)).json();
const found = { operations: 0, lint: [], faults: [], queries: 0, schemas: 0 };

const document = await read("/api/ai/tools/openapi");
const checked = await SwaggerParser.validate(structuredClone(document));
found.operations = Object.values(checked.paths).flatMap((path) => Object.values(path)).length;
const config = await createConfig({ extends: ["recommended-strict"], rules: { "no-invalid-media-type-examples": "error", "no-server-example.com": "off" } });
found.lint = (await lintFromString({ source: JSON.stringify(document), absoluteRef: "openapi.json", config })).map((p) => `${p.ruleId}: ${p.message} ${p.location[0]?.pointer ?? ""}`);

const described = await read("/api/ai/tools/graphql");
const schema = buildSchema(described.sdl);
found.faults.push(...validateSchema(schema).map((e) => e.message));
for (const { name, aiHints } of described.operations) {
  found.faults.push(...validate(schema, parse(aiHints.example.query)).map((e) => `${name}: ${e.message}`));
  found.queries++;
}

const member = { openai: (t) => t.function.parameters, anthropic: (t) => t.input_schema, mcp: (t) => t.inputSchema, langchain: (t) => t.args_schema };
for (const [format, of] of Object.entries(member)) {
  for (const server of ["operations", "developer"]) {
    for (const tool of (await read(`/api/ai/tools?format=${format}&server=${server}`)).tools) {
      addFormats(new Ajv({ strict: true, strictRequired: false })).compile(of(tool));
      found.schemas++;
    }
  }
}
process.stdout.write(JSON.stringify(found));
