#!/usr/bin/env bash
# Everything that must hold, as CI runs it: format, lints, documentation, sessions with real servers
# and clients from npm and PyPI, tests and scenarios. Prints what it runs; stops at the first failure.
# `scripts/check.sh quick` leaves out what needs a package registry.
set -euo pipefail
cd "$(dirname "$0")/.."

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
if [ "${1:-}" != quick ]; then
  run python3 scripts/real_parts.py
  run python3 scripts/flow_real.py
  run python3 scripts/http_check.py
  run python3 scripts/http_real.py
fi
run cargo test --workspace --no-fail-fast
