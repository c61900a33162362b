// What the TypeScript clients do once they are connected.

const CALLS = {
  time: [
    ['convert_time', { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' }],
    ['get_current_time', { timezone: 'Nowhere/At all' }],
    ['no_such_tool', {}],
  ],
  shop: [
    ['find_user_id_by_email', { email: 'c7@example.com' }],
    ['get_user_details', { user_id: 'nobody' }],
    ['no_such_tool', {}],
  ],
  everything: [
    ['echo', { message: 'hé 😀 \\ " \u2028' }],
    ['get-sum', { a: 1, b: 2.5 }],
    ['get-structured-content', { location: 'New York' }],
    ['get-tiny-image', {}],
    ['get-annotated-message', { messageType: 'error', includeImage: true }],
    ['no-such-tool', {}],
  ],
};

const attempt = async (what) => {
  try {
    return await what;
  } catch (error) {
    return { error: String(error) };
  }
};

export const work = async (client, server) => {
  const call = ([name, words]) => attempt(client.callTool({ name, arguments: words }));
  const got = { server: client.getServerVersion(), tools: await client.listTools(), calls: [] };
  for (const each of CALLS[server]) got.calls.push(await call(each));
  got.together = await Promise.all(Array.from({ length: 10 }, () => CALLS[server]).flat().map(call));
  if (server === 'everything') {
    got.resources = await attempt(client.listResources());
    got.prompts = await attempt(client.listPrompts());
  }
  return got;
};
