#!/usr/bin/env bash
# Installs the databases that `make soak` runs on vsl-directfs.
set -euo pipefail
scripts=$(dirname "$0")
missing=$("$scripts/missing-packages.sh" "mariadbd mariadb-server" "mariadb-install-db mariadb-server")
# Unquoted: each name is a word.
[ -z "$missing" ] || "$scripts/install-packages.sh" install-databases $missing
