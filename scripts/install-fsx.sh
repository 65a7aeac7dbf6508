#!/usr/bin/env bash
# Installs fsx, the file system exerciser that `make soak` runs over a device, into the build directory.
set -euo pipefail
cd "$(dirname "$0")/.."
root=${CARGO_TARGET_DIR:-target}/tools
if [ ! -x "$root/bin/fsx" ]; then
  cargo install --quiet --root "$root" --version '^0.3' fsx
fi
