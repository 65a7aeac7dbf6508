"""Every command of getting started, install, integrations and the task pages runs word for word, in a system of its own; the rest is run by other tests."""

from harness import World
from harness.bare import TREE
from harness.layered import pages

ROOT = True
OURS = True
LIMIT = 600
# What stands in these pages and is not run here: how the command begins, and the case that runs it.
ELSEWHERE = {
    "# apt install": "package",
    "# apt purge": "package",
    "# systemctl": "nvme_systemd",
    "# systemd-sysusers": "unit",
    "# podman": "image",
    "# run=$(podman": "image",
    "# fio --name=try": "image",
    "# install -m 755 vsl-": "static_program",
    "$ qemu-system-x86_64": "nbd_guest",
}
# What no test runs, and why.
NOT_RUN = {"# qm set": "there is no Proxmox VE here"}
# What a page finds there when it begins.
BEFORE = {
    # As systemd would have started it.
    "install.md": "vsl up",
    "integrations.md": "vsl up",
    "tasks/virtual-machine.md": "qemu-img create -q -f qcow2 debian-12.qcow2 64M",
    "tasks/database.md": "mkdir /srv/a /srv/b /srv/c",
    "tasks/backup.md": "mkdir /backup",
    "tasks/power-cuts.md": f"mkdir -p /usr/share/openvsl && ln -s {TREE}/examples/drills /usr/share/openvsl/drills",
}
# A page that goes on where another one stopped.
AFTER = {"tasks/backup.md": "tasks/database.md"}


def run(world: World) -> None:
    tasks = sorted(str(page.relative_to(TREE / "docs")) for page in TREE.glob("docs/tasks/*.md"))
    named = ["getting-started.md", "install.md", "integrations.md", *tasks]
    pages(world, named, elsewhere=ELSEWHERE, before=BEFORE, after=AFTER, not_run=NOT_RUN, least=60)
