#!/usr/bin/env bash
# Installs Azurite, Microsoft's own stand-in for Azure Blob Storage, into the build directory. `make soak` keeps devices in it. It brings
# several hundred npm packages, so `make test` leaves it out and has moto.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
if [ ! -x "$root/bin/azurite-blob" ]; then
  mkdir -p "$root/azurite" "$root/bin"
  npm install --prefix "$root/azurite" --no-fund --no-audit --silent azurite@3.35.0
  ln -sf ../azurite/node_modules/.bin/azurite-blob "$root/bin/azurite-blob"
fi
