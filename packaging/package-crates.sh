#!/usr/bin/env bash
# Packs every crate that a registry is to have, in target/package, and builds the program from those alone: package-crates.sh [--no-verify]
# --no-verify leaves out the build.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build-console.sh
# The crates of testkit/ and those of other languages' packages go to no registry.
mapfile -t unpublished < <(grep -lx 'publish = false' {sdk,testkit}/*/Cargo.toml | xargs sed -n 's/^name = "\(.*\)"/--exclude=\1/p')
cargo package --quiet --locked --allow-dirty --workspace "${unpublished[@]}" "$@"
