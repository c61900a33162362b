#!/usr/bin/env python3
"""Follows proxy/docs/walkthrough.md: record, learn, serve and learn again on the real filesystem server.

    scripts/walkthrough.py

Runs each `sh` block of the page in the checkout, as it stands there, and holds what it prints
against the `text` block after it, in which a line `…` stands for any number of lines. Exits with 1
when a command fails, prints something else, or when there are more commands than a person has the
patience for. What an earlier run left in target/walk is removed first.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "proxy" / "docs" / "walkthrough.md"
WALK = ROOT / "target" / "walk"
# Where cargo puts the programs is up to the environment; the page has the usual place.
PROGRAMS = f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/debug/"

MOST_COMMANDS = 8
PATIENCE = 1800
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(page):
    """The page's commands, each with the lines that it shows, if it shows any."""
    found = []
    for language, text in BLOCK.findall(page):
        if language == "sh":
            found.append((text, None))
        elif not found or found[-1][1] is not None:
            sys.exit(f"{PAGE} shows what no command prints:\n{text}")
        else:
            found[-1] = (found[-1][0], text.splitlines())
    return found


def differs(printed, shown):
    """The first shown line that was not printed where it stands; nothing when all were."""
    at, anywhere = 0, False
    for line in shown:
        if line == "…":
            anywhere = True
            continue
        if anywhere:
            at = next((place for place in range(at, len(printed)) if printed[place] == line), len(printed))
        if at >= len(printed) or printed[at] != line:
            return line
        at, anywhere = at + 1, False
    return None if anywhere or at == len(printed) else f"nothing, not {printed[at]!r}"


def main():
    page = steps(PAGE.read_text())
    if not page or len(page) > MOST_COMMANDS:
        sys.exit(f"{PAGE} has {len(page)} commands, and should have {MOST_COMMANDS} at most")
    shutil.rmtree(WALK, ignore_errors=True)
    took, builds = 0.0, 0.0
    for command, shown in page:
        print(f"$ {command}", end="", flush=True)
        start = time.monotonic()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command.replace("target/debug/", PROGRAMS)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        seconds = time.monotonic() - start
        if command.startswith("cargo "):
            builds += seconds
        else:
            took += seconds
        if done.returncode != 0:
            sys.exit(f"exit {done.returncode}:\n{done.stdout}")
        wrong = differs(done.stdout.splitlines(), shown) if shown is not None else None
        if wrong is not None:
            sys.exit(f"printed:\n{done.stdout}\nThe page shows: {wrong}")
    print(f"{len(page)} commands, {took:.0f} s, and {builds:.0f} s of building; all printed what the page shows")


if __name__ == "__main__":
    main()
