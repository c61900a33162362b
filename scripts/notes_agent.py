#!/usr/bin/env python3
"""A scripted agent, and the host that it lives in: it looks up what was noted about customers.

    scripts/notes_agent.py CUSTOMER... -- COMMAND... FOLDER

COMMAND is an MCP server for files, or a proxy before one, and FOLDER, its last word, is where the
notes are. Customers without notes get two each first. Each customer is a session of its own: the
agent searches for the customer's notes and reads both, a call in each turn. It is honest: it makes
a call only if it has not been given the result yet. Prints how many calls each customer took, and
exits with 1 when a session goes wrong or the agent has not read what the notes say.
"""
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# A model reads a result before it makes the next call; anything quicker counts as the same turn.
THINKS = 0.6
PATIENCE = 60
MARK = "--- Also looked up automatically"


class Broken(Exception):
    """A session that did not go as it must."""


class Session:
    """A host's connection to its server."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.stderr = b""
        self.reader = threading.Thread(target=self._read_stderr)
        self.reader.start()
        self.watch = threading.Timer(PATIENCE, self.process.kill)
        self.watch.start()
        self.id = 0

    def _read_stderr(self):
        self.stderr = self.process.stderr.read()

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.id and "method" not in answer:
                if "error" in answer:
                    raise Broken(f"{method} failed: {answer['error']}")
                return answer["result"]
        raise Broken(f"no answer to {method}")

    def begin(self):
        self.ask(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "notes-agent", "version": "0"},
        )
        self.send({"method": "notifications/initialized"})
        self.ask("tools/list")

    def call(self, tool, **arguments):
        time.sleep(THINKS)
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise Broken(f"{tool} {arguments} failed: {result}")
        return [item["text"] for item in result["content"] if item["type"] == "text"]

    def end(self):
        """Closes the session, and returns how it ended when that was not well."""
        self.process.stdin.close()
        status = self.process.wait()
        self.watch.cancel()
        self.reader.join()
        return f"exit {status}: {self.stderr.decode(errors='replace').strip()}" if status else None


def read_notes(session, folder, customer):
    """Reads a customer's two notes. Returns what it read, and how many calls it made."""
    calls = 1
    texts = session.call("search_files", path=str(folder), pattern=f"{customer}-*")
    paths = [line for line in texts[0].splitlines() if line.strip()]
    given = "\n".join(text for text in texts if text.startswith(MARK))
    read = []
    for path in paths:
        if path in given:
            read.append(given.split(path, 1)[1].split("\n", 1)[1].split("\n\nread_", 1)[0])
            continue
        calls += 1
        read.append(session.call("read_text_file", path=path)[0])
    return [text.strip() for text in read], calls


def serve(command, folder, customer):
    """A session about a customer. Returns how many calls the agent made."""
    session = Session(command)
    trouble = None
    try:
        session.begin()
        read, calls = read_notes(session, folder, customer)
    except (Broken, OSError) as broken:
        trouble = str(broken)
    ended = session.end()
    if trouble or ended:
        raise Broken(f"the session about {customer}: {'; '.join(filter(None, [trouble, ended]))}")
    if sorted(read) != sorted(notes_of(customer)):
        raise Broken(f"the agent read {read} about {customer}, and the notes are {notes_of(customer)}")
    return calls


def notes_of(customer):
    return [f"{customer} prefers mornings.", f"{customer} asked about invoice {len(customer) * 7}."]


def write_notes(folder, customer):
    for number, text in enumerate(notes_of(customer)):
        (folder / f"{customer}-{number}.txt").write_text(text + "\n")


def main():
    words = sys.argv[1:]
    if "--" not in words or words.index("--") in (0, len(words) - 1):
        sys.exit(__doc__.split("\n\n")[1].strip())
    cut = words.index("--")
    customers, command = words[:cut], words[cut + 1 :]
    folder = Path(command[-1]).resolve()
    command[-1] = str(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for customer in customers:
        write_notes(folder, customer)
    try:
        with ThreadPoolExecutor(len(customers)) as sessions:
            counts = list(sessions.map(lambda customer: serve(command, folder, customer), customers))
    except (Broken, OSError) as broken:
        sys.exit(f"notes_agent.py: {broken}")
    for customer, calls in zip(customers, counts):
        print(f"{customer}: {calls} call{'' if calls == 1 else 's'}")


if __name__ == "__main__":
    main()
