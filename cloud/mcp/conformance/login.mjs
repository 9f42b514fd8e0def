// Connects a client of the first or second generation to a server with nothing
// but its address, as a desktop agent does: the client finds the authorization
// server, registers, and asks its user to a page.
//
//   node login.mjs '{"client": "sdk1", "url": "http://…/mcp", "tool": "get_orders", "arguments": {}}'
//
// Prints the address of that page, reads the query that the user came back with
// from its input, and prints the result of the tool as JSON.
import { createInterface } from 'node:readline';

const call = JSON.parse(process.argv[2]);
const sdk = call.client === 'sdk1'
  ? { ...(await import('@modelcontextprotocol/sdk/client/index.js')), ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')) }
  : await import('@modelcontextprotocol/client');

let registration, tokens, verifier;
const authProvider = {
  redirectUrl: 'http://127.0.0.1:4711/callback',
  clientMetadata: { client_name: `Desk (${call.client})`, redirect_uris: ['http://127.0.0.1:4711/callback'], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' },
  clientInformation: () => registration,
  saveClientInformation: (information) => { registration = information; },
  tokens: () => tokens,
  saveTokens: (given) => { tokens = given; },
  redirectToAuthorization: (page) => { console.log(page.href); },
  saveCodeVerifier: (text) => { verifier = text; },
  codeVerifier: () => verifier,
};

const connect = async () => {
  const client = new sdk.Client({ name: 'postern-checks', version: '1.0.0' });
  const transport = new sdk.StreamableHTTPClientTransport(new URL(call.url), { authProvider });
  await client.connect(transport);
  return { client, transport };
};

const first = await connect();
let asked = false;
try {
  await first.client.callTool({ name: call.tool, arguments: call.arguments });
} catch {
  asked = true; // nobody is logged in yet
}
if (!asked) throw new Error('the tool was open to everybody');
const [line] = await new Promise((done) => createInterface({ input: process.stdin }).once('line', (text) => done([text])));
const back = new URLSearchParams(line);
await first.transport.finishAuth(call.client === 'sdk1' ? back.get('code') : back);
await first.client.close();

const { client } = await connect();
const result = await client.callTool({ name: call.tool, arguments: call.arguments });
console.log(JSON.stringify({ result, scope: tokens.scope, refresh: Boolean(tokens.refresh_token) }));
await client.close();
