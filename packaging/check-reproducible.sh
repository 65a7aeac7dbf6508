#!/usr/bin/env bash
# Makes a release twice, in two places, and fails unless both are the same byte for byte: check-reproducible.sh [DIRECTORY]
# What was made stays in DIRECTORY [default: target/reproducible]: for use, or for a look at the difference.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$(realpath -m "${1:-$target/reproducible}")
# Both of the same commit, whatever is committed meanwhile.
commit=$(git rev-parse HEAD)
rm -rf "$work"
mkdir -p "$work"
for place in first the-second; do
  git clone --quiet --shared --no-checkout . "$work/$place/tree"
  git -C "$work/$place/tree" checkout --quiet "$commit"
  # Tools are not part of it.
  mkdir "$work/$place/tree/target" && ln -s "$target/tools" "$work/$place/tree/target/tools"
  (cd "$work/$place/tree" && env -u CARGO_TARGET_DIR packaging/release.sh "$work/$place/release" >/dev/null)
  rm -rf "$work/$place/tree"
done
if ! diff "$work/first/release/SHA256SUMS" "$work/the-second/release/SHA256SUMS"; then
  echo "check-reproducible: the two releases differ; both stay in $work" >&2
  exit 1
fi
rm -rf "$work/the-second"
echo "a release is the same byte for byte wherever it is built; it is in $work/first/release:"
cat "$work/first/release/SHA256SUMS"
