#!/usr/bin/env python3
"""Record, learn, serve, on the real filesystem server.

    scripts/flow_real.py [--keep]

A scripted agent looks for a customer's notes and reads both of them: three calls, each in a turn
of its own. Eight such sessions are recorded, a flow is learned from them, and a ninth customer is
served with it: the agent makes one call, because the other two results came with it. The agent is
honest: it makes a call only if it has not been given the result.

The server comes from npm, pinned, into target/real-parts. Exits with 1 when anything is not as said.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FOLDER = TARGET / "real-parts" / "filesystem"
PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"
SERVER = FOLDER / "node_modules" / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js"
PROXY = TARGET / "debug" / "stretto-proxy"
STRETTO = TARGET / "debug" / "stretto"

SESSIONS = 8
# A model reads a result before it makes the next call; anything quicker counts as the same turn.
THINKS = 0.6
PATIENCE = 60
MARK = "--- Also looked up automatically"


class Session:
    """A host with the proxy in front of the filesystem server."""

    def __init__(self, notes, options):
        command = [PROXY, *options, "--", "node", SERVER, notes]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
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
                    sys.exit(f"{method} failed: {answer['error']}")
                return answer["result"]
        sys.exit(f"no answer to {method}; the proxy said: {self.end()}")

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
            sys.exit(f"{tool} {arguments} failed: {result}")
        return [item["text"] for item in result["content"] if item["type"] == "text"]

    def end(self):
        self.process.stdin.close()
        status = self.process.wait()
        self.watch.cancel()
        self.reader.join()
        return f"exit {status}, stderr {self.stderr.decode(errors='replace').strip()!r}"


def agent(session, notes, customer):
    """Reads a customer's two notes. Returns what it read, and how many calls it made."""
    calls = 1
    texts = session.call("search_files", path=str(notes), pattern=f"{customer}-*")
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


def write_notes(folder, customer):
    folder.mkdir(parents=True)
    texts = [f"{customer} prefers mornings.", f"{customer} asked about invoice {len(customer) * 7}."]
    for number, text in enumerate(texts):
        (folder / f"{customer}-{number}.txt").write_text(text + "\n")
    (folder / "unrelated.txt").write_text("Nobody asks for this.\n")
    return texts


def play(work, customer, options):
    notes = work / "notes" / customer
    texts = write_notes(notes, customer)
    session = Session(notes, options)
    session.begin()
    read, calls = agent(session, notes, customer)
    ended = session.end()
    if session.process.returncode != 0:
        sys.exit(f"the session of {customer} ended badly: {ended}")
    if sorted(read) != sorted(texts):
        sys.exit(f"the agent read {read} of {customer}, and the notes are {texts}")
    return calls


def run(*command):
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="keep the logs and the flow, and say where")
    keep = parser.parse_args().keep
    run("npm", "install", "--prefix", FOLDER, "--no-audit", "--no-fund", "--silent", PACKAGE)
    run("cargo", "build", "--quiet", "-p", "stretto-proxy", "-p", "stretto-cli")
    work = Path(tempfile.mkdtemp(prefix="stretto-flow-")).resolve()
    try:
        logs, flow = work / "logs", work / "notes.flow.json"
        names = ["ada", "berta", "carl", "dora", "emil", "frida", "gustav", "hanna"][:SESSIONS]
        recorded = [0] * len(names)

        def record(index):
            recorded[index] = play(work, names[index], ["--record", logs, "--domain", "notes"])

        threads = [threading.Thread(target=record, args=[index]) for index in range(len(names))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run(STRETTO, "learn", "--sessions", logs, "--habit-only", "--out", flow)
        served = play(work, "ingrid", ["--record", work / "served", "--domain", "notes", "--flow", flow])
        print(f"recorded {len(names)} sessions of {recorded[0]} calls each, learned a flow from them, served one session:")
        print(f"the agent made {served} call where it made {recorded[0]}")
        if recorded != [3] * len(names) or served != 1:
            sys.exit(f"expected 3 calls in each recorded session and 1 when served, not {recorded} and {served}")
        print(run(STRETTO, "show", work / "served"))
    finally:
        if keep:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
