"""In a Debian without a compiler the package installs, README's minute works word for word, an upgrade leaves a service alone, and a purge the devices."""

from harness import World
from harness.bare import NO_COMPILER, TREE, in_time, inside, minute, packages

ROOT = True
OURS = True
LIMIT = 400
# Any SQLite finds the extension by its name.
SQLITE = """
import sqlite3
extended = sqlite3.connect(":memory:")
extended.enable_load_extension(True)
extended.load_extension("libopenvsl_files")
for statement in ("CREATE TABLE t (n)", "INSERT INTO t VALUES (1)"):
    with sqlite3.connect("file:/root/files.vsl/app.db?vfs=openvsl", uri=True) as database:
        database.execute(statement)
    database.close()
"""


def run(world: World) -> None:
    made = packages(world)
    # The static library alone would take two minutes; packaging/release.sh looks at that one as well.
    looked_at = [path for name, path in made.items() if name != "libvsl-dev"]
    world.run("lintian", "--allow-root", "--fail-on", "error,warning", *looked_at, timeout=LIMIT)
    world.run("promtool", "check", "rules", TREE / "packaging/prometheus-openvsl.rules.yml")

    said = inside(world, {f"{name}.deb": path for name, path in made.items()}, [
        NO_COMPILER,
        "apt-get install -y --no-install-recommends /mnt/openvsl.deb",
        "getent passwd openvsl && stat -c %A:%G /etc/openvsl | grep drwxr-x---:openvsl",
        "test -e /usr/share/man/man1/vsl-up.1.gz && test -e /usr/share/openvsl/grafana-openvsl.json",
        "test -x /usr/share/openvsl/drills/program.py",
        "vsl --version",
        *minute(),
        "pid=$(pgrep_vsl)",
        "dpkg -i /mnt/openvsl.deb",
        "test $pid = $(pgrep_vsl)",
        "apt-get install -y --no-install-recommends /mnt/libvsl0.deb /mnt/libvsl-dev.deb",
        "ldconfig -p | grep -F 'libvsl.so.0 ' && test -e /usr/include/nvm/nvm_primitives.h && test -e /usr/lib/*-linux-gnu/libvsl.a",
        "test -e /usr/share/man/man3/openvsl.3.gz && grep -qx prefix=/usr /usr/lib/*-linux-gnu/pkgconfig/openvsl.pc",
        "apt-get install -y --no-install-recommends /mnt/openvsl-files.deb && test -e /usr/share/man/man1/vsl-directfs.1.gz",
        f"vsl create files.vsl --size 64MiB --address-space 1TiB && python3 -c '{SQLITE}' && vsl status files.vsl",
        "vsl create shared.vsl --size 64MiB --address-space 1TiB && mkdir shared && { vsl-directfs shared.vsl shared --make 100 & }",
        "until mountpoint -q shared; do sleep 0.1; done; echo kept >shared/file && umount shared && wait",
        "{ vsl-directfs shared.vsl shared & } && until mountpoint -q shared; do sleep 0.1; done; grep -x kept shared/file && umount shared && wait",
        "vsl down && dpkg --remove openvsl && test -e /root/scratch.vsl && test -e /var/lib/openvsl/devices.toml",
        "(! test -e /usr/bin/vsl)",
        "dpkg --purge openvsl && test -e /root/scratch.vsl && (! test -e /var/lib/openvsl) && (! test -e /etc/default/openvsl)",
    ])
    in_time(said, "a development build")
