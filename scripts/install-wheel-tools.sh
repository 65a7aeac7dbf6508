#!/usr/bin/env bash
# Installs what builds the Python package and what checks it (maturin, pytest, mypy) into the build directory, in the versions that
# sdk/python/tools.txt pins.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
pins=sdk/python/tools.txt
home=$tools/wheel
if cmp -s "$pins" "$home/pins.txt"; then
  exit 0
fi
# The distribution's own Python, whatever other comes first in the path.
python=/usr/bin/python3
"$python" -c 'import ensurepip' 2>/dev/null || scripts/install-packages.sh install-wheel-tools python3-venv
rm -rf "$home"
mkdir -p "$tools/bin"
"$python" -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$pins"
"$home/bin/pip" check --disable-pip-version-check >/dev/null
ln -sfn "$home/bin/maturin" "$tools/bin/maturin"
# Last, so that what was interrupted is made again.
cp "$pins" "$home/pins.txt"
