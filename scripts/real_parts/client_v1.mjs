// The TypeScript client of MCP, first generation: prints what it gets as JSON.
//
//     client_v1.mjs NODE_MODULES SERVER COMMAND...
import { work } from './calls.mjs';

const [modules, server, command, ...args] = process.argv.slice(2);
const sdk = `${modules}/@modelcontextprotocol/sdk/dist/esm/client`;
const { Client } = await import(`${sdk}/index.js`);
const { StdioClientTransport } = await import(`${sdk}/stdio.js`);

const client = new Client({ name: 'typescript-v1', version: '0' });
const transport = new StdioClientTransport({ command, args });
await client.connect(transport);
const got = await work(client, server);
await client.close();
console.log(JSON.stringify(got));
