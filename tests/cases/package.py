"""In a Debian without a compiler the package installs, README's minute works word for word, an upgrade leaves a service alone, and a purge the devices."""

import re
import time
from pathlib import Path

from harness import World, check

ROOT = True
OURS = True
LIMIT = 240
TREE = Path(__file__).resolve().parents[2]
MINUTE_SECONDS = 60


def run(world: World) -> None:
    # The development build is five times as large with what only debuggers read.
    program = world.dir / "vsl"
    world.run("strip", "-o", program, world.vsl_path)
    world.run("env", "VSL_COMPRESSION=gzip", TREE / "packaging/build-deb.sh", program, world.dir / "package")
    [package] = (world.dir / "package").glob("openvsl_*.deb")
    world.run("lintian", "--allow-root", "--fail-on", "error,warning", package)
    world.run("promtool", "check", "rules", TREE / "packaging/prometheus-openvsl.rules.yml")

    said = inside(world, package, [
        "! command -v cargo cc gcc node",
        "apt-get install -y --no-install-recommends /mnt/package.deb",
        "getent passwd openvsl && stat -c %A:%G /etc/openvsl | grep drwxr-x---:openvsl",
        "test -e /usr/share/man/man1/vsl-up.1.gz && test -e /usr/share/openvsl/grafana-openvsl.json",
        "vsl --version",
        "cd /root; date +began:%s.%N",
        *minute(),
        "date +ended:%s.%N",
        "pid=$(pgrep_vsl)",
        "dpkg -i /mnt/package.deb",
        "test $pid = $(pgrep_vsl)",
        "vsl down && dpkg --remove openvsl && test -e /root/scratch.vsl && test -e /var/lib/openvsl/devices.toml",
        "! command -v vsl",
        "dpkg --purge openvsl && test -e /root/scratch.vsl && ! test -e /var/lib/openvsl && ! test -e /etc/default/openvsl",
    ])
    took = elapsed(said)
    print(f"figure: README's minute took {took:.1f} s with a development build", flush=True)
    check(took < MINUTE_SECONDS, f"README's minute took {took:.1f} s")


def minute() -> list[str]:
    """The commands of README that follow its installation."""
    text = (TREE / "README.md").read_text()
    [block] = [block for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) if "$ vsl up" in block]
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)
    check(any(command.startswith("fio ") for command in commands) and len(commands) >= 5, str(commands))
    return commands


def elapsed(said: str) -> float:
    """The time between the two marks, seconds."""
    [began], [ended] = re.findall(r"^began:([\d.]+)$", said, re.MULTILINE), re.findall(r"^ended:([\d.]+)$", said, re.MULTILINE)
    return float(ended) - float(began)


def inside(world: World, package: Path, commands: list[str]) -> str:
    """Runs commands as root of a fresh Debian, in namespaces of its own, and gives what they said."""
    base, top = world.tools.parent / "package-root", world.dir / "root"
    check(base.exists(), f"{base} is missing: scripts/install-package-root.sh prepares it")
    top.mkdir()
    script = world.dir / "script"
    pgrep = "pgrep_vsl() { for process in /proc/[0-9]*; do [ -e $process/comm ] && grep -qx vsl $process/comm && echo ${process#/proc/}; done; true; }"
    script.write_text("\n".join(["set -ex", "export HOME=/root DEBIAN_FRONTEND=noninteractive", pgrep, *commands]) + "\n")
    setup = world.dir / "setup"
    # In memory: the layers need a file system that takes them, and README's device is sparse.
    setup.write_text(f"""set -e
mount -t tmpfs none {top}
mkdir {top}/upper {top}/work {top}/root
mount -t overlay overlay -o lowerdir={base},upperdir={top}/upper,workdir={top}/work {top}/root
cd {top}/root
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs none dev/shm
mount -t tmpfs none run
cp {package} mnt/package.deb
cp {script} mnt/script
ip link set lo up
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /bin/bash /mnt/script
""")
    command = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private", "bash", setup]
    return world.run(*command, timeout=200).text
