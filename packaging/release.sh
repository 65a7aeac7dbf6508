#!/usr/bin/env bash
# Makes everything of a release in DIRECTORY, with checksums, bill of materials and licences: release.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:?where the release goes}")
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target/tools
export CARGO_TARGET_DIR=$target
scripts/build-console.sh
# It writes the bill of materials: built once, unoptimised.
if [ ! -e "$tools/bin/cargo-cyclonedx" ]; then
  CARGO_TARGET_DIR=$tools/build cargo install --quiet --debug --locked --version 0.5.9 --root "$tools" cargo-cyclonedx
fi
rm -rf "$tools/build" "$out"
mkdir -p "$out"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

. packaging/reproducible.sh
packaging/licenses.py >"$out/THIRD-PARTY-LICENSES"
PYTHONDONTWRITEBYTECODE=1 packaging/bills.py "$tools/bin/cargo-cyclonedx" "$out" "$version"

rm -rf "$target/package"
packaging/package-crates.sh --no-verify
mkdir "$out/crates"
mv "$target"/package/*.crate "$out/crates"

cargo build --quiet --locked --release --bin vsl
cargo build --quiet --locked --release -p openvsl-c -p openvsl-files --lib --bins
packaging/build-deb.sh "$target/release/vsl" "$target/release" "$out" "$out/THIRD-PARTY-LICENSES"
lintian --allow-root --fail-on error,warning "$out"/*.deb
scripts/install-pinned.sh wheel sdk/python/tools.txt maturin
"$tools/bin/maturin" build --quiet --locked --release --manifest-path sdk/python/Cargo.toml --out "$out" \
  --sbom-include "$out/openvsl-python-$version.cdx.json"
packaging/build-static.sh x86_64 aarch64
images=()
for architecture in x86_64 aarch64; do
  cp "$target/static/vsl-$architecture" "$out/vsl-$version-$architecture"
  images+=("$architecture=$out/vsl-$version-$architecture")
done
packaging/build-image.py "$out/openvsl-$version.oci.tar" "$version" "${images[@]}"
# One list for all, in the same order everywhere.
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum -- >SHA256SUMS)
cat "$out/SHA256SUMS"
