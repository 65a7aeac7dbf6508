#!/usr/bin/env bash
# Installs the C library, its header, its man page and what pkg-config needs; and for databases vsl-directfs and the extension of SQLite:
#   install-sdk.sh LIBRARIES PREFIX [DESTDIR]
# LIBDIR says where libraries are below PREFIX [default: lib].
set -euo pipefail
cd "$(dirname "$0")/.."

libraries=${1:?the directory with what is built, such as target/release}
prefix=${2:?where to install, such as /usr/local}
root=${3:-}$prefix
libdir=${LIBDIR:-lib}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
install -D -m 755 "$libraries/libvsl.so" "$root/$libdir/libvsl.so.0"
ln -sf libvsl.so.0 "$root/$libdir/libvsl.so"
install -D -m 644 "$libraries/libvsl.a" "$root/$libdir/libvsl.a"
install -D -m 644 -t "$root/include/nvm" sdk/c/include/nvm/*.h
install -D -m 644 sdk/c/openvsl.3 "$root/share/man/man3/openvsl.3"
install -D -m 755 -s "$libraries/vsl-directfs" "$root/bin/vsl-directfs"
install -D -m 644 -s "$libraries/libopenvsl_files.so" "$root/$libdir/libopenvsl_files.so"
install -D -m 644 sdk/files/vsl-directfs.1 "$root/share/man/man1/vsl-directfs.1"
install -d "$root/$libdir/pkgconfig"
sed "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" sdk/c/openvsl.pc.in >"$root/$libdir/pkgconfig/openvsl.pc"
echo "installed under $root"
