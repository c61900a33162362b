"""The Python client of MCP at work over HTTP, or through a proxy: prints what it gets as JSON.

    web_client.py MODE SERVER URL
    web_client.py MODE SERVER COMMAND...

MODE is `auto` (the newest revision first) or `legacy`; SERVER says what there is to call.
"""
import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.types import CreateMessageResult, ElicitResult, TextContent

CALLS = {
    "everything": [
        ("echo", {"message": "hé 😀 \\ \" \u2028"}),
        ("get-sum", {"a": 1, "b": 2.5}),
        ("get-structured-content", {"location": "New York"}),
        ("trigger-sampling-request", {"prompt": "hello", "maxTokens": 5}),
        ("trigger-elicitation-request", {}),
        ("no-such-tool", {}),
    ],
    "dual": [("echo", {"message": "hé"}), ("ask", {}), ("no_such_tool", {})],
    "modern": [
        ("echo", {"message": " hé ", "n": 7}),
        ("echo", {"message": ""}),
        ("ask", {}),
        ("no_such_tool", {}),
    ],
}
LONG = {
    "everything": ("trigger-long-running-operation", {"duration": 0.6, "steps": 3}, {"duration": 20, "steps": 100}),
    "dual": ("slow", {"steps": 3, "seconds": 0.2}, {"steps": 100, "seconds": 0.2}),
}


async def answer(context, params):
    return ElicitResult(action="accept", content={"name": "Ada"})


async def sample(context, params):
    return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="Sampled"))


def plain(value):
    return value.model_dump(mode="json", by_alias=True)


async def attempt(what):
    try:
        return plain(await what)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def long_call(client, name, words):
    steps = []

    async def note(progress, total, message):
        steps.append([progress, total, message])

    result = await attempt(client.call_tool(name, words, progress_callback=note))
    return {"steps": steps, "result": result}


async def cancelled_call(client, name, words):
    under_way = asyncio.Event()

    async def note(progress, total, message):
        under_way.set()

    call = asyncio.create_task(client.call_tool(name, words, progress_callback=note))
    await asyncio.wait_for(under_way.wait(), 20)
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return "cancelled"
    return "not cancelled"


async def main():
    mode, server, target, *words = sys.argv[1:]
    if not target.startswith("http"):
        target = StdioServerParameters(command=target, args=words)
    async with Client(target, mode=mode, elicitation_callback=answer, sampling_callback=sample) as client:
        got = {"revision": client.protocol_version, "tools": plain(await client.list_tools())}
        got["calls"] = [await attempt(client.call_tool(name, words)) for name, words in CALLS[server]]
        together = [attempt(client.call_tool(*CALLS[server][0])) for _ in range(30)]
        got["together"] = await asyncio.gather(*together)
        if server in LONG:
            name, short, long = LONG[server]
            got["long"] = await long_call(client, name, short)
            got["cancelled"] = await cancelled_call(client, name, long)
            got["after"] = await attempt(client.call_tool(*CALLS[server][0]))
    json.dump(got, sys.stdout)


asyncio.run(main())
