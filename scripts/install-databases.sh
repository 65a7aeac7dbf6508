#!/usr/bin/env bash
# Installs the databases, and what loads them, that the tests and the demo run on vsl-directfs.
set -euo pipefail
scripts=$(dirname "$0")
needs=("mariadbd mariadb-server" "mariadb-install-db mariadb-server" "sysbench sysbench" "pgbench postgresql" "fusermount3 fuse3" "mkfs.ext4 e2fsprogs")
# PostgreSQL's server is in no path.
compgen -G '/usr/lib/postgresql/*/bin/pg_amcheck' >/dev/null || needs+=("pg_amcheck postgresql")
missing=$("$scripts/missing-packages.sh" "${needs[@]}")
# Unquoted: each name is a word.
[ -z "$missing" ] || "$scripts/install-packages.sh" install-databases $missing
