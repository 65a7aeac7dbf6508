#!/usr/bin/env bash
# Installs schemathesis, which makes requests up from the API's description, into the build directory, with everything that it needs in the versions
# that tests/schemathesis.txt pins.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
pins=tests/schemathesis.txt
home=$tools/schemathesis
if cmp -s "$pins" "$home/pins.txt"; then
  exit 0
fi
# The distribution's own Python, whatever other comes first in the path.
python=/usr/bin/python3
"$python" -c 'import ensurepip' 2>/dev/null || scripts/install-packages.sh install-schemathesis python3-venv
rm -rf "$home"
mkdir -p "$tools/bin"
"$python" -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$pins"
"$home/bin/pip" check --disable-pip-version-check >/dev/null
ln -sfn "$home/bin/schemathesis" "$tools/bin/schemathesis"
# Last, so that what was interrupted is made again.
cp "$pins" "$home/pins.txt"
