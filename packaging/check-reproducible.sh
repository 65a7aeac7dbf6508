#!/usr/bin/env bash
# Makes a release twice, in two places, and fails unless both are the same byte for byte: check-reproducible.sh [DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d -p "${1:-${CARGO_TARGET_DIR:-target}}")
trap 'rm -rf "$work"' EXIT
for place in first the-second; do
  git clone --quiet --shared . "$work/$place"
  # Tools are not part of it.
  mkdir -p "$work/$place/target" && ln -s "$(realpath "${CARGO_TARGET_DIR:-target}")/tools" "$work/$place/target/tools"
  (cd "$work/$place" && env -u CARGO_TARGET_DIR packaging/release.sh "$work/$place/out" >/dev/null)
  rm -rf "$work/$place/target"
done
diff "$work/first/out/SHA256SUMS" "$work/the-second/out/SHA256SUMS"
echo "a release is the same byte for byte wherever it is built:"
cat "$work/first/out/SHA256SUMS"
