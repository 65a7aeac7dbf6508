#!/usr/bin/env bash
# Makes the Debian packages of what is built: build-deb.sh PROGRAM LIBRARIES DIRECTORY [LICENCES]. Prints their paths.
# LIBRARIES has libvsl.so, libvsl.a, vsl-directfs and libopenvsl_files.so.
# SOURCE_DATE_EPOCH is the time of everything in it [default: of the newest commit].
set -euo pipefail
tree=$(realpath "$(dirname "$0")/..")
VSL_PROGRAM=$(realpath "${1:?the built vsl}")
VSL_LIBRARIES=$(realpath "${2:?the directory of the built libraries}")
directory=$(realpath -m "${3:?where the packages go}")
licences=${4:+$(realpath "$4")}
export VSL_PROGRAM VSL_LIBRARIES VSL_TREE=$tree
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$tree" log -1 --format=%ct)}
version=$("$VSL_PROGRAM" --version | awk '{ print $2; exit }')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/openvsl" "$directory"
cp -r "$tree/packaging/debian" "$work/openvsl/debian"
cd "$work/openvsl"
for name in service sysusers; do
  sed 's|@BINDIR@|/usr/bin|' "$tree/packaging/openvsl.$name" >"debian/openvsl.$name"
done
cat >debian/changelog <<CHANGELOG
openvsl ($version) unstable; urgency=medium

  * See NEWS.md for what changed.

 -- OpenVSL maintainers <maintainers@openvsl.invalid>  $(date -uRd "@$SOURCE_DATE_EPOCH")
CHANGELOG
if [ -n "$licences" ]; then
  # debhelper takes it from here only.
  cp "$licences" THIRD-PARTY-LICENSES
  echo THIRD-PARTY-LICENSES | tee debian/openvsl.docs debian/openvsl-files.docs >debian/libvsl0.docs
fi
umask 022
debian/rules binary >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for package in "$work"/*.deb; do
  mv "$package" "$directory"
  echo "$directory/${package##*/}"
done
