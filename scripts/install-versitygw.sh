#!/usr/bin/env bash
# Installs versitygw, a server of Amazon's protocol for object stores, into the build directory. `make soak` keeps devices in it. Building it
# takes about two minutes of processor time, so `make test` leaves it out and has moto.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
version=v1.8.0
if [ ! -x "$root/bin/versitygw" ]; then
  mkdir -p "$root/bin"
  GOBIN="$root/bin" go install -trimpath "github.com/versity/versitygw/cmd/versitygw@$version"
fi
