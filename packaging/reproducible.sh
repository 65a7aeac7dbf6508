# Sourced by what builds releases, in the tree: the same commit gives the same bytes, wherever it is built.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
RUSTFLAGS="--remap-path-prefix=$(realpath -m "${CARGO_TARGET_DIR:-target}")=target --remap-path-prefix=$PWD=openvsl --remap-path-prefix=$cargo_home=cargo"
CFLAGS="-ffile-prefix-map=$(realpath -m "${CARGO_TARGET_DIR:-target}")=target -ffile-prefix-map=$PWD=openvsl -ffile-prefix-map=$cargo_home=cargo"
export SOURCE_DATE_EPOCH RUSTFLAGS CFLAGS TZ=UTC LC_ALL=C.UTF-8
