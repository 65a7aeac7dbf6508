#!/usr/bin/env bash
# Installs the C library, its header, its man page and what pkg-config needs: install-sdk.sh LIBRARIES PREFIX [DESTDIR]
set -euo pipefail
cd "$(dirname "$0")/.."

libraries=${1:?the directory with libvsl.so and libvsl.a, such as target/release}
prefix=${2:?where to install, such as /usr/local}
root=${3:-}$prefix

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
install -D -m 755 "$libraries/libvsl.so" "$root/lib/libvsl.so.0"
ln -sf libvsl.so.0 "$root/lib/libvsl.so"
install -D -m 644 "$libraries/libvsl.a" "$root/lib/libvsl.a"
install -D -m 644 -t "$root/include/nvm" sdk/c/include/nvm/*.h
install -D -m 644 sdk/c/openvsl.3 "$root/share/man/man3/openvsl.3"
install -d "$root/lib/pkgconfig"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" sdk/c/openvsl.pc.in >"$root/lib/pkgconfig/openvsl.pc"
echo "installed under $root"
