#!/usr/bin/env bash
# A check endpoint in a shell, as a CGI program: verifies the signature, looks up the transaction, answers.
#
#   check-endpoint.sh              CGI: CHECK_SECRET, PRODUCER_GROUP, TRANSACTIONS; needs openssl, jq
#   check-endpoint.sh verify SECRET ID TIMESTAMP SIGNATURES NOW  < body      exit 0 or 1
#
# openssl takes the key as an argument, which other users of the machine can see: run it where there are none.
set -euo pipefail

window=300 # largest difference in seconds between a check's timestamp and our clock
signatures_max=4 # a rotation needs two; whoever sends more has no secret
body_max=$((16 * 1024 * 1024))
body=$(mktemp)
trap 'rm -f "$body"' EXIT

# verify SECRET ID TIMESTAMP SIGNATURES NOW: HMAC-SHA256 over id.timestamp.body, of the raw bytes.
verify() {
  local secret=$1 id=$2 timestamp=$3 signatures=$4 now=$5 key expected signature given
  [[ $secret == whsec_?* && -n $id && $timestamp =~ ^[0-9]{1,12}$ ]] || return 1
  ((10#$timestamp >= now - window && 10#$timestamp <= now + window)) || return 1
  key=$(printf %s "${secret#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
  expected=v1,$({ printf '%s.%s.' "$id" "$timestamp" && cat "$body"; } |
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64 -w0)
  read -ra given <<<"$signatures"
  for signature in "${given[@]:0:signatures_max}"; do
    # Compare digests of both, so that the duration reveals nothing about the signature.
    [[ $(digest "$signature") == "$(digest "$expected")" ]] && return 0
  done
  return 1
}

digest() { printf %s "$1" | openssl dgst -sha256 -hmac "$$-$RANDOM_KEY" -r; }
RANDOM_KEY=$(openssl rand -hex 16)

reply() { printf 'Status: %s\r\ncontent-type: application/json\r\n\r\n%s' "$1" "$2"; }

# Replaces the lookup in your database: lines of a transaction id and its decision. A missing line
# is UNKNOWN: only a barrier turns it into ROLLBACK.
decide() {
  awk -v id="$1" '$1 == id { print $2; found = 1; exit } END { if (!found) print "UNKNOWN" }' "$TRANSACTIONS" ||
    echo UNKNOWN
}

# verdicts: one JSON object per line for each check.
verdicts() {
  jq -r '(.data.checks // [.data])[] | [.message_id, .transaction_id] | @tsv' "$body" |
    while IFS=$'\t' read -r message_id transaction_id; do
      jq -nc --arg id "$message_id" --arg decision "$(decide "$transaction_id")" \
        '{message_id: $id, decision: $decision}'
    done
}

answer() {
  if [[ ! ${CONTENT_LENGTH:-0} =~ ^[0-9]{1,8}$ ]] || ((10#${CONTENT_LENGTH:-0} > body_max)); then
    reply 413 '{"status":413,"title":"the body is too long"}'
    return
  fi
  head -c "${CONTENT_LENGTH:-0}" >"$body"
  if ! verify "$CHECK_SECRET" "${HTTP_WEBHOOK_ID:-}" "${HTTP_WEBHOOK_TIMESTAMP:-}" \
    "${HTTP_WEBHOOK_SIGNATURE:-}" "$(date +%s)"; then
    reply 401 '{"status":401,"title":"the signature is not valid"}'
  elif ! jq -e '.data | type == "object"' "$body" >/dev/null 2>&1; then
    reply 400 '{"status":400,"title":"not a check"}'
  elif ! jq -e --arg group "$PRODUCER_GROUP" \
    'all((.data.checks // [.data])[]; .producer_group == $group)' "$body" >/dev/null; then
    reply 403 '{"status":403,"title":"a check of another producer group"}'
  elif jq -e '.type == "transaction.check.batch"' "$body" >/dev/null; then
    reply 200 "$(verdicts | jq -sc '{verdicts: .}')"
  else
    reply 200 "$(verdicts)"
  fi
}

if [[ ${1:-} == verify && $# == 6 ]]; then
  cat >"$body"
  verify "${@:2}"
else
  answer
fi
