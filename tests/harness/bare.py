"""A Debian without Rust, Node or a compiler, in which what users install is tried as they would."""

import re
from pathlib import Path

from harness.check import check
from harness.world import World

TREE = Path(__file__).resolve().parents[2]
# What README promises.
MINUTE_SECONDS = 60
# In a subshell: a shell that ends with the first error passes over one that begins with `!`.
NO_COMPILER = "for tool in cargo cc gcc node; do (! command -v $tool); done"
# Each command is found by its name: the package of `pgrep` is not there.
PGREP = "pgrep_vsl() { for process in /proc/[0-9]*; do [ -e $process/comm ] && grep -qx vsl $process/comm && echo ${process#/proc/}; done; true; }"
# A namespace has copies of all mounts, and those of other cases' file systems would keep them in use.
LET_GO = "awk '$2 ~ /vsl-test[.]/ { print $2 }' /proc/self/mounts | sort -r | xargs --no-run-if-empty umount --lazy"


def minute() -> list[str]:
    """The commands of README that follow its installation, between two marks."""
    text = (TREE / "README.md").read_text()
    [block] = [block for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) if "$ vsl up" in block]
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)
    check(any(command.startswith("fio ") for command in commands) and len(commands) >= 5, str(commands))
    return ["cd /root; date +began:%s.%N", *commands, "date +ended:%s.%N"]


def in_time(said: str, what: str) -> None:
    """Checks that the minute took less than one."""
    [began], [ended] = re.findall(r"^began:([\d.]+)$", said, re.MULTILINE), re.findall(r"^ended:([\d.]+)$", said, re.MULTILINE)
    took = float(ended) - float(began)
    print(f"figure: README's minute took {took:.1f} s with {what}", flush=True)
    check(took < MINUTE_SECONDS, f"README's minute took {took:.1f} s")


def package(world: World, program: Path | None = None) -> Path:
    """The Debian package of the program that is built, or of another."""
    return packages(world, program, "DH_OPTIONS=-popenvsl", "VSL_COMPRESSION=none")["openvsl"]


def packages(world: World, program: Path | None = None, *settings: str) -> dict[str, Path]:
    """The Debian packages of what is built, by their names."""
    # The development build is five times as large with what only debuggers read.
    stripped = world.dir / "vsl"
    world.run("strip", "-o", stripped, program or world.vsl_path)
    made = world.run("env", "VSL_COMPRESSION=gzip", *settings, TREE / "packaging/build-deb.sh", stripped, world.vsl_path.parent, world.dir / "packages", timeout=300)
    return {path.name.split("_")[0]: path for path in map(Path, made.out.split())}


def inside(world: World, files: dict[str, Path], commands: list[str]) -> str:
    """Runs commands as root of a fresh Debian, in namespaces of its own, with files in /mnt, and gives what they said."""
    base, top = world.tools.parent / "package-root", world.dir / "root"
    check(base.exists(), f"{base} is missing: scripts/install-package-root.sh prepares it")
    top.mkdir()
    script = world.dir / "script"
    script.write_text("\n".join(["set -ex", "export HOME=/root DEBIAN_FRONTEND=noninteractive", PGREP, *commands]) + "\n")
    copies = "\n".join(f"cp {path} mnt/{name}" for name, path in {**files, "script": script}.items())
    setup = world.dir / "setup"
    # In memory: the layers need a file system that takes them, and README's device is sparse.
    setup.write_text(f"""set -e
{LET_GO}
mount -t tmpfs none {top}
mkdir {top}/upper {top}/work {top}/root
mount -t overlay overlay -o lowerdir={base},upperdir={top}/upper,workdir={top}/work {top}/root
cd {top}/root
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs none dev/shm
mount -t tmpfs none run
{copies}
ip link set lo up
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /bin/bash /mnt/script
""")
    command = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private", "bash", setup]
    return world.run(*command, timeout=300).text
