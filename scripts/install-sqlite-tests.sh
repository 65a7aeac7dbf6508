#!/usr/bin/env bash
# Builds SQLite's own test programs, whose source Debian has, into the build directory: linked with the SQLite that the workspace
# bundles, whose default VFS keeps databases on a device.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
root=$(realpath "${CARGO_TARGET_DIR:-target}")/tools
programs=(speedtest1 kvtest threadtest3)
made() { for program in "${programs[@]}"; do [ "$root/bin/$program" -nt tests/programs/sqlite_on_device.c ] || return 1; done; }
! made || exit 0
missing=$(scripts/missing-packages.sh "dpkg-source dpkg-dev" "cc gcc")
# Unquoted: each name is a word.
[ -z "$missing" ] || scripts/install-packages.sh install-sqlite-tests $missing
bundled=$(cargo metadata --locked --format-version 1 | jq -r '.packages[] | select(.name == "libsqlite3-sys") | .manifest_path | sub("Cargo.toml$"; "sqlite3")')
mkdir -p "$root/sqlite" "$root/bin"
cd "$root/sqlite"
if ! compgen -G 'sqlite3-*/test/speedtest1.c' >/dev/null; then
  # The machine's own sources, for packages' source.
  mkdir -p lists/partial
  sed -n 's/^Types: deb$/Types: deb-src/; p' /etc/apt/sources.list.d/debian.sources >debian.sources
  options=(-o "Dir::Etc::sourcelist=$PWD/debian.sources" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$PWD/lists" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update -q
  apt-get "${options[@]}" source -q sqlite3
fi
source=$(echo "$PWD"/sqlite3-*/)
options=(-O1 -w -I"$bundled" -I"$source/test" -I"$source/src" -DSQLITE_ENABLE_BATCH_ATOMIC_WRITE -DSQLITE_ENABLE_RTREE -DSQLITE_THREADSAFE=1)
cc "${options[@]}" -DSQLITE_EXTRA_INIT=default_to_device -c "$here/tests/programs/sqlite_on_device.c" -o sqlite.o
for program in "${programs[@]}"; do
  also=()
  [ "$program" != threadtest3 ] || also=("$source/src/test_multiplex.c")
  cc "${options[@]}" -Dunlink=unlink_on_device "$source/test/$program.c" "${also[@]}" sqlite.o -o "$root/bin/$program" -ldl -lm -lpthread
done
