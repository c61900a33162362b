#!/usr/bin/env bash
# The main job, once: a session of a host with the demo server, through the proxy, recorded, then
# shown. `scripts/try.sh active` has the proxy act in it, too. Builds what it needs; the proxy says
# where the log is.
set -euo pipefail
cd "$(dirname "$0")/.."

# Where somebody watches, the first build is shown: it takes some minutes.
[ -t 2 ] && quiet=() || quiet=(--quiet)
cargo build "${quiet[@]}" --package stretto-proxy --package stretto-cli
bin="${CARGO_TARGET_DIR:-target}/debug"
logs="$(mktemp -d "${TMPDIR:-/tmp}/stretto-logs.XXXXXX")"

# The host: each request waits for its answer, as an agent does.
requests=0
start() {
  local pipes
  pipes="$(mktemp -d)"
  mkfifo "$pipes/in" "$pipes/out"
  "$bin/stretto-proxy" --record "$logs" "$@" <"$pipes/in" >"$pipes/out" &
  proxy=$!
  exec 3>"$pipes/in" 4<"$pipes/out"
  rm -r "$pipes"
}
tell() { printf '%s\n' "$1" >&3; }
request() {
  requests=$((requests + 1))
  tell '{"jsonrpc":"2.0","id":'"$requests"',"method":"'"$1"'","params":'"$2"'}'
  read -r _ <&4
}
call() { request tools/call '{"name":"'"$1"'","arguments":'"$2"'}'; }
begin() {
  request initialize '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"shell","version":"0"}}'
  tell '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  request tools/list '{}'
}

# The conversation, which no server sees. A host appends it to a file that the proxy reads.
say() { printf '{"role":"%s","content":"%s"}\n' "$1" "$2" >>"$logs/said.jsonl"; }
# A model takes its time before it calls again; by that the log's reader tells one turn from the next.
think() { sleep 0.6; }

case "${1:-}" in
  "")
    start --domain demo -- "$bin/stretto-mcp-demo"
    begin
    call lookup '{"text":"hello"}'
    call update '{"text":"hi","fail":true}'
    ;;
  active)
    start --domain retail --guards --commit --context "$logs/said.jsonl" \
      --flow scenarios/flows/shop.flow.json -- "$bin/stretto-mcp-demo" --world retail
    begin
    say user "I am c7@example.com. Please cancel #W7a, I found it cheaper."
    call find_user_id_by_email '{"email":"c7@example.com"}'
    think
    call cancel_pending_order '{"order_id":"#W7a","reason":"found it cheaper"}'
    say assistant "I can cancel #W7a only as no longer needed, or as ordered by mistake. Is it the first?"
    say user "Yes, go ahead."
    think
    call stretto_commit '{"calls":[{"name":"cancel_pending_order","arguments":{"order_id":"#W7a","reason":"no longer needed"}}]}'
    ;;
  *)
    echo "scripts/try.sh: there is no '$1' session; say nothing, or active" >&2
    exit 2
    ;;
esac

exec 3>&-
wait "$proxy"
echo "the host got $requests answers; this is what was recorded:"
echo
"$bin/stretto" show "$logs"/*Z-*[0-9].jsonl
