#!/usr/bin/env bash
# Installs Debian packages: install-packages.sh WHO PACKAGE... WHO is the script that needs them, for its messages.
set -euo pipefail

who=$1
shift
if ! command -v apt-get >/dev/null; then
  echo "$who: missing: $* (Debian names); this system has no apt-get, install them by hand" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "$who: missing: $*; neither root nor sudo: run 'apt-get install $*' as root" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "$who: installing $*"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
