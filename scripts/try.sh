#!/usr/bin/env bash
# The main job, once: a session of a host with the demo server, through the proxy, recorded, then
# shown. Builds what it needs. Prints where the log is.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --package stretto-proxy --package stretto-cli
bin="${CARGO_TARGET_DIR:-target}/debug"
logs="$(mktemp -d "${TMPDIR:-/tmp}/stretto-logs.XXXXXX")"

printf '%s\n' \
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"shell","version":"0"}}}' \
  '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"lookup","arguments":{"text":"hello"}}}' \
  '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"update","arguments":{"text":"hi","fail":true}}}' \
  | "$bin/stretto-proxy" --record "$logs" --domain demo -- "$bin/stretto-mcp-demo" >"$logs/answers.txt"

echo "the host got $(wc -l <"$logs/answers.txt" | tr -d ' ') answers; this is what was recorded:"
echo
"$bin/stretto" show "$logs"/*.jsonl
