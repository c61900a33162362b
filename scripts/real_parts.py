#!/usr/bin/env python3
"""Runs the proxy between servers and clients that are not ours, and compares.

    scripts/real_parts.py [--only WORD] [--keep]

Servers and clients come from npm and PyPI, with their versions pinned below, into
target/real-parts. Each client runs against each server twice, without the proxy and
with it, and must get the same, ids and times aside. With the proxy, taps on both its
sides write down every byte: what goes in must come out, the log must hold every line,
and `stretto show` must read it.

Prints a table, and exits with 1 when anything differs or cannot be installed.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PARTS = HERE / "real_parts"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FOLDER = TARGET / "real-parts"

NPM = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
]
PYPI = ["mcp==2.3.0", "mcp-server-time==2026.10.19"]

NODE_MODULES = FOLDER / "node" / "node_modules"
PYTHON = FOLDER / "venv" / "bin" / "python"
PROXY = TARGET / "debug" / "stretto-proxy"
STRETTO = TARGET / "debug" / "stretto"

# Nothing here takes longer than a few seconds.
PATIENCE = 120


class Broken(Exception):
    """Something differs, or could not be run."""


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="the cases whose name holds this")
    options.add_argument("--keep", action="store_true", help="keep what the taps and the proxy wrote")
    options = options.parse_args()
    try:
        install()
        run(["cargo", "build", "--quiet", "-p", "stretto-proxy", "-p", "stretto-cli"], cwd=ROOT, patience=1800)
    except Broken as broken:
        sys.exit(f"real_parts.py: {broken}")
    rows, failures = [], 0
    for case in cases():
        if options.only not in case.name:
            continue
        row, failed = compared(case, options.keep)
        rows.append(row)
        failures += failed
    print_table(["client", "server", "revision", "sessions", "→ lines", "← lines", "client got", "bytes", "log"], rows)
    if failures or not rows:
        sys.exit(f"real_parts.py: {failures} of {len(rows)} cases differ")


# Installing


def install():
    """By name and version from the registries, unless that was done already."""
    wanted = json.dumps([NPM, PYPI])
    stamp = FOLDER / "installed.json"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    print("installing", *NPM, *PYPI, flush=True)
    run(["npm", "install", "--prefix", FOLDER / "node", "--no-audit", "--no-fund", "--silent", *NPM], patience=600)
    run([sys.executable, "-m", "venv", "--clear", FOLDER / "venv"], patience=300)
    run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PYPI], patience=600)
    stamp.write_text(wanted)


def run(command, patience=PATIENCE, **how):
    """Runs a command to its end, and returns what it printed."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience, **how)
    except FileNotFoundError:
        raise Broken(f"{command[0]} is not here") from None
    except subprocess.TimeoutExpired:
        raise Broken(f"{' '.join(command)[:200]}: no end after {patience} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-2000:]
        raise Broken(f"{' '.join(command)[:200]}: status {done.returncode}\n{said}")
    return done.stdout


# Cases


@dataclass
class Case:
    """A client in front of a server."""

    client: str
    server: str
    # The program that is the client. The server's command is added to it.
    driver: list
    # The server's command; {folder} is a folder with a text in it, the same one for every run.
    command: list = field(default_factory=list)

    @property
    def name(self):
        return f"{self.client} {self.server}"


def cases():
    node = shutil.which("node") or "node"
    everything = [node, NODE_MODULES / "@modelcontextprotocol/server-everything/dist/index.js", "stdio"]
    filesystem = [node, NODE_MODULES / "@modelcontextprotocol/server-filesystem/dist/index.js", "{folder}"]
    time = [PYTHON.parent / "mcp-server-time", "--local-timezone", "UTC"]
    by_hand = [sys.executable, PARTS / "by_hand.py"]
    yield Case("by hand", "everything", [*by_hand, PARTS / "everything.json"], everything)
    yield Case("by hand", "filesystem", [*by_hand, PARTS / "filesystem.json"], filesystem)
    python = [PYTHON, PARTS / "client.py"]
    for mode in ["auto", "legacy"]:
        yield Case(f"python 2.3 {mode}", "time", [*python, mode, "time"], time)
        yield Case(f"python 2.3 {mode}", "everything", [*python, mode, "everything"], everything)
    v1 = [node, PARTS / "client_v1.mjs", NODE_MODULES]
    v2 = [node, PARTS / "client_v2.mjs", NODE_MODULES]
    yield Case("typescript 1.32", "time", [*v1, "time"], time)
    yield Case("typescript 1.32", "everything", [*v1, "everything"], everything)
    for mode in ["plain", "auto"]:
        yield Case(f"typescript 2.4 {mode}", "time", [*v2, mode, "time"], time)
        yield Case(f"typescript 2.4 {mode}", "everything", [*v2, mode, "everything"], everything)
    yield Case("typescript 2.4 2026-07-28", "time", [*v2, "2026-07-28", "time"], time)


# Comparing


def compared(case, keep):
    """A row of the table, and whether anything differs."""
    folder = Path(tempfile.mkdtemp(prefix="real-parts-"))
    row = {"client": case.client, "server": case.server}
    try:
        without = got(case, folder, [])
        taps, logs = folder / "taps", folder / "logs"
        taps.mkdir()
        tap = [sys.executable, PARTS / "tap.py", taps]
        proxy = [*tap, "host", "--", PROXY, "--record", logs, "--", *tap, "server", "--"]
        through = got(case, folder, proxy)
        row["revision"] = through.get("revision", "–")
        row["client got"] = difference(without, through) or "the same"
        sessions = {path.name.split(".")[1] for path in taps.iterdir()}
        row["sessions"] = len(sessions)
        row["bytes"] = first(bytes_differ(taps, session) for session in sessions) or "the same"
        row["log"] = first(log_differs(taps, logs, session) for session in sessions) or "every line"
        row["→ lines"] = sum(len(lines_of(taps / f"host.{session}.in")) for session in sessions)
        row["← lines"] = sum(len(lines_of(taps / f"host.{session}.out")) for session in sessions)
    except Broken as broken:
        row["client got"] = str(broken)
    failed = (row.get("client got"), row.get("bytes"), row.get("log")) != ("the same", "the same", "every line")
    if keep or failed:
        print(f"{case.name}: see {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    return row, failed


def got(case, folder, proxy):
    """What the client gets from the server, with these words before the server's command."""
    files = folder / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    (files / "hello.txt").write_text("Hello, wörld\n")
    command = [str(word).replace("{folder}", str(files)) for word in case.command]
    printed = run([*case.driver, *proxy, *command], cwd=folder)
    try:
        return timeless(json.loads(printed))
    except ValueError:
        raise Broken(f"the client printed {printed[:200]!r}") from None


TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?|\d\d:\d\d:\d\d")


def timeless(value):
    if isinstance(value, dict):
        return {name: timeless(member) for name, member in value.items()}
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return TIMES.sub("TIME", value) if isinstance(value, str) else value


def difference(one, other, where=""):
    """Where two values differ first; nothing when they do not."""
    if type(one) is type(other) and isinstance(one, (dict, list)):
        names = sorted({*one, *other}) if isinstance(one, dict) else range(max(len(one), len(other)))
        for name in names:
            try:
                found = difference(one[name], other[name], f"{where}/{name}")
            except (KeyError, IndexError):
                found = f"{where}/{name} is only on one side"
            if found:
                return found
        return None
    return None if one == other else f"{where}: {str(one)[:80]!r} became {str(other)[:80]!r}"


def first(findings):
    return next((finding for finding in findings if finding), None)


def bytes_differ(taps, session):
    """Whether anything did not cross as it was. A session's taps are named after the proxy's process."""
    for direction in ["in", "out"]:
        host, server = (taps / f"{side}.{session}.{direction}" for side in ["host", "server"])
        if not server.exists() or host.read_bytes() != server.read_bytes():
            return f"{host} and {server} differ"
    return None


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def log_differs(taps, logs, session):
    """Whether the log lacks a line, or `stretto show` cannot read it."""
    found = list(logs.glob(f"*-{session}.jsonl"))
    if len(found) != 1:
        return f"{len(found)} logs of {session} in {logs}"
    run([STRETTO, "show", found[0]])
    entries = found[0].read_bytes().splitlines()[1:]
    for side, direction in [(b"client", "in"), (b"server", "out")]:
        crossed = [logged(line) for line in lines_of(taps / f"host.{session}.{direction}")]
        start = b',"from":"' + side + b'",'
        recorded = [entry.split(start, 1)[1][:-1] for entry in entries if start in entry[:60]]
        if crossed != recorded:
            return f"{found[0]}: {len(crossed)} lines of the {side.decode()} crossed, {len(recorded)} are recorded"
    return None


def logged(line):
    """What a log has to hold of a line."""
    text = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        json.loads(text.decode())
        return b'"message":' + text.strip(b" \t")
    except ValueError:
        said = json.dumps(text.decode(errors="replace"), ensure_ascii=False)
        return b'"raw":' + said.encode()


def print_table(names, rows):
    table = [names, ["---"] * len(names), *([str(row.get(name, "–")) for name in names] for row in rows)]
    for cells in table:
        print("| " + " | ".join(cell.replace("\n", " ") for cell in cells) + " |")


if __name__ == "__main__":
    main()
