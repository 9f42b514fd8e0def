// Reads an AsyncAPI document from its input and prints what the parser of the
// specification's authors finds in it, as JSON.
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const { document, diagnostics } = await new Parser().parse(readFileSync(0, "utf8"));
const severities = ["error", "warning", "information", "hint"];
const found = { diagnostics: diagnostics.map((d) => `${severities[d.severity]} ${d.code}: ${d.message} at ${d.path.join(".")}`), messages: [], channels: [], operations: 0 };
if (document) {
  found.messages = document.allMessages().all().map((m) => m.name());
  found.channels = document.allChannels().all().map((c) => c.id());
  found.operations = document.allOperations().all().length;
}
process.stdout.write(JSON.stringify(found));
