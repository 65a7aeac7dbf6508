#!/usr/bin/env bash
# Builds the program as one static file for musl: build-static.sh ARCHITECTURE... (x86_64, aarch64). Prints the files' paths.
#
# Zig, from PyPI, is the C compiler and linker for both: SQLite, ring, zstd and liblzma have C in them.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
zig=$target/tools/zig
if ! "$zig/bin/cargo-zigbuild" --version >/dev/null 2>&1; then
  /usr/bin/python3 -m venv "$zig"
  "$zig/bin/pip" install --quiet ziglang==0.17.1 cargo-zigbuild==0.24.0 >&2
fi
export PATH=$zig/bin:$PATH
. packaging/reproducible.sh
sysroot=$(rustc --print sysroot)
for architecture in "$@"; do
  triple=$architecture-unknown-linux-musl
  rustup target list --installed | grep -qx "$triple" || rustup target add "$triple" >&2
  cargo zigbuild --quiet --locked --release --bin vsl --target "$triple" >&2
  mkdir -p "$target/static"
  # Zig's linker strips nothing, and its objcopy does not either; Rust's knows every architecture.
  LD_LIBRARY_PATH=$sysroot/lib "$sysroot/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-objcopy" --strip-all \
    "$target/$triple/release/vsl" "$target/static/vsl-$architecture"
  echo "$target/static/vsl-$architecture"
done
