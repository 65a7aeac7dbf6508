#!/usr/bin/env bash
# Builds the web console into console/dist, unless what is there is newer than everything it is made of.
set -euo pipefail
cd "$(dirname "$0")/../console"

made=dist/index.html
newer() { # whether any of the files named is newer than $1, or $1 is not there
  [ ! -e "$1" ] || [ -n "$(find "${@:2}" -newer "$1" -print -quit)" ]
}
if ! newer "$made" src index.html vite.config.ts package.json package-lock.json ../crates/chart/assets; then
  exit 0
fi

# Two builds at once, of cargo and of make, take turns.
exec 9>"${TMPDIR:-/tmp}/openvsl-console-$(id -u).lock"
flock 9
if ! newer "$made" src index.html vite.config.ts package.json package-lock.json ../crates/chart/assets; then
  exit 0
fi
missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
  ../scripts/install-packages.sh build-console "${missing[@]}"
fi
if newer node_modules/.package-lock.json package-lock.json; then
  npm ci --no-audit --no-fund
fi
npm run --silent build
# Files that did not change keep their times, and so would this one.
touch "$made"
