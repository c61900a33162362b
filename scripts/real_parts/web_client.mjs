// The TypeScript clients of MCP at work over HTTP, or through a proxy: print what they get as JSON.
//
//     web_client.mjs NODE_MODULES GENERATION SERVER URL
//     web_client.mjs NODE_MODULES GENERATION SERVER COMMAND...
//
// GENERATION is `v1`, or for the second one `plain` (the handshake), `auto` (the newest revision
// first) or a revision to insist on; SERVER says what there is to call.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, generation, server, target, ...args] = process.argv.slice(2);
const { resolve } = createRequire(`${modules}/`);
const load = (name) => import(pathToFileURL(resolve(name)));

const CALLS = {
  everything: [
    ['echo', { message: 'hé 😀 \\ " \u2028' }],
    ['get-structured-content', { location: 'New York' }],
    ['trigger-sampling-request', { prompt: 'hello', maxTokens: 5 }],
    ['trigger-elicitation-request', {}],
    ['no-such-tool', {}],
  ],
  dual: [['echo', { message: 'hé' }], ['ask', {}], ['no_such_tool', {}]],
  modern: [['echo', { message: ' hé ', n: 7 }], ['echo', { message: '' }], ['ask', {}], ['no_such_tool', {}]],
};
const LONG = {
  everything: ['trigger-long-running-operation', { duration: 0.6, steps: 3 }, { duration: 20, steps: 100 }],
  dual: ['slow', { steps: 3, seconds: 0.2 }, { steps: 100, seconds: 0.2 }],
};

const connected = async () => {
  const sdk = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}.js`));
  const first = generation === 'v1';
  const { Client } = await (first ? sdk('client/index') : load('@modelcontextprotocol/client'));
  const negotiation =
    first || generation === 'plain'
      ? {}
      : { versionNegotiation: { mode: generation === 'auto' ? 'auto' : { pin: generation } } };
  const client = new Client(
    { name: `typescript-${generation}`, version: '0' },
    { capabilities: { sampling: {}, elicitation: { form: {} } }, ...negotiation },
  );
  const elicited = async () => ({ action: 'accept', content: { name: 'Ada' } });
  const sampled = async () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'Sampled' } });
  if (first) {
    const { CreateMessageRequestSchema, ElicitRequestSchema } = await sdk('types');
    client.setRequestHandler(CreateMessageRequestSchema, sampled);
    client.setRequestHandler(ElicitRequestSchema, elicited);
  } else {
    client.setRequestHandler('sampling/createMessage', sampled);
    client.setRequestHandler('elicitation/create', elicited);
  }
  if (target.startsWith('http')) {
    const { StreamableHTTPClientTransport } = await (first ? sdk('client/streamableHttp') : load('@modelcontextprotocol/client'));
    await client.connect(new StreamableHTTPClientTransport(new URL(target)));
  } else {
    const { StdioClientTransport } = await (first ? sdk('client/stdio') : load('@modelcontextprotocol/client/stdio'));
    await client.connect(new StdioClientTransport({ command: target, args }));
  }
  return client;
};

const attempt = async (what) => {
  try {
    return await what;
  } catch (error) {
    return { error: String(error) };
  }
};

const client = await connected();
const call = (name, words, options) =>
  attempt(
    generation === 'v1'
      ? client.callTool({ name, arguments: words }, undefined, options)
      : client.callTool({ name, arguments: words }, options),
  );
const got = { server: client.getServerVersion(), tools: await client.listTools(), calls: [] };
for (const each of CALLS[server]) got.calls.push(await call(...each));
got.together = await Promise.all(Array.from({ length: 30 }, () => call(...CALLS[server][0])));
if (LONG[server]) {
  const [name, short, long] = LONG[server];
  // Over stdio this client forgets who waits for progress when the result stands in the same read,
  // as it may after the last step.
  const steps = [];
  const onprogress = (step) => step.progress < step.total && steps.push(step);
  got.long = { result: await call(name, short, { onprogress }), steps };
  const stop = new AbortController();
  const cancelled = await call(name, long, { signal: stop.signal, onprogress: () => stop.abort('enough') });
  got.cancelled = 'error' in cancelled;
  got.after = await call(...CALLS[server][0]);
}
await client.close();
console.log(JSON.stringify(got));
