// The TypeScript client of MCP, second generation: prints what it gets as JSON.
//
//     client_v2.mjs NODE_MODULES MODE SERVER COMMAND...
//
// MODE is `plain` (the handshake), `auto` (the newest revision first), or a revision to insist on.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { work } from './calls.mjs';

const [modules, mode, server, command, ...args] = process.argv.slice(2);
const { resolve } = createRequire(`${modules}/`);
const { Client } = await import(pathToFileURL(resolve('@modelcontextprotocol/client')));
const { StdioClientTransport } = await import(pathToFileURL(resolve('@modelcontextprotocol/client/stdio')));

const negotiation = {
  plain: {},
  auto: { versionNegotiation: { mode: 'auto' } },
}[mode] ?? { versionNegotiation: { mode: { pin: mode } } };
const client = new Client({ name: 'typescript-v2', version: '0' }, { capabilities: {}, ...negotiation });
await client.connect(new StdioClientTransport({ command, args }));
const got = { revision: client.getNegotiatedProtocolVersion?.() ?? client.getProtocolEra(), ...(await work(client, server)) };
await client.close();
console.log(JSON.stringify(got));
