"""In a Debian without a compiler the package installs, README's minute works word for word, an upgrade leaves a service alone, and a purge the devices."""

from harness import World
from harness.bare import NO_COMPILER, TREE, in_time, inside, minute

ROOT = True
OURS = True
LIMIT = 240


def run(world: World) -> None:
    # The development build is five times as large with what only debuggers read.
    program = world.dir / "vsl"
    world.run("strip", "-o", program, world.vsl_path)
    world.run("env", "VSL_COMPRESSION=gzip", TREE / "packaging/build-deb.sh", program, world.dir / "package")
    [package] = (world.dir / "package").glob("openvsl_*.deb")
    world.run("lintian", "--allow-root", "--fail-on", "error,warning", package)
    world.run("promtool", "check", "rules", TREE / "packaging/prometheus-openvsl.rules.yml")

    said = inside(world, {"package.deb": package}, [
        NO_COMPILER,
        "apt-get install -y --no-install-recommends /mnt/package.deb",
        "getent passwd openvsl && stat -c %A:%G /etc/openvsl | grep drwxr-x---:openvsl",
        "test -e /usr/share/man/man1/vsl-up.1.gz && test -e /usr/share/openvsl/grafana-openvsl.json",
        "test -x /usr/share/openvsl/drills/program.py",
        "vsl --version",
        *minute(),
        "pid=$(pgrep_vsl)",
        "dpkg -i /mnt/package.deb",
        "test $pid = $(pgrep_vsl)",
        "vsl down && dpkg --remove openvsl && test -e /root/scratch.vsl && test -e /var/lib/openvsl/devices.toml",
        "(! test -e /usr/bin/vsl)",
        "dpkg --purge openvsl && test -e /root/scratch.vsl && (! test -e /var/lib/openvsl) && (! test -e /etc/default/openvsl)",
    ])
    in_time(said, "a development build")
