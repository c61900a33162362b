#!/usr/bin/env python3
"""Runs the proxy in front of the public reference server over HTTP.

    scripts/http_check.py

Installs @modelcontextprotocol/server-everything from npm, starts it, and checks a session
through the proxy: tools, a long call with its progress, a log message on the stream for the
server's own messages, and the end. Exits with 1 when anything is not as it must be.
"""
import json
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "real_parts"))

import web

PACKAGE = "@modelcontextprotocol/server-everything@2026.8.31"

# The slowest thing here is a log message that comes every five seconds.
PATIENCE = 60


class Host:
    """What starts the proxy."""

    def __init__(self, url, logs):
        command = [str(web.PROXY), "--record", str(logs), "--domain", "everything", "--upstream", url]
        self.proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.proxy.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, method, params=None, id=None):
        message = {"jsonrpc": "2.0", "method": method}
        if id is not None:
            message["id"] = id
        if params is not None:
            message["params"] = params
        self.proxy.stdin.write(json.dumps(message) + "\n")
        self.proxy.stdin.flush()

    def until(self, is_it, what):
        """The messages up to the first of which `is_it` holds."""
        messages = []
        while True:
            try:
                message = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                sys.exit(f"http_check.py: {what} did not come within {PATIENCE} s")
            if message is None:
                sys.exit(f"http_check.py: the proxy ended before {what} came")
            messages.append(message)
            if is_it(message):
                return messages

    def ask(self, id, method, params):
        """Everything up to the answer."""
        self.send(method, params, id)
        return self.until(lambda message: message.get("id") == id and "method" not in message, f"the answer to {method}")


def must(holds, what):
    if not holds:
        sys.exit(f"http_check.py: {what}")
    print("ok:", what, flush=True)


def main():
    web.install(npm=[PACKAGE])
    web.build()
    with web.served(["node", web.EVERYTHING, "streamableHttp"]) as url, tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        host = Host(url, logs)
        opened = host.ask(0, "initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "http_check", "version": "0"},
        })
        must("serverInfo" in opened[-1].get("result", {}), "the session opens")
        host.send("notifications/initialized")

        tools = host.ask(1, "tools/list", {})[-1]["result"]["tools"]
        must({"echo", "trigger-long-running-operation"} <= {tool["name"] for tool in tools}, "it lists its tools")

        call = {"name": "trigger-long-running-operation", "arguments": {"duration": 1, "steps": 3}}
        seen = host.ask(2, "tools/call", {**call, "_meta": {"progressToken": "p"}})
        progress = [message for message in seen if message.get("method") == "notifications/progress"]
        must(len(progress) >= 2, f"a long call says how far it is before its result ({len(progress)} times)")
        must("completed" in json.dumps(seen[-1]["result"]), "and has a result")

        host.ask(3, "logging/setLevel", {"level": "debug"})
        host.ask(4, "tools/call", {"name": "toggle-simulated-logging", "arguments": {}})
        is_log = lambda message: message.get("method") == "notifications/message"
        host.until(is_log, "a log message of the server's own")
        must(True, "a log message comes on the server's own stream")

        host.proxy.stdin.close()
        must(host.proxy.wait(PATIENCE) == 0, "the proxy ends with 0")
        written = [path for path in logs.iterdir()]
        must(len(written) == 1, "there is one log")
        header, *entries = [json.loads(line) for line in written[0].read_bytes().splitlines()]
        must(header["server_command"] == [url], "its header has the URL")
        must(len(entries) >= 10, f"it is complete ({len(entries)} entries)")
        answered = {entry["message"].get("id") for entry in entries if entry["from"] == "server"}
        must({0, 1, 2, 3, 4} <= answered, "with all answers")


if __name__ == "__main__":
    main()
