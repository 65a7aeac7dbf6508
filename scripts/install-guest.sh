#!/usr/bin/env bash
# Prepares the guests of the whole-system tests in the build directory: two kernels, an initrd for each, and one disk of programs.
#
# distribution  the kernel of the Debian that this machine runs
# backports     a newer one, with atomic writes, large blocks and ublk; where it cannot be had, `backports.missing` says why
set -euo pipefail
cd "$(dirname "$0")/.."
guest=${CARGO_TARGET_DIR:-target}/tools/guest
backports=trixie-backports
# Modules that a guest may load. A kernel may have one built in, or not know it.
modules=(
  virtio_pci virtio_net virtio_blk virtio_console ext4 xfs btrfs zonefs nvme-tcp nvmet-tcp null_blk nbd ublk_drv
  crc32c crc32c_generic crc32c-intel libcrc32c xxhash_generic dh_generic hmac sha256_generic sha512_generic
)
# Programs of this machine that a guest has, with the libraries that they need.
programs=(nvme blkzone fio mke2fs mkfs.ext4 e2fsck resize2fs mkfs.xfs xfs_repair mkfs.btrfs btrfs blkdiscard fstrim flock nbd-client qemu-ga)

PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$guest"
guest=$(realpath "$guest")
stamp=$(cat "$0" tests/guest/* | sha256sum)
if [ "$(cat "$guest/stamp" 2>/dev/null)" = "$stamp" ] && [ ! -e "$guest/backports.missing" ]; then
  exit 0
fi
echo "install-guest: preparing the guests in $guest"
work=$(mktemp -d "$guest/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The packages of a suite's cloud kernel, downloaded and unpacked: unpack_kernel NAME [APT OPTION...]
unpack_kernel() {
  local name=$1 packages
  shift
  mapfile -t packages < <(apt-cache "$@" depends --recurse --important linux-image-cloud-amd64 |
    grep -Ex 'linux-(base|image|binary|modules)-[0-9].*-cloud-amd64' | sort -u)
  [ ${#packages[@]} -gt 0 ] || return 1
  mkdir -p "$work/$name/packages" "$work/$name/root/usr/lib"
  # As on a current Debian, /lib is in /usr, whichever of the two a package names.
  ln -s usr/lib "$work/$name/root/lib"
  (cd "$work/$name/packages" && apt-get "$@" -q -o APT::Sandbox::User=root download "${packages[@]}")
  local package
  for package in "$work/$name/packages"/*.deb; do
    # Through tar, which follows the link that dpkg would replace.
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$work/$name/root"
  done
}

# A kernel's image and its initrd, from what was unpacked: pack_kernel NAME
pack_kernel() {
  local name=$1 root=$work/$1/root initrd=$work/$1/initrd image version module file
  image=$(find "$root" -name 'vmlinuz*' -type f | head -n 1)
  version=$(basename "$(find "$root/usr/lib/modules" -mindepth 1 -maxdepth 1 | head -n 1)")
  depmod -b "$root" "$version"
  mkdir -p "$initrd"/{bin,sbin,dev,proc,sys,tmp,etc,mnt,usr} "$initrd/lib/modules/$version"
  cp "$root/usr/lib/modules/$version"/modules.{builtin*,order} "$initrd/lib/modules/$version/"
  for module in "${modules[@]}"; do
    modprobe -d "$root" -S "$version" --show-depends "$module" 2>/dev/null | awk '/^insmod/ { print $2 }' || true
  done | sort -u | while read -r file; do
    install -D -m 644 "$file" "$initrd/lib/modules/$version/${file#*/modules/"$version"/}"
  done
  find "$initrd/lib/modules" -name '*.ko.xz' -exec xz -d {} +
  find "$initrd/lib/modules" -name '*.ko.zst' -exec zstd -q --rm -d {} +
  depmod -b "$initrd" "$version"
  cp "$(command -v busybox)" "$initrd/bin/busybox"
  ln -s /bin/busybox "$initrd/sbin/modprobe" # where the kernel looks for it
  ln -s usr/lib64 "$initrd/lib64"
  cp tests/guest/init tests/guest/agent "$initrd/"
  (cd "$initrd" && find . | cpio --quiet -o -H newc -R 0:0) >"$guest/$name.initrd"
  cp "$image" "$guest/$name.kernel"
  echo "$version" >"$guest/$name.version"
  echo "install-guest: $name is Linux $version"
}

# The programs and their libraries, as one ext4 image that all guests mount read-only on /usr.
pack_programs() {
  local usr=$work/usr program path library
  mkdir -p "$usr/bin" "$usr/lib64"
  ln -s lib64 "$usr/lib"
  for program in "${programs[@]}"; do
    path=$(command -v "$program")
    cp -L "$path" "$usr/bin/$program"
    ldd "$path" | awk '/=> \// { print $3 } /^\t\// { print $1 }' | while read -r library; do
      # Each stands where any loader looks, wherever it is on this machine.
      install -D -m 755 "$library" "$usr/lib64/$(basename "$library")"
    done
  done
  for program in atomic_write synced write_stream; do
    cc -static -O1 -Wall -Werror -o "$usr/bin/$program" "tests/guest/$program.c"
  done
  rm -f "$guest/programs.img"
  mke2fs -q -t ext4 -b 4096 -O ^has_journal -m 0 -d "$usr" "$guest/programs.img" "$(($(du -sm "$usr" | cut -f1) * 5 / 4 + 8))M"
}

# Where only the newer kernel was missing, it is tried again, and what is there stays.
if [ "$(cat "$guest/stamp" 2>/dev/null)" != "$stamp" ]; then
  unpack_kernel distribution || { echo "install-guest: this machine's apt has no linux-image-cloud-amd64" >&2; exit 1; }
  pack_kernel distribution
  pack_programs
fi

# The same mirror that this machine has its Debian from, with lists of its own: the machine's are left alone.
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
  awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
: >"$work/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $backports main" >"$work/apt/sources.list"
apart=(
  -o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/apt/lists"
  -o "Dir::Cache=$work/apt/cache" -o "Dir::State::status=$work/apt/status" -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root
)
rm -f "$guest"/backports.*
if apt-get "${apart[@]}" -q update -o APT::Update::Error-Mode=any && unpack_kernel backports "${apart[@]}"; then
  pack_kernel backports
else
  echo "this machine's Debian mirror has no cloud kernel in $backports, or did not answer" >"$guest/backports.missing"
  echo "install-guest: NOT CHECKED will be what needs a newer kernel: $(cat "$guest/backports.missing")" >&2
fi
echo "$stamp" >"$guest/stamp"
