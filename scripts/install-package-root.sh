#!/usr/bin/env bash
# Prepares a Debian without Rust, Node or a compiler, in which the package is tried: the tools' directory package-root.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/tools
mkdir -p "$tools"
root=$(realpath "$tools")/package-root
stamp=$(sha256sum <"$0")
if [ "$(cat "$root.stamp" 2>/dev/null)" = "$stamp" ]; then
  exit 0
fi
missing=$(scripts/missing-packages.sh "dh_prep debhelper" "lintian lintian" "mmdebstrap mmdebstrap" "promtool prometheus")
# Unquoted: each name is a word.
[ -z "$missing" ] || scripts/install-packages.sh install-package-root $missing
echo "install-package-root: preparing a Debian in $root"
rm -rf "$root"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
  awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
mmdebstrap --quiet --variant=minbase --include=systemd-standalone-sysusers,systemd-standalone-tmpfiles,fio \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt=force-unsafe-io "$suite" "$root" "$mirror"
echo "$stamp" >"$root.stamp"
