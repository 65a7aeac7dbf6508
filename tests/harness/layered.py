"""This machine's system with everything that is installed, seen through a layer in memory that takes every change."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from harness.bare import LET_GO, TREE
from harness.check import check
from harness.page import Command, commands
from harness.world import World

T = TypeVar("T")
# The end of a page that is not done when another one goes on.
TAKES_AWAY = "To take it away"
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
{LET_GO}
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
mkdir -p built/release
ln usr/bin/vsl built/release/vsl
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


def at_terminal(script: str, lines: list[str]) -> str:
    """The script of a command at a terminal of its own, at which lines are typed, each when the one before was read."""
    keys = "; ".join(f"sleep 1; echo {shlex.quote(line)}" for line in lines)
    return f"({keys}; sleep 1) | script --quiet --return --flush --command {shlex.quote(script)} /dev/null"


# What shortens a command: options that it gets beside its own, or others in the place of some of its own.
Shortening = str | dict[str, str]


def shortened(command: Command, how: Shortening) -> list[str]:
    """A command that ends sooner than the page has it."""
    if isinstance(how, dict):
        script = command.script()
        for own, other in how.items():
            check(own in script, f"{command.text} has no {own}")
            script = script.replace(own, other)
        return [script]
    program, more = command.text.split()[1], how
    return [f'{program}() {{ command {program} "$@" {more}; }}', command.script(), f"unset -f {program}"]


def longest(starts: dict[str, T], text: str) -> T | None:
    """What belongs to the longest start of a text."""
    return max(((len(start), what) for start, what in starts.items() if text.startswith(start)), default=(0, None), key=lambda it: it[0])[1]


def pages(
    world: World, names: Iterable[str], *, elsewhere: dict[str, str], before: dict[str, str], least: int, after: dict[str, str] | None = None,
    typed: dict[str, list[str]] | None = None, shorter: dict[str, Shortening] | None = None, not_run: dict[str, str] | None = None,
) -> None:
    """Runs every command of pages of docs/ word for word, each page in a system of its own; at least so many in all.

    elsewhere: how a command begins that is not run here, and the case or file of tests that does. not_run: how one begins that no test runs,
    and why. before: what a page, or a command of it that begins so, finds there.
    after: the page that another goes on from, up to where that one is taken away. typed: how a command begins that asks at a terminal,
    and the lines that it is answered. shorter: how one begins that would take long, and what shortens it.
    """
    after, typed, shorter, not_run = after or {}, typed or {}, shorter or {}, not_run or {}
    for where in set(elsewhere.values()):
        exists = (TREE / where).exists() or (TREE / f"tests/cases/{where}.py").exists()
        check(exists, f"there is no test {where}, which is to run what pages say")
    left_out = tuple(elsewhere | not_run)
    ran, unused = 0, {*left_out, *typed, *shorter}
    for page in names:
        text = (TREE / "docs" / page).read_text()
        found = [*commands(text)]
        unused -= {start for start in unused if any(command.text.startswith(start) for command in found)}
        here = [command for command in found if not command.text.startswith(left_out)]
        if page in after:
            former = (TREE / "docs" / after[page]).read_text().split(TAKES_AWAY)[0]
            here = [*commands(former), *here]
        scripts = [before[name] for name in (after.get(page), page) if name in before]
        for command in here:
            scripts += [script for start, script in before.items() if f"{page} {command.text}".startswith(start) and start != page]
            if lines := longest(typed, command.text):
                scripts.append(at_terminal(command.script(), lines))
            elif more := longest(shorter, command.text):
                scripts += shortened(command, more)
            else:
                scripts.append(command.script())
        layered(world, page.replace("/", "-"), scripts)
        ran += len(here)
    check(not unused, f"no page says {unused}")
    check(ran >= least, f"{ran} commands were found")
    print(f"figure: {ran} commands")
