"""This machine's system with everything that is installed, seen through a layer in memory that takes every change."""

from pathlib import Path

from harness.bare import TREE
from harness.world import World

# Loop devices are the machine's, so those that a page leaves are taken down, whatever the page came to.
UNDO = """status=$?; set +ex
umount /srv/database /mnt/check
for made in /run/openvsl/connected-*.json; do name=${made##*/connected-}; [ ! -e $made ] || vsl disconnect ${name%.json}; done
vsl down --force
exit $status"""


def layered(world: World, name: str, scripts: list[str], files: dict[str, Path] | None = None, seconds: float = 400) -> str:
    """Runs commands as root, in root's home, where files lie, with `vsl` installed and a network of its own, and gives what they said."""
    top = world.dir / name
    (top / "mnt").mkdir(parents=True)
    script = top / "script"
    script.write_text("\n".join(["set -e", f"trap '{UNDO}' EXIT", "cd /root", "set -x", *scripts]) + "\n")
    copies = "\n".join(f"cp {path} root/root/{name}" for name, path in (files or {}).items())
    setup = top / "setup"
    # `make` finds the program built, as `cargo` would leave it. Packages that are there already are not fetched anew.
    setup.write_text(f"""set -e
mount -t tmpfs none {top}/mnt
cd {top}/mnt
mkdir upper work root tree tree-work
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
cp {script} root/script
{copies}
cd root
rm -rf var/lib/openvsl
echo 'APT::Get::Upgrade "false";' >etc/apt/apt.conf.d/99-layered
install -D {world.vsl_path} usr/bin/vsl
install -D {world.vsl_path} built/release/vsl
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
for place in dev/shm run tmp; do mount -t tmpfs none $place; done
mkdir -p .{TREE}
mount -t overlay overlay -o lowerdir={TREE},upperdir=../tree,workdir=../tree-work .{TREE}
ip link set lo up
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CARGO=true CARGO_TARGET_DIR=/built chroot . /bin/bash /script
""")
    command = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private", "bash", setup]
    return world.run(*command, timeout=seconds).text
