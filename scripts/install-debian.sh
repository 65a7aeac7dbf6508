#!/usr/bin/env bash
# Prepares a whole Debian for the guests of `make soak`: the image of its root file system, its kernel and its initrd.
#
# It is of the suite that this machine runs. Its initrd finds a root on NVMe over TCP as well (examples/nvme-root).
set -euo pipefail
cd "$(dirname "$0")/.."
guest=${CARGO_TARGET_DIR:-target}/tools/guest
packages=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,udev,dbus,kmod,iproute2,e2fsprogs,nvme-cli,fio

PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$guest"
guest=$(realpath "$guest")
stamp=$(cat "$0" tests/guest/agent examples/nvme-root/* | sha256sum)
if [ "$(cat "$guest/debian.stamp" 2>/dev/null)" = "$stamp" ]; then
  exit 0
fi
missing=()
command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
command -v virt-qemu-run >/dev/null || missing+=(libvirt-daemon libvirt-daemon-driver-qemu)
[ ${#missing[@]} -eq 0 ] || scripts/install-packages.sh install-debian "${missing[@]}"
# libvirt does not start without it, and only the package of its daemon's units makes it.
getent passwd libvirt-qemu >/dev/null || useradd --system --user-group --no-create-home --shell /usr/sbin/nologin libvirt-qemu
echo "install-debian: preparing a Debian in $guest"
work=$(mktemp -d "$guest/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
files=$work/files
root=$work/root

# What the system has before its packages come, so that its initramfs is made with it.
install -D -m 755 examples/nvme-root/hook "$files/etc/initramfs-tools/hooks/nvme-root"
install -D -m 755 examples/nvme-root/local-top "$files/etc/initramfs-tools/scripts/local-top/nvme-root"
install -D -m 755 tests/guest/agent "$files/usr/local/sbin/agent"
mkdir -p "$files/etc/systemd/system/multi-user.target.wants" "$files/etc/systemd/network"
echo guest >"$files/etc/hostname"
echo 'LABEL=openvsl-root / ext4 defaults 0 1' >"$files/etc/fstab"
cat >"$files/etc/systemd/system/agent.service" <<'UNIT'
[Service]
ExecStart=/usr/local/sbin/agent

[Install]
WantedBy=multi-user.target
UNIT
ln -s ../agent.service "$files/etc/systemd/system/multi-user.target.wants/agent.service"
# An address that the initramfs got, because the root is behind it, stays.
cat >"$files/etc/systemd/network/80-guest.network" <<'NETWORK'
[Match]
Type=ether

[Network]
DHCP=ipv4
KeepConfiguration=yes
NETWORK

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
  awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
mmdebstrap --quiet --variant=minbase --include="$packages" \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --essential-hook="cp -a $files/. \"\$1\"" --customize-hook='chroot "$1" passwd -d root' \
  --customize-hook='chroot "$1" systemctl enable systemd-networkd' \
  "$suite" "$root" "$mirror"
cp -L "$root/vmlinuz" "$guest/debian.kernel"
cp -L "$root/initrd.img" "$guest/debian.initrd"
basename "$(readlink "$root/vmlinuz")" | sed 's/^vmlinuz-//' >"$guest/debian.version"
rm -f "$guest/debian.img"
mke2fs -q -t ext4 -b 4096 -L openvsl-root -d "$root" "$guest/debian.img" 1536M
echo "$stamp" >"$guest/debian.stamp"
