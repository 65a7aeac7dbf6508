#!/usr/bin/env bash
# Prints the Debian packages of what is not there: missing-packages.sh NEED..., each of them "PROGRAM PACKAGE", or "import:MODULE PACKAGE" for
# a module of the distribution's own Python, whatever other Python comes first in the path.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
for need in "$@"; do
  read -r what package <<<"$need"
  case $what in
    import:*) /usr/bin/python3 -c "import ${what#import:}" 2>/dev/null || echo "$package" ;;
    *) command -v "$what" >/dev/null || echo "$package" ;;
  esac
done | sort -u
