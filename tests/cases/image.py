"""The container image, as its page says: README's minute under podman's own filter, which refuses io_uring, and without any capability."""

from harness import World, check
from harness.bare import TREE, in_time
from harness.page import commands
from cases.static_program import program

ROOT = True
OURS = True
SLOW = True
LIMIT = 300
VERSION = "0.1.0"
# Of a machine whose control groups and limits podman does not know how to change.
SETTINGS = """[containers]
cgroups = "disabled"
netns = "none"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
"""
# The system of this machine in a container that may do nothing.
UNPRIVILEGED = "--rm --cap-drop all --security-opt no-new-privileges --user 65534 --workdir /tmp --env HOME=/tmp"


def run(world: World) -> None:
    cuts = [command.script() for command in commands((TREE / "docs/tasks/power-cuts.md").read_text()) if command.text.startswith("$ ")]
    check(any("--device" in script for script in cuts), str(cuts))
    script = "\n".join(["set -ex", "grep -x 'CapBnd:.0*' /proc/self/status", f"PATH=$PATH:{world.vsl_path.resolve().parent}", *cuts]) + "\n"
    (world.dir / "power-cuts").write_text(script.replace("/usr/share/openvsl/drills", str(TREE / "examples/drills")))
    programs = [f"{name}={program(world, name)}" for name in ("x86_64", "aarch64")]
    world.run(TREE / "packaging/build-image.py", f"openvsl-{VERSION}.oci.tar", VERSION, *programs)
    page = [command.text[2:] for command in commands((TREE / "docs/install.md").read_text())]
    first = next(number for number, text in enumerate(page) if text.startswith("podman load"))
    ours = page[first:first + 7]
    check(ours[-1] == "podman exec flash vsl status scratch", str(ours))
    said = inside(world, [
        "date +began:%s.%N",
        *ours,
        "date +ended:%s.%N",
        "podman exec flash vsl status scratch --long | tee refused",
        "grep -i 'without io_uring.*filter' refused",
        "podman stop flash && podman rm flash",
        # Nothing at all is allowed, and the file system is read only beside its volumes; what was attached is attached again.
        "podman run -d --name bare --cap-drop all --security-opt no-new-privileges --read-only -v flash-run:/run/openvsl -v flash-data:/data"
        f" -v flash-state:/var/lib/openvsl openvsl:{VERSION}",
        "until podman exec bare vsl attach /data/scratch.vsl; do sleep 0.2; done",
        "podman stop bare && podman rm bare",
        "podman run -d --name free --security-opt seccomp=unconfined -v flash-run:/run/openvsl -v flash-data:/data"
        f" openvsl:{VERSION}",
        "until podman exec free vsl attach /data/scratch.vsl; do sleep 0.2; done",
        "podman exec free vsl status scratch --long | tee allowed",
        "(! grep -i 'without io_uring' allowed)",
        "podman stop free",
        f"podman run {UNPRIVILEGED} -v {world.dir}/power-cuts:/power-cuts:ro --rootfs /:O bash /power-cuts",
    ])
    in_time(said, "the image, without io_uring")


def inside(world: World, commands: list[str]) -> str:
    """Runs commands with a podman of its own, and gives what they said."""
    (world.dir / "containers.conf").write_text(SETTINGS)
    (world.dir / "storage.conf").write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{world.dir}/store"\nrunroot = "{world.dir}/containers"\n')
    script = world.dir / "script"
    # crun refuses the two kinds of control groups beside each other that some machines have.
    script.write_text("\n".join([
        "set -ex", "mount -t proc proc /proc", "umount -lR /sys/fs/cgroup", "mount -t cgroup2 none /sys/fs/cgroup",
        f"export CONTAINERS_CONF={world.dir}/containers.conf CONTAINERS_STORAGE_CONF={world.dir}/storage.conf", f"cd {world.dir}", *commands,
    ]) + "\n")
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "bash", script]
    return world.run(*command, timeout=LIMIT).text
