"""The Ansible role installs the package, makes and attaches a device, and changes nothing when it runs again."""

import re

from harness import World, check
from harness.bare import TREE, package
from harness.layered import layered

ROOT = True
OURS = True
SLOW = True
LIMIT = 400
PLAY = """
- hosts: all
  roles:
    - role: openvsl
      openvsl_package: /root/openvsl.deb
      openvsl_start: false
      openvsl_options: [--listen, "127.0.0.1:7420"]
      openvsl_devices:
        - { name: db, paths: [/srv/db.vsl], size: 1GiB, create: [--sector, "512"] }
"""


def run(world: World) -> None:
    again = f"ANSIBLE_ROLES_PATH={TREE}/integrations/ansible/roles ansible-playbook -i localhost, -c local play.yml"
    said = layered(world, "root", [
        f"cat >play.yml <<'PLAY'{PLAY}PLAY",
        f"ANSIBLE_ROLES_PATH={TREE}/integrations/ansible/roles ansible-playbook --syntax-check -i localhost, {TREE}/integrations/ansible/example.yml",
        # There is no systemd here: a service that is started by hand takes its place.
        "vsl up",
        again,
        again,
        "test $(vsl status db --field sector_bytes) = 512",
        "grep -- --listen /etc/default/openvsl",
    ], {"openvsl.deb": package(world)})
    (first, second) = re.findall(r"ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", said)
    check(int(first) > 0 and second == "0", f"changed: {first} at first, then {second}")
