#!/usr/bin/env bash
# Checks what the program depends on: licences, sources and banned crates, and known advisories against crates and npm packages.
# Advisories are asked of services elsewhere. Where those do not answer, that is said aloud and nothing fails: it proves nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
deny=$tools/bin/cargo-deny
if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
  # Unoptimised: a minute to build instead of five, and it still checks in seconds.
  CARGO_TARGET_DIR=$tools/cargo-deny CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install --quiet --debug --locked --force --version "$version" --root "$tools" cargo-deny
  rm -rf "$tools/cargo-deny"
fi
"$deny" --log-level error check bans licenses sources

said=$(mktemp)
trap 'rm -f "$said"' EXIT
# Runs a check of advisories; `$2` is what it says when it could not ask.
advisories() {
  local what=$1 unanswered=$2
  shift 2
  if timeout 120 "$@" >"$said" 2>&1; then
    echo "advisories of $what: none"
  elif [ $? -eq 124 ] || grep -qE "$unanswered" "$said"; then
    echo "NOT CHECKED: advisories of $what: who keeps them does not answer here"
  else
    cat "$said" >&2
    return 1
  fi
}
advisories crates 'failed to fetch advisory database' "$deny" --log-level error check advisories
advisories "npm packages" 'audit endpoint returned an error|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN' npm --prefix console audit --package-lock-only
