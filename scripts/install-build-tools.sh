#!/usr/bin/env bash
# Installs what it takes to build besides Rust and Node, where it is missing: a compiler of C and C++.
set -euo pipefail
scripts=$(dirname "$0")
missing=$("$scripts/missing-packages.sh" "c++ g++" "pkg-config pkg-config")
# Unquoted: each name is a word.
[ -z "$missing" ] || "$scripts/install-packages.sh" install-build-tools $missing
