#!/usr/bin/env python3
"""Runs the proxy between clients and servers over HTTP that are not ours, and compares.

    scripts/http_real.py [--only WORD] [--show]

Servers and clients come from npm and PyPI, with their versions pinned below, into
target/real-parts-http. Each client speaks to each server twice, straight over HTTP and
through the proxy, and must get the same, times aside: tools, results, progress,
elicitation, sampling, cancellation. With the proxy there is a log that must hold all of it.

Prints a table, and exits with 1 when anything differs or cannot be installed.
"""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = HERE / "real_parts"
sys.path.insert(0, str(PARTS))

import web
from real_parts import difference, print_table, timeless

NPM = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/node@2.1.2",
]
PYPI = ["mcp==2.3.0"]

PATIENCE = 120

SERVERS = {
    "everything": ["node", web.EVERYTHING, "streamableHttp"],
    "dual": [web.PYTHON, PARTS / "dual.py", "{port}"],
    "modern": ["node", PARTS / "modern.mjs", web.NODE_MODULES, "{port}"],
}
PYTHON_CLIENT = [web.PYTHON, PARTS / "web_client.py"]
NODE_CLIENT = ["node", PARTS / "web_client.mjs", web.NODE_MODULES]
CLIENTS = {
    "python 2.3 auto": ([*PYTHON_CLIENT, "auto"], {"everything", "dual", "modern"}),
    "python 2.3 legacy": ([*PYTHON_CLIENT, "legacy"], {"everything", "dual"}),
    "typescript 1.32": ([*NODE_CLIENT, "v1"], {"everything", "dual"}),
    "typescript 2.4 plain": ([*NODE_CLIENT, "plain"], {"everything", "dual"}),
    "typescript 2.4 auto": ([*NODE_CLIENT, "auto"], {"everything", "dual", "modern"}),
    "typescript 2.4 2026-07-28": ([*NODE_CLIENT, "2026-07-28"], {"dual", "modern"}),
}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="the cases whose name holds this")
    options.add_argument("--show", action="store_true", help="print what the clients got")
    options = options.parse_args()
    web.install(NPM, PYPI)
    web.build()
    rows, failures = [], 0
    for server, command in SERVERS.items():
        for client, (driver, speaks_to) in CLIENTS.items():
            if server not in speaks_to or options.only not in f"{client} {server}":
                continue
            # A server each, so that nothing is left from the session before.
            with web.served(command) as url:
                straight = got(client, driver, server, [url])
            with web.served(command) as url:
                row, failed = through(client, driver, server, url, straight)
            if options.show:
                print(json.dumps(straight, indent=1, ensure_ascii=False))
            rows.append({"client": client, "server": server, **row})
            failures += failed
    print_table(["client", "server", "through the proxy", "client lines", "server lines", "proxy lines"], rows)
    if failures or not rows:
        sys.exit(f"http_real.py: {failures} of {len(rows)} cases differ")


def got(client, driver, server, target):
    """What the client gets, and what it says on stderr if that goes wrong."""
    command = [str(word) for word in [*driver, server, *target]]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"broken": f"{client}: no end after {PATIENCE} s"}
    try:
        return timeless(json.loads(done.stdout))
    except ValueError:
        return {"broken": f"{client}: status {done.returncode}: {done.stderr.decode(errors='replace')[-1500:]}"}


def through(client, driver, server, url, straight):
    folder = Path(tempfile.mkdtemp(prefix="http-real-"))
    proxied = got(client, driver, server, [web.PROXY, "--record", folder, "--upstream", url])
    found = straight.get("broken") or difference(straight, proxied) or "the same"
    counts = {"client": 0, "server": 0, "proxy": 0}
    for log in folder.glob("*.jsonl"):
        for line in log.read_bytes().splitlines()[1:]:
            counts[json.loads(line)["from"]] += 1
    if found == "the same" and not all(counts[side] for side in ["client", "server"]):
        found = "the log holds nothing"
    if found == "the same":
        shutil.rmtree(folder)
    else:
        print(f"{client} {server}: see {folder}", flush=True)
    row = {f"{side} lines": count for side, count in counts.items()}
    return {"through the proxy": found, **row}, found != "the same"


if __name__ == "__main__":
    main()
