#!/usr/bin/env bash
# Installs programs of PyPI into the build directory, each set of them apart from others, in exactly the versions that a file pins:
#   install-pinned.sh SET PINS PROGRAM
# PROGRAM is the one that is linked into the directory of tools.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
home=$tools/$1 pins=$2 program=$3
if cmp -s "$pins" "$home/pins.txt"; then
  exit 0
fi
# The distribution's own Python, whatever other comes first in the path.
python=/usr/bin/python3
"$python" -c 'import ensurepip' 2>/dev/null || scripts/install-packages.sh "install-pinned $1" python3-venv
rm -rf "$home"
mkdir -p "$tools/bin"
"$python" -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$pins"
"$home/bin/pip" check --disable-pip-version-check >/dev/null
ln -sfn "$home/bin/$program" "$tools/bin/$program"
# Last, so that what was interrupted is made again.
cp "$pins" "$home/pins.txt"
