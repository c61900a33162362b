"""Servers and packages for the checks over HTTP."""
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FOLDER = TARGET / "real-parts-http"
NODE_MODULES = FOLDER / "node" / "node_modules"
PYTHON = FOLDER / "venv" / "bin" / "python"
PROXY = TARGET / "debug" / "stretto-proxy"
EVERYTHING = NODE_MODULES / "@modelcontextprotocol/server-everything/dist/index.js"

# How long a server takes to come up, at most.
TO_START = 60


def run(command, patience, **how):
    """Runs a command to its end; what it prints is shown when it fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience, **how)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is not here")
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(command)[:200]}: no end after {patience} s")
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-3000:]
        sys.exit(f"{' '.join(command)[:200]}: status {done.returncode}\n{said}")
    return done.stdout


def install(npm=(), pypi=()):
    """By name and version from the registries, unless that was done already."""
    for kind, packages in [("npm", npm), ("pypi", pypi)]:
        stamp = FOLDER / f"{kind}.json"
        had = json.loads(stamp.read_text()) if stamp.exists() else []
        if set(packages) <= set(had):
            continue
        FOLDER.mkdir(parents=True, exist_ok=True)
        print("installing", *packages, flush=True)
        if kind == "npm":
            run(["npm", "install", "--prefix", FOLDER / "node", "--no-audit", "--no-fund", "--silent", *packages], 600)
        else:
            run([sys.executable, "-m", "venv", "--clear", FOLDER / "venv"], 300)
            run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], 600)
        stamp.write_text(json.dumps(list(packages)))


def build():
    """The proxy, with the profile that the tests use."""
    run(["cargo", "build", "--quiet", "-p", "stretto-proxy"], 1800, cwd=ROOT)


@contextmanager
def served(command):
    """Starts a server on a free port, which stands for {port} in the command and in PORT. Yields its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(word).replace("{port}", str(port)) for word in command]
    chatter = open(FOLDER / "server.log", "wb")
    server = subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, stdout=chatter, stderr=chatter)
    try:
        until = time.monotonic() + TO_START
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > until:
                    sys.exit(f"{' '.join(command)} does not listen; see {chatter.name}")
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        chatter.close()
