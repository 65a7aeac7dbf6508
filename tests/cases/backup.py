"""vsl backup, verify and restore: detached and attached, other sector sizes, encrypted, interrupted by kill -9 and resumed, damaged, refused."""

import json
import os
import signal
import subprocess

from harness import MIB, World, check, equal

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
