#!/usr/bin/env bash
# Everything that must hold, as CI runs it: format, lints, documentation, sessions with real servers
# and clients from npm and PyPI, tests and scenarios. Prints what it runs; stops at the first failure.
# `scripts/check.sh quick` leaves out what needs a package registry.
set -euo pipefail
cd "$(dirname "$0")/.."

# Started with hang-ups ignored (by nohup, or by a CI service), a shell passes that on to every
# program, and the tests of what a hang-up does to the proxy would wait for nothing. No shell can
# undo it, so this script starts itself again.
if [ -z "${STRETTO_CHECK_STARTED:-}" ]; then
  export STRETTO_CHECK_STARTED=1
  exec python3 -c 'import os, signal, sys
# Python itself ignores the last two.
for usual in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(usual, signal.SIG_DFL)
os.execvp("bash", ["bash", "scripts/check.sh", *sys.argv[1:]])' "$@"
fi

run() {
  printf '\n== %s\n' "$*"
  local before=$SECONDS
  "$@"
  printf '== took %ss\n' "$((SECONDS - before))"
}

run cargo fmt --all --check
run cargo clippy --workspace --all-targets --quiet -- -D warnings
run env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
run scripts/try.sh
run python3 scripts/hosts_real.py --demo
if [ "${1:-}" != quick ]; then
  run python3 scripts/real_parts.py
  run python3 scripts/hosts_real.py
  run python3 scripts/walkthrough.py
  run python3 scripts/http_check.py
  run python3 scripts/http_real.py
fi
run cargo test --workspace --no-fail-fast
