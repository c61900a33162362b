"""The Python client of MCP at work: prints what it gets as JSON.

    client.py MODE SERVER COMMAND...

MODE is `auto` (the newest revision first) or `legacy`; SERVER says what there is to call.
"""
import asyncio
import json
import sys

from mcp import Client, StdioServerParameters

CALLS = {
    "time": [
        ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ("get_current_time", {"timezone": "Nowhere/At all"}),
        ("no_such_tool", {}),
    ],
    "shop": [
        ("find_user_id_by_email", {"email": "c7@example.com"}),
        ("get_user_details", {"user_id": "nobody"}),
        ("no_such_tool", {}),
    ],
    "everything": [
        ("echo", {"message": "hé 😀 \\ \" \u2028"}),
        ("get-sum", {"a": 1, "b": 2.5}),
        ("get-structured-content", {"location": "New York"}),
        ("get-tiny-image", {}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("no-such-tool", {}),
    ],
}


def plain(value):
    return value.model_dump(mode="json", by_alias=True)


async def attempt(what):
    try:
        return plain(await what)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def main():
    mode, server, command, *words = sys.argv[1:]
    parameters = StdioServerParameters(command=command, args=words)
    async with Client(parameters, mode=mode) as client:
        got = {"revision": client.protocol_version, "tools": plain(await client.list_tools())}
        got["calls"] = [await attempt(client.call_tool(name, words)) for name, words in CALLS[server]]
        together = [attempt(client.call_tool(name, words)) for name, words in CALLS[server] * 10]
        got["together"] = await asyncio.gather(*together)
        if server == "everything":
            got["resources"] = await attempt(client.list_resources())
            got["prompts"] = await attempt(client.list_prompts())
    json.dump(got, sys.stdout)


asyncio.run(main())
