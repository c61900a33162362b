#!/usr/bin/env python3
"""What `stretto init` writes, checked and started.

    scripts/hosts_real.py [--demo]

For each host, the configuration that `stretto init` makes is held against that host's documented
shape: printed, written to a new file, added to a file, and put before a server that a file has.
Each is then started, as the host would start it, by a Python and by two TypeScript clients of MCP;
what they get must be what they get from the server alone, and a session must have been recorded.
Claude Desktop's configuration is started with the PATH that it has. `stretto undo` must then leave
the files as they were. All of it twice: for a server that the host starts, and for the demo server over
HTTP, by its URL, which insists on a header.

The clients and the server come from npm and PyPI, pinned as in real_parts.py. With `--demo`, no
client is installed: a few lines of Python are the client, and the demo server is the server.
"""
import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import real_parts
from real_parts import NODE_MODULES, PARTS, PROXY, PYTHON, ROOT, STRETTO, Broken, run, timeless

NAME = "orders"
CONTAINERS = {"claude-code": "mcpServers", "claude-desktop": "mcpServers", "cursor": "mcpServers", "vscode": "servers", "plain": "mcpServers"}
MINIMAL_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--demo", action="store_true", help="without clients and servers from registries")
    demo = options.parse_args().demo
    try:
        if not demo:
            real_parts.install()
        run(["cargo", "build", "--quiet", "-p", "stretto-proxy", "-p", "stretto-cli"], cwd=ROOT, patience=1800)
        with tempfile.TemporaryDirectory(prefix="stretto-hosts-") as folder, shop_over_http() as url:
            for host in CONTAINERS:
                for kind in [Started, Reached]:
                    kind(host, Path(folder).resolve() / host / kind.__name__, demo, url).run()
    except Broken as broken:
        sys.exit(f"hosts_real.py: {broken}")


class Trial:
    """One host and one server, with a home directory of its own."""

    def __init__(self, host, folder, demo, url):
        self.host, self.folder, self.demo, self.url = host, folder, demo, url
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        # As after an installation: the programs are on the PATH, and nothing else of the build is.
        programs = folder / "bin"
        programs.mkdir()
        for program in [PROXY, STRETTO]:
            (programs / program.name).symlink_to(program)
        self.path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def run(self):
        expected = self.clients(self.server[0], self.server[1:])
        started = 0
        for how, entry in self.entries():
            check_entry(self.host, entry)
            before = self.sessions()
            own = {**self.by_hand, **entry.get("env", {})}
            for client, got in self.clients(entry["command"], entry["args"], own).items():
                found = real_parts.difference(expected[client], got)
                if found:
                    raise Broken(f"{self.host}, {how}, {client}: {found}")
                started += 1
            if self.sessions() < before + len(expected):
                raise Broken(f"{self.host}, {how}: {self.sessions() - before} sessions were recorded")
        print(f"{self.host}, {self.what}: {started} sessions by {', '.join(expected)}: the same as without the proxy")

    def entries(self):
        """Each way to get a configuration, and the server's entry in it."""
        server = self.words
        named = ["--host", self.host, "--domain", NAME]
        printed = self.stretto("init", *named, *server)
        if self.host == "claude-code":
            yield "printed", claude_mcp_add(printed, self.home)
        else:
            yield "printed", self.entry(json.loads(printed))

        written = self.folder / "new" / "mcp.json"
        self.stretto("init", *named, "--write", written, *server)
        yield "written", self.entry(json.loads(written.read_text()))

        container = CONTAINERS[self.host]
        merged = self.folder / "merged.json"
        merged.write_text(json.dumps({container: {"other": {"command": "true"}}}, indent=4))
        self.stretto("init", *named, "--merge", merged, *server)
        yield "added", self.entry(json.loads(merged.read_text()), others=["other"])

        wrapped = self.folder / "wrapped.json"
        old = self.unwrapped
        text = json.dumps({container: {NAME: old}}, indent="\t") + "\n"
        wrapped.write_text(text)
        self.stretto("init", "--host", self.host, "--wrap", NAME, "--file", wrapped)
        entry = json.loads(wrapped.read_text())[container][NAME]
        yield "wrapped", entry
        self.stretto("undo", NAME, "--host", self.host, "--file", wrapped)
        if wrapped.read_text() != text:
            raise Broken(f"{self.host}: {wrapped} is not what it was")

    def entry(self, file, others=()):
        """The server's entry in a file of the documented shape."""
        container = CONTAINERS[self.host]
        if list(file) != [container] or sorted(file[container]) != sorted([NAME, *others]):
            raise Broken(f"{self.host}: a file of another shape: {file}")
        return file[container][NAME]

    def stretto(self, *words):
        environment = {**os.environ, "HOME": str(self.home), "PATH": self.path}
        return run([STRETTO, *words], cwd=self.folder, env=environment).decode()

    def clients(self, command, words, own={}):
        """What each client gets from the server that this starts, as the host would start it."""
        path = MINIMAL_PATH if self.host == "claude-desktop" else self.path
        environment = {"HOME": str(self.home), "PATH": path, **own}
        words = [str(command), *words]
        if self.demo:
            return {"a script": scripted(words, environment)}
        # The clients run with what this script has, and give the server the host's environment.
        clients = {
            "python 2.3": [PYTHON, PARTS / "client.py", "auto", self.calls],
            "typescript 1.32": ["node", PARTS / "client_v1.mjs", NODE_MODULES, self.calls],
            "typescript 2.4": ["node", PARTS / "client_v2.mjs", NODE_MODULES, "auto", self.calls],
        }
        start = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        return {
            client: timeless(json.loads(run([*driver, *start, *words], cwd=self.folder)))
            for client, driver in clients.items()
        }

    def sessions(self):
        return len(list((self.home / ".stretto" / "logs" / NAME).glob("*.jsonl")))


DEMO = [str(PROXY.parent / "stretto-mcp-demo"), "--world", "retail"]
BEARER = "Bearer demo"


class Started(Trial):
    """A server that the host starts."""

    what = "a command"
    by_hand = {}

    def __init__(self, host, folder, demo, url):
        super().__init__(host, folder, demo, url)
        time = [str(PYTHON.parent / "mcp-server-time"), "--local-timezone", "UTC"]
        self.server, self.calls = (DEMO, "shop") if demo else (time, "time")
        self.words = ["--", *self.server]
        self.unwrapped = {"command": self.server[0], "args": self.server[1:]}
        if host == "vscode":
            self.unwrapped = {"type": "stdio", **self.unwrapped}


class Reached(Trial):
    """A server that the host reaches by its URL. Beside it, the same server is started, to know what to expect."""

    what = "a URL"
    server, calls = DEMO, "shop"
    by_hand = {"SHOP_AUTH": BEARER}

    def __init__(self, host, folder, demo, url):
        super().__init__(host, folder, demo, url)
        self.words = ["--upstream", url, "--upstream-header", "Authorization=SHOP_AUTH"]
        self.unwrapped = {"url": url, "headers": {"Authorization": BEARER}}
        if host in ("claude-code", "vscode"):
            self.unwrapped = {"type": "http", **self.unwrapped}


@contextlib.contextmanager
def shop_over_http():
    """The demo server over HTTP, and its URL."""
    server = subprocess.Popen([*DEMO, "--http", "127.0.0.1:0", "--require-auth", BEARER], stdout=subprocess.PIPE, text=True)
    try:
        # It says where it listens once it does.
        url = server.stdout.readline().strip()
        if not url:
            raise Broken("the demo server does not listen")
        yield url
    finally:
        server.kill()
        server.wait()


def check_entry(host, entry):
    """The documented members of a server with a command: all of them, and no others."""
    members = {"command": str, "args": list, **({"type": str} if "type" in entry or host == "vscode" else {})}
    if "env" in entry:
        members["env"] = dict
    has = {member: type(value) for member, value in entry.items()}
    words = entry.get("args", [])
    if has != members or not all(isinstance(word, str) for word in words) or entry.get("type", "stdio") != "stdio":
        raise Broken(f"{host}: an entry of another shape: {entry}")


def claude_mcp_add(line, home):
    """The entry that `claude mcp add` would make, after a shell has read the line."""
    # A leading tilde is the shell's to replace; shlex does not.
    words = [word.replace("~/", f"{home}/", 1) if word.startswith("~/") else word for word in shlex.split(line)]
    if words[:5] != ["claude", "mcp", "add", NAME, "--"]:
        raise Broken(f"claude-code: another command: {line}")
    return {"command": words[5], "args": words[6:]}


def scripted(words, environment):
    """A client of few lines: what the server says of itself, its tools, and a call."""
    asked = [
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "script", "version": "0"}}),
        ("tools/list", {}),
        ("tools/call", {"name": "find_user_id_by_email", "arguments": {"email": "c7@example.com"}}),
    ]
    lines = [json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) for number, (method, params) in enumerate(asked)]
    lines.insert(1, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    printed = run(words, env=environment, input=("\n".join(lines) + "\n").encode())
    messages = map(json.loads, printed.splitlines())
    answers = {message["id"]: message for message in messages if "id" in message}
    if sorted(answers) != [0, 1, 2] or any("error" in answer for answer in answers.values()):
        raise Broken(f"{' '.join(words)} answered {printed[:500]!r}")
    return answers


if __name__ == "__main__":
    main()
