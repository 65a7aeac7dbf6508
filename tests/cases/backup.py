"""vsl backup, verify and restore: detached and attached, snapshots and what changed between them, other sector sizes, encrypted, interrupted by kill -9 and resumed, damaged, refused."""

import json
import os
import random
import signal
import subprocess
from pathlib import Path

from harness import MIB, World, check, equal
from harness.libnbd import connect

OURS = True


def run(world: World) -> None:
    path, data = world.dir / "data.vsl", world.dir / "data.img"
    with open(data, "wb") as image:
        image.truncate(96 * MIB)
        for at in range(0, 96, 3):
            image.seek(at * MIB)
            # Half of it does not compress.
            image.write(os.urandom(MIB) if at % 2 else bytes([at]) * MIB)
    world.vsl("create", path, "--size", 96 * MIB, "--sector-size", 512)
    world.servers.up()
    world.vsl("attach", path)
    world.run("nbdcopy", data, world.servers.uri("data"))

    backup = world.dir / "data.vslb"
    check("what is written meanwhile" in world.vsl("backup", "data", backup).text, "an attached device goes on")
    check("there is a file already" in world.vsl("backup", "data", backup, fails=True).text, "a file is written over")
    shown = json.loads(world.vsl("--json", "backup", "verify", backup).out)
    equal((shown["name"], shown["capacity_bytes"], shown["encrypted"]), ("data", 96 * MIB, False), "what it says of itself")
    check(backup.stat().st_size < 20 * MIB, f"{backup.stat().st_size} bytes are not compressed")

    world.vsl("create", world.dir / "large.vsl", "--size", 128 * MIB)
    check("no terminal to ask on" in world.vsl("restore", backup, world.dir / "large.vsl", fails=True).text, "it asks")
    world.vsl("restore", backup, world.dir / "large.vsl", "--yes")
    compare(world, "large", data)
    # Into an attached one that held something else and does not trim, by a pipe.
    world.vsl("create", world.dir / "other.vsl", "--size", 96 * MIB)
    world.vsl("attach", world.dir / "other.vsl")
    world.run("sh", "-c", f"head -c 50M /dev/urandom | nbdcopy - '{world.servers.uri('other')}'")
    world.vsl("trim", "other", "off")
    world.run("sh", "-c", f"{world.vsl_path} backup data - | {world.vsl_path} restore - other --yes")
    world.vsl("detach", "other")
    compare(world, "other", data)

    world.vsl("create", world.dir / "small.vsl", "--size", 64 * MIB)
    check("holds 67108864 bytes" in world.vsl("restore", backup, world.dir / "small.vsl", "--yes", fails=True).text, "too small")
    damaged = world.dir / "damaged.vslb"
    content = bytearray(backup.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    for command in [["backup", "verify", damaged], ["restore", damaged, world.dir / "large.vsl", "--yes"]]:
        check("is damaged: its checksum" in world.vsl(*command, fails=True).text, "damage")
    compare(world, "large", data)
    foreign = world.vsl("backup", "verify", data, fails=True)
    check("no backup" in foreign.text and foreign.code == 2, foreign.text)
    world.vsl("detach", "data")

    interrupted(world, path, data)
    encrypted(world)
    increments(world)


def compare(world: World, name: str, data: object) -> None:
    """Holds a restored device, with what is behind it, beside the data."""
    world.vsl("attach", world.dir / f"{name}.vsl", "--read-only")
    uri, copy = world.servers.uri(name), world.dir / "copy.img"
    world.run("nbdcopy", uri, copy)
    world.run("sh", "-c", f"head -c {96 * MIB} {copy} | cmp - {data}")
    world.run("sh", "-c", f"tail -c +{96 * MIB + 1} {copy} | tr -d '\\0' | wc -c | grep -qx 0")
    world.vsl("detach", name)
    copy.unlink()


def interrupted(world: World, path: object, data: object) -> None:
    """A backup that was killed is named as such, and goes on."""
    part = world.dir / "part.vslb"
    # A reader that stops for a moment, so that it is killed halfway whatever the machine.
    pipe = subprocess.Popen([world.vsl_path, "backup", str(path), "-"], stdout=subprocess.PIPE)
    part.write_bytes(pipe.stdout.read(3 * MIB))
    pipe.send_signal(signal.SIGKILL)
    pipe.wait()
    said = world.vsl("backup", "verify", part, fails=True).text
    check("was interrupted" in said and "no end" in said, said)
    check("was interrupted" in world.vsl("restore", part, world.dir / "large.vsl", "--yes", fails=True).text, "a part is restored")
    check("begin a new one" in world.vsl("backup", world.dir / "small.vsl", part, "--resume", fails=True).text, "another device")
    world.vsl("backup", path, part, "--resume")
    check("complete already" in world.vsl("backup", path, part, "--resume", fails=True).text, "resumed twice")
    world.vsl("restore", part, world.dir / "large.vsl", "--yes")
    compare(world, "large", data)


def encrypted(world: World) -> None:
    """An encrypted device makes an encrypted backup, and only its secret opens it."""
    path, backup, word = world.dir / "safe.vsl", world.dir / "safe.vslb", world.dir / "word"
    word.write_text("open sesame\n")
    world.vsl("create", path, "--size", 32 * MIB, "--encrypt", "--passphrase-file", word)
    world.vsl("attach", path, "--passphrase-file", word)
    world.run("sh", "-c", f"yes secret | head -c 1M | nbdcopy - '{world.servers.uri('safe')}'")
    refused = world.vsl("backup", "safe", backup, fails=True)
    check("--plain" in refused.text and not backup.exists(), refused.text)
    world.vsl("detach", "safe")
    world.vsl("backup", path, backup, "--passphrase-file", word)
    check("encrypted; say what opens it" in world.run("sh", "-c", f"{world.vsl_path} backup verify - < {backup} 2>&1; true").out, "no secret")
    (world.dir / "wrong").write_text("open barley\n")
    check("does not open" in world.vsl("backup", "verify", backup, "--passphrase-file", world.dir / "wrong", fails=True).text, "another secret")
    world.vsl("create", world.dir / "plain.vsl", "--size", 32 * MIB)
    world.vsl("restore", backup, world.dir / "plain.vsl", "--yes", "--backup-passphrase-file", word)
    world.vsl("attach", world.dir / "plain.vsl")
    world.run("sh", "-c", f"nbdcopy '{world.servers.uri('plain')}' - | head -c 14 | grep -qx secret")


def increments(world: World) -> None:
    """Snapshots while somebody writes, and what changed from one to the next: restored in order they are each snapshot, and in no other order anything."""
    numbers, size = random.Random(3), 64 * MIB
    path, names = world.dir / "disk.vsl", ["sunday", "monday", "tuesday", "wednesday"]
    world.vsl("create", path, "--size", size, "--sector-size", 512)
    world.vsl("attach", path)
    # Blocks of several sectors over NVMe, of which a change may touch a part.
    world.vsl("config", "disk", "nvme-block", "4KiB")
    world.vsl("detach", "disk")
    world.vsl("attach", path)
    content, images, files = bytearray(size), [], []
    for day, name in enumerate(names):
        handle = connect(world.servers.uri("disk"))
        for _ in range(40 if day == 0 else 400):
            count = numbers.randrange(1, 2048 if day == 0 else 24)
            at = numbers.randrange(size // 512 - count)
            data = bytes(count * 512) if numbers.random() < 0.3 else os.urandom(count * 512)
            content[at * 512:(at + count) * 512] = data
            handle.pwrite(data, at * 512) if any(data) else handle.trim(count * 512, at * 512)
        handle.shutdown()
        world.vsl("snapshot", "create", "disk", name)
        images.append(bytes(content))
    handle = connect(world.servers.uri("disk"))
    handle.pwrite(b"later" * 4096, 0)
    handle.shutdown()
    for name, since in zip(names, [None, *names]):
        # The last one is made of the file, in sectors of its own size.
        if name == names[-1]:
            world.vsl("detach", "disk")
        files.append(world.dir / f"{name}.vslb")
        device = "disk" if name != names[-1] else path
        said = world.vsl("backup", f"{device}@{name}", files[-1], *(["--since", since] if since else [])).text
        check("written meanwhile" not in said, said)
        shown = json.loads(world.vsl("--json", "backup", "verify", files[-1]).out)
        equal((shown["snapshot"], shown["since"]), (name, since), "what it says of itself")
        check(f"snapshot {name}" in world.vsl("backup", "verify", files[-1]).text, "in words")
    check(all(file.stat().st_size * 4 < files[0].stat().st_size for file in files[1:]), [file.stat().st_size for file in files])

    target = world.dir / "target.vsl"
    world.vsl("create", target, "--size", size + 4 * MIB, "--sector-size", 4096)
    for upto, image in enumerate(images):
        world.vsl("restore", *files[:upto + 1], target, "--yes")
        copy = exported(world, target)
        check(copy.read_bytes() == image + bytes(4 * MIB), f"restored up to {names[upto]}")

    # Whatever is no chain is refused before anything is changed.
    before = exported(world, target).read_bytes()
    whole, first, second, third = files
    for chain, what in [([first], "holds what changed since snapshot sunday"), ([whole, second], "shows snapshot sunday"),
                        ([whole, first, first], "since snapshot sunday"), ([whole, whole], "it is whole"), ([first, whole], "must stand before it")]:
        said = world.vsl("restore", *chain, target, "--yes", fails=True)
        check(what in said.text and "in order" in said.text and said.code == 2, said.text)
    part = world.dir / "part-of-monday.vslb"
    part.write_bytes(first.read_bytes()[:first.stat().st_size // 2])
    check("was interrupted" in world.vsl("backup", "verify", part, fails=True).text, "a part is whole")
    check("was interrupted" in world.vsl("restore", whole, part, second, target, "--yes", fails=True).text, "a part is restored")
    damaged = bytearray(second.read_bytes())
    damaged[-40] ^= 1
    (world.dir / "damaged-tuesday.vslb").write_bytes(damaged)
    check("is damaged" in world.vsl("restore", whole, first, world.dir / "damaged-tuesday.vslb", target, "--yes", fails=True).text, "damage")
    piped = world.vsl("restore", whole, "-", target, "--yes", fails=True)
    check("stands alone" in piped.text, piped.text)
    check(exported(world, target).read_bytes() == before, "what was refused changed the device")

    refusals(world, path, part, first)


def refusals(world: World, path: Path, part: Path, first: Path) -> None:
    """What cannot be backed up, and an increment that is gone on with."""
    other = world.dir / "other.vslb"
    for arguments, what in [((f"{path}@friday",), 'no snapshot "friday"'), ((f"{path}@monday", "--since", "friday"), 'no snapshot "friday"'),
                            ((f"{path}@monday", "--since", "tuesday"), "not older"), ((path, "--since", "monday"), "compares two snapshots")]:
        check(what in world.vsl("backup", arguments[0], other, *arguments[1:], fails=True).text, what)
        check(not other.exists(), f"a file although {what}")
    world.vsl("attach", path)
    for arguments, what in [(("disk@friday",), 'no snapshot "friday"'), (("disk@monday", "--since", "friday"), 'no snapshot "friday"')]:
        check(what in world.vsl("backup", arguments[0], other, *arguments[1:], fails=True).text, what)
    check("begin a new one" in world.vsl("backup", "disk@tuesday", part, "--since", "sunday", "--resume", fails=True).text, "another snapshot")
    check("begin a new one" in world.vsl("backup", "disk@monday", part, "--resume", fails=True).text, "a whole one")
    world.vsl("backup", "disk@monday", part, "--since", "sunday", "--resume")
    equal(*(json.loads(world.vsl("--json", "backup", "verify", file).out)["data_bytes"] for file in (part, first)), "resumed")
    # Under an old name a snapshot is another one, and no base of what was made before.
    world.vsl("snapshot", "delete", "disk", "sunday")
    world.vsl("snapshot", "create", "disk", "sunday")
    world.vsl("backup", "disk@sunday", other)
    said = world.vsl("restore", other, first, world.dir / "target.vsl", "--yes", fails=True).text
    check("since snapshot sunday" in said and "shows snapshot sunday" in said, said)
    world.vsl("detach", "disk")


def exported(world: World, path: Path) -> Path:
    """What a device holds, as an image."""
    copy = world.dir / "exported.img"
    copy.unlink(missing_ok=True)
    world.vsl("attach", path, "--read-only")
    world.run("nbdcopy", world.servers.uri(path.stem), copy)
    world.vsl("detach", path.stem)
    return copy
