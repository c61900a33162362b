"""A server of the Python kit that serves hosts of every revision.

    dual.py PORT
"""
import sys

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

server = MCPServer("dual")


class Name(BaseModel):
    name: str


@server.tool()
def echo(message: str) -> str:
    return "Echo: " + message


@server.tool()
async def slow(steps: int, seconds: float, ctx: Context) -> str:
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step}")
        await anyio.sleep(seconds)
    return "done"


@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Your name?", Name)
    return f"{answer.action} {answer.data.name if answer.action == 'accept' else ''}"


server.run(transport="streamable-http", port=int(sys.argv[1]))
