#!/usr/bin/env bash
# Installs the program, its symbols apart from it, man pages, shell completions, systemd unit and the unit's user: install-files.sh PROGRAM PREFIX [DESTDIR]
set -euo pipefail
cd "$(dirname "$0")/.."

program=${1:?the built vsl}
prefix=${2:?where to install, such as /usr/local}
root=${3:-}$prefix

# Debuggers and profilers find the symbols by the link. They take more room than the program.
symbols=$root/lib/debug$prefix/bin/vsl.debug
install -d "$root/bin" "$(dirname "$symbols")"
objcopy --only-keep-debug --compress-debug-sections "$program" "$symbols"
objcopy --strip-all --add-gnu-debuglink="$symbols" "$program" "$root/bin/vsl"
chmod 755 "$root/bin/vsl"
chmod 644 "$symbols"
# A new directory: pages of commands that no longer exist must not be installed.
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$program" man "$pages"
install -d "$root/share/man/man1"
install -m 644 "$pages"/*.1 "$root/share/man/man1/"
install -d "$root/share/bash-completion/completions" "$root/share/zsh/site-functions" "$root/share/fish/vendor_completions.d"
"$program" completions bash >"$root/share/bash-completion/completions/vsl"
"$program" completions zsh >"$root/share/zsh/site-functions/_vsl"
"$program" completions fish >"$root/share/fish/vendor_completions.d/vsl.fish"
install -d "$root/lib/systemd/system"
sed "s|@BINDIR@|$prefix/bin|" packaging/openvsl.service >"$root/lib/systemd/system/openvsl.service"
install -D -m 644 packaging/openvsl.sysusers "$root/lib/sysusers.d/openvsl.conf"
echo "installed under $root"
