#!/usr/bin/env bash
# Removes what install-files.sh put in place, and nothing else: uninstall-files.sh PREFIX [DESTDIR]
set -euo pipefail

prefix=${1:?where it was installed, such as /usr/local}
root=${2:-}$prefix

rm -f "$root/bin/vsl" "$root/lib/debug$prefix/bin/vsl.debug"
rm -f "$root"/share/man/man1/vsl.1 "$root"/share/man/man1/vsl-*.1
rm -f "$root/share/bash-completion/completions/vsl" "$root/share/zsh/site-functions/_vsl"
rm -f "$root/share/fish/vendor_completions.d/vsl.fish"
rm -f "$root/lib/systemd/system/openvsl.service" "$root/lib/sysusers.d/openvsl.conf"
echo "removed from $root; device files, /var/lib/openvsl and the user openvsl stay"
