// Lists the tools of a server and calls one, with an official client.
//
//   node call.mjs '{"client": "sdk1", "url": "http://…/mcp", "tool": "echo",
//     "arguments": {}, "token": "…", "headers": {}, "confirm": true}'
//
// client is one of:
//   sdk1             the first generation's SDK, which shakes hands
//   sdk2, sdk2-old   the second generation's: what it negotiates, and a handshake
//   inspector, inspector-old   the Inspector's command line, likewise
//
// token, headers and confirm may be left out. With confirm a second generation
// client offers forms, and answers each with {confirm: <value>}, or declines it
// when the value is null. Prints {protocol, tools, result, asked}, and
// {error, status} when something was refused.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';

const call = JSON.parse(process.argv[2]);
const headers = { ...call.headers, ...(call.token ? { Authorization: `Bearer ${call.token}` } : {}) };
const me = { name: 'postern-checks', version: '1.0.0' };

async function everything(list) {
  const tools = [];
  for (let cursor; ; ) {
    const page = await list(cursor);
    tools.push(...page.tools);
    if (!page.nextCursor) return tools;
    cursor = page.nextCursor;
  }
}

async function sdk1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const client = new Client(me);
  const transport = new StreamableHTTPClientTransport(new URL(call.url), { requestInit: { headers } });
  await client.connect(transport);
  const tools = await everything((cursor) => client.listTools({ cursor }));
  const result = await client.callTool({ name: call.tool, arguments: call.arguments });
  await client.close();
  return { protocol: transport.protocolVersion, tools, result };
}

async function sdk2(mode) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const asks = 'confirm' in call;
  const client = new Client(me, { versionNegotiation: { mode }, capabilities: asks ? { elicitation: { form: {} } } : {} });
  const asked = [];
  if (asks) {
    client.setRequestHandler('elicitation/create', async (request) => {
      asked.push(request.params.message);
      return call.confirm === null ? { action: 'decline' } : { action: 'accept', content: { confirm: call.confirm } };
    });
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(call.url), { requestInit: { headers } }));
  const tools = await everything((cursor) => client.listTools(cursor === undefined ? undefined : { cursor }));
  const result = await client.callTool({ name: call.tool, arguments: call.arguments });
  const protocol = client.getNegotiatedProtocolVersion();
  await client.close();
  return { protocol, tools, result, asked };
}

async function inspector(era) {
  const program = fileURLToPath(new URL('./node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
  const run = async (...args) => {
    const all = [program, '--cli', '--server-url', call.url, '--transport', 'http', '--protocol-era', era, '--stored-auth-only', '--quiet', '--format', 'json'];
    for (const [name, value] of Object.entries(headers)) all.push('--header', `${name}: ${value}`);
    const { stdout } = await promisify(execFile)(process.execPath, [...all, ...args], { maxBuffer: 64 << 20 });
    return JSON.parse(stdout);
  };
  const { result: list } = await run('--method', 'tools/list', '--strict');
  const { result } = await run('--method', 'tools/call', '--tool-name', call.tool, '--tool-args-json', JSON.stringify(call.arguments));
  return { tools: list.tools, result };
}

const clients = {
  sdk1,
  sdk2: () => sdk2('auto'),
  'sdk2-old': () => sdk2('legacy'),
  inspector: () => inspector('modern'),
  'inspector-old': () => inspector('legacy'),
};

let out;
try {
  out = await clients[call.client]();
} catch (e) {
  out = { error: String(e.stderr || e.message || e), status: e.code };
}
process.stdout.write(JSON.stringify(out));
