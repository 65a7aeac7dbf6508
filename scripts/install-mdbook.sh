#!/usr/bin/env bash
# Installs mdbook, which makes the book, into the build directory. Unoptimised: it takes a third of the time to build, and is fast enough.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.5.4
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
if [ "$("$tools/bin/mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
  CARGO_TARGET_DIR=$tools/mdbook CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install --quiet --debug --locked --force --version "$version" --no-default-features --features search --root "$tools" mdbook
  rm -rf "$tools/mdbook"
fi
