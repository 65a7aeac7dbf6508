"""Every command of reference pages runs word for word, in a system of its own; the rest is run by other tests."""

from harness import World
from harness.bare import TREE
from harness.layered import pages

ROOT = True
OURS = True
LIMIT = 900
PAGES = [
    "alerts.md", "api.md", "arrays.md", "cache.md", "databases.md", "drills.md", "encryption.md", "flashback.md", "layer.md", "metrics.md", "moving.md", "nbd.md", "nvme.md", "objects.md", "operations.md", "performance.md",
    "resize.md", "sdk.md", "snapshots.md", "troubleshooting.md", "vhost.md", "vsl.md",
]
# What stands in these pages and is not run here: how the command begins, and the case that runs it.
ELSEWHERE = {
    "# systemctl": "nvme_systemd",
    "# systemd-sysusers": "unit",
    "# nvme connect": "nvme_guest",
    "# ls /dev/disk": "nvme_guest",
    "# vsl disconnect db && vsl connect db": "nvme_connect",
    "# cat /sys/block": "nvme_placement",
    "# nvme fdp": "nvme_placement",
    "# vsl attach zoned.vsl": "nvme_zones",
    "# blkzone report": "nvme_zones",
    "# mkfs.btrfs -O zoned": "nvme_zones",
    "# install -m 755 hook": "nvme_debian",
    "# install -m 755 local-top": "nvme_debian",
    "# update-initramfs": "nvme_debian",
    "$ qemu-system-x86_64": "vhost_guest",
    "$ qemu-system-x86_64 ... \\\n    -blockdev driver=nbd": "nbd_guest",
    "# vsl snapshot create": "snapshot_freeze",
    "# resize2fs": "resize_guest",
    "# e2fsck -f": "resize_guest",
    "# blkdiscard": "resize_guest",
    # A file is lost first.
    "$ vsl rebuild": "flashback",
    # A member is gone for good first.
    "$ vsl array replace": "array",
    "$ vsl array assemble": "array",
    # It goes on while somebody changes their mind.
    "$ vsl migrate db --cancel": "migrate",
    "$ vsl migrate mail --cancel": "migrate",
    # A store of Amazon's protocol, or a host that is lost.
    "$ export AWS_ACCESS_KEY_ID": "objects",
    "$ vsl create journal.vsl --size 10TiB --objects s3:": "objects",
    "$ vsl objects s3:": "objects",
    "$ vsl attach journal.vsl --name db": "objects",
    "$ vsl attach new.vsl --name db --objects s3:": "objects",
    # Fifty cuts; and PostgreSQL, which only `make soak` installs.
    "# examples/drills/sqlite.py --vsl run/vsl --journal DELETE": "drill_sqlite_many",
    "# examples/drills/postgres.py": "drill_postgres",
    # They go on until they are ended.
    "$ vsl serve scratch.vsl --": "vhost",
    "$ vsl serve memory:1GiB --listen": "libnbd_commands",
    "$ vsl serve a.vsl b.vsl": "members",
    # Alerts that are active.
    "$ vsl alerts acknowledge": "web_alerts",
    # Hosts, networks and file systems that are not there.
    "$ vsl hosts add db1": "web_hosts_tls",
    "$ vsl hosts move": "objects_fleet",
    "# vsl up --listen 192.0.2.7": "web_access",
    "# vsl status db": "disk_full",
}
SERVICE = "vsl up --listen 127.0.0.1:7420"
WITH_DB = f"{SERVICE} && vsl create db.vsl --size 1GiB && vsl attach db.vsl"
# What a page finds there when it begins, or a command.
BEFORE = {
    "arrays.md": f"mkdir /data && {SERVICE} && for n in 0 1 2 3; do vsl create /data/fct$n.vsl --size 64MiB && vsl attach /data/fct$n.vsl; done",
    "arrays.md $ vsl array add": "vsl create /data/fct8.vsl --size 64MiB && vsl attach /data/fct8.vsl",
    # The member that was added is being laid out over.
    "arrays.md $ vsl snapshot create fast": "until vsl snapshot create fast sunday; do sleep 0.1; done && vsl snapshot delete fast sunday",
    "cache.md": f"mkdir /ssd /nfs && {SERVICE} && truncate -s 64M /nfs/vm.img",
    "alerts.md": f"mkdir -p /etc/openvsl && echo secret >/etc/openvsl/mail-password && cp /etc/openvsl/mail-password /etc/openvsl/hook-secret && {WITH_DB}",
    # It would be there for every program of this machine.
    "databases.md # touch /dev/fcta": "mount -t tmpfs none /dev",
    "drills.md": f"vsl up && make -C {TREE} run",
    "drills.md $ vsl drill card kill-chip": "vsl create card.vsl --emulate iodrive2-1200-mlc --scale 64 --drills && vsl attach card.vsl",
    "encryption.md": SERVICE,
    "flashback.md": f"mkdir /a /b /c /d /new && {SERVICE}",
    "layer.md": f"mkdir /mnt/other && {SERVICE} && vsl create db.vsl --size 1GiB",
    "metrics.md": f"mkdir -p /etc/prometheus && {SERVICE}",
    "moving.md": f"mkdir /data /new && {SERVICE} && vsl create /data/db.vsl --size 64MiB && vsl attach /data/db.vsl",
    "nbd.md $ nbdinfo --map": f"{WITH_DB} && vsl snapshot create db monday && vsl snapshot create db tuesday",
    "nbd.md $ vsl up --nbd-listen": "vsl down",
    "nvme.md": "vsl create db.vsl --size 1GiB",
    "performance.md": WITH_DB,
    "operations.md": f"useradd --system openvsl && {SERVICE}",
    "operations.md # curl": SERVICE,
    "operations.md # vsl attach db-copy": "cp /srv/db.vsl /srv/db-copy.vsl && cd /srv",
    "objects.md $ vsl create local.vsl": SERVICE,
    "objects.md $ vsl create /ssd/cache.vsl": "mkdir /ssd",
    "resize.md": WITH_DB,
    "snapshots.md $ vsl clone promote": "vsl clone create db golden test-2",
    "vsl.md $ vsl array create": "vsl attach memory:64MiB --name disk0 && vsl attach memory:64MiB --name disk1",
    "vsl.md $ vsl array add": "vsl attach memory:64MiB --name disk3",
    "vsl.md $ vsl cache create": "vsl create fast.vsl --size 1GiB --address-space 1TiB && vsl attach fast.vsl && truncate -s 64M vm.img",
    "vsl.md $ vsl clone promote": "vsl clone create fct0 before-upgrade test-2",
    "sdk.md": f"{WITH_DB} && vsl create cache.vsl --size 1GiB --address-space 1TiB",
    "snapshots.md": WITH_DB,
    "troubleshooting.md": WITH_DB,
    "vhost.md": "vsl create db.vsl --size 1GiB",
    "vhost.md $ vsl status": "vsl attach db.vsl",
    "vsl.md $ vsl attach scratch.vsl": SERVICE,
    "vsl.md $ vsl status  ": "vsl attach scratch.vsl && qemu-io -f raw -c 'write 0 1M' -c flush $(vsl status scratch --field uri)",
    "vsl.md $ vsl top": "vsl attach memory:64MiB --name demo",
    "vsl.md $ vsl up --listen": "vsl down",
    "vsl.md $ vsl scrub": "vsl attach memory:64MiB --name fct0",
    "vsl.md $ vsl drill db power-cut": "vsl create db.vsl --size 1GiB --drills && vsl attach db.vsl",
    "vsl.md $ vsl migrate mail /new": "mkdir -p /new && vsl create mail.vsl --size 64MiB && vsl attach mail.vsl",
    "vsl.md $ vsl sure-erase": "vsl detach scratch",
    "vsl.md $ vsl create safe.vsl": "echo secret >pass && head -c 64 /dev/urandom >safe.key && chmod 600 pass safe.key",
}
# What is typed where a command asks for a passphrase, a password or a yes.
TYPED = {
    "$ vsl create safe.vsl --size 8GiB --encrypt   ": ["secret", "secret"],
    "$ vsl key add safe.vsl --new-key-file": ["secret"],
    "$ vsl account add ada": ["a long password", "a long password"],
    "# vsl account add ada": ["a long password", "a long password"],
}
# What would take ten minutes.
SHORTER = {"$ fio --name=steady": "--runtime=5"}


def run(world: World) -> None:
    built = world.vsl_path.parent
    install = f"install {built}/vsl-directfs /usr/bin; install -m 644 {built}/libopenvsl_files.so /usr/lib; ldconfig; rm -rf /var/lib/mysql; mkdir /var/lib/mysql"
    pages(world, PAGES, elsewhere=ELSEWHERE, before=BEFORE | {"databases.md": install}, typed=TYPED, shorter=SHORTER, least=95)
