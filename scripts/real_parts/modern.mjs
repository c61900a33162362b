// A server of the TypeScript kit that serves revision 2026-07-28 alone.
//
//     modern.mjs NODE_MODULES PORT
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [modules, port] = process.argv.slice(2);
const { resolve } = createRequire(`${modules}/`);
const load = (name) => import(pathToFileURL(resolve(name)));
const { McpServer, createMcpHandler, inputRequired, fromJsonSchema } = await load('@modelcontextprotocol/server');
const { toNodeHandler } = await load('@modelcontextprotocol/node');

const schema = (properties, required = []) => fromJsonSchema({ type: 'object', properties, required });
const text = (said) => ({ content: [{ type: 'text', text: said }] });

const make = () => {
  const server = new McpServer({ name: 'modern', version: '1' });
  const mirrored = { message: { type: 'string', 'x-mcp-header': 'Message' }, n: { type: 'integer', 'x-mcp-header': 'N' } };
  server.registerTool(
    'echo',
    { annotations: { readOnlyHint: true }, inputSchema: schema(mirrored, ['message']) },
    async ({ message, n }) => text(`${message} ${n}`),
  );
  server.registerTool('ask', { inputSchema: schema({}) }, async (_words, context) => {
    const given = context.mcpReq?.inputResponses?.name;
    if (given) return text(JSON.stringify(given));
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const name = { method: 'elicitation/create', params: { mode: 'form', message: 'Your name?', requestedSchema } };
    return inputRequired({ requestState: 'opaque-1', inputRequests: { name } });
  });
  return server;
};

createServer(toNodeHandler(createMcpHandler(make, { legacy: 'reject' }))).listen(Number(port), '127.0.0.1');
