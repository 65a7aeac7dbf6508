#!/usr/bin/env bash
# Installs the foreign clients that `make test`, `make soak` and `make bench` drive; only those that are missing.
set -euo pipefail

# A program (or Python module) that the tests call, and the Debian package that brings it.
needs=(
  "fio fio"
  "nbdkit nbdkit"
  "nbdinfo libnbd-bin"
  "nbdcopy libnbd-bin"
  "nbdfuse libnbd-bin"
  "qemu-img qemu-utils"
  "qemu-io qemu-utils"
  "qemu-nbd qemu-utils"
  "fusermount3 fuse3"
  "mkfs.ext4 e2fsprogs"
  "losetup mount"
  "fstrim util-linux"
  "qemu-system-x86_64 qemu-system-x86"
  "busybox busybox-static"
  "depmod kmod"
  "cpio cpio"
  "xz xz-utils"
  "nbd-client nbd-client"
  "nc netcat-openbsd"
  "nvme nvme-cli"
  "qemu-ga qemu-guest-agent"
  "mkfs.xfs xfsprogs"
  "mkfs.btrfs btrfs-progs"
  "openssl openssl"
  "jq jq"
  "sqlite3 sqlite3"
  "node nodejs"
  "npm npm"
  "chromium chromium"
  "promtool prometheus"
  "systemd-analyze systemd"
  "man man-db"
  "/usr/bin/python3 python3"
  "import:nbd python3-libnbd"
  # The mail server that alerts are sent to.
  "import:aiosmtpd python3-aiosmtpd"
  # The systemd unit's system call filter.
  "import:seccomp python3-seccomp"
  # What fio's own scripts need.
  "import:six python3-six"
)
# For the scripts below as well.
export PATH=$PATH:/usr/sbin:/sbin
scripts=$(dirname "$0")
"$scripts/install-build-tools.sh"
missing=$("$scripts/missing-packages.sh" "${needs[@]}")
# Unquoted: each name is a word.
[ -z "$missing" ] || "$scripts/install-packages.sh" install-test-tools $missing
"$scripts/install-guest.sh"
# Requests made up from the API's description.
"$scripts/install-pinned.sh" schemathesis tests/schemathesis.txt schemathesis
# A server of Amazon's protocol for object stores.
"$scripts/install-pinned.sh" moto tests/moto.txt moto_server
# What builds the Python package and checks it.
"$scripts/install-pinned.sh" wheel sdk/python/tools.txt maturin
